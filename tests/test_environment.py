from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from whencount.environment import cache_folder, put_own_commands_first


def test_commands_beside_this_python_are_found_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.defpath)
    put_own_commands_first()
    put_own_commands_first()
    own = str(Path(sys.executable).parent)
    assert os.environ["PATH"].split(os.pathsep).count(own) == 1
    assert shutil.which(Path(sys.executable).name) == sys.executable


def test_a_cache_stands_where_its_variables_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/reader")
    for own, common, expected in (
        ("", "", "/home/reader/.cache/whencount"),
        ("", "/var/cache", "/var/cache/whencount"),
        ("", "relative/is/ignored", "/home/reader/.cache/whencount"),
        ("/own", "/var/cache", "/own"),
    ):
        monkeypatch.setenv("WHENCOUNT_CACHE", own)
        monkeypatch.setenv("XDG_CACHE_HOME", common)
        assert cache_folder() == Path(expected)
