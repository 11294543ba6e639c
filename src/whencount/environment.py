"""The process's environment, for those who start whencount's commands."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def put_own_commands_first() -> None:
    """Let child processes find the commands beside this Python, also where no one activated it.

    A conda environment of a rule is activated in the child, later, and so goes before them.
    """
    own = str(Path(sys.executable).parent)
    paths = os.environ.get("PATH", os.defpath).split(os.pathsep)
    if paths[0] != own:
        os.environ["PATH"] = os.pathsep.join([own, *paths])
