from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from whencount.environment import put_own_commands_first


def test_commands_beside_this_python_are_found_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.defpath)
    put_own_commands_first()
    put_own_commands_first()
    own = str(Path(sys.executable).parent)
    assert os.environ["PATH"].split(os.pathsep).count(own) == 1
    assert shutil.which(Path(sys.executable).name) == sys.executable
