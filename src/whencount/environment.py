"""The process's environment: where commands are found, where a cache may stand."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from whencount.errors import InputError


def put_own_commands_first() -> None:
    """Let child processes find the commands beside this Python, also where no one activated it.

    A conda environment of a rule is activated in the child, later, and so goes before them.
    """
    own = str(Path(sys.executable).parent)
    paths = os.environ.get("PATH", os.defpath).split(os.pathsep)
    if paths[0] != own:
        os.environ["PATH"] = os.pathsep.join([own, *paths])


def cache_folder() -> Path:
    """Where results that any study may use again are kept.

    The variable WHENCOUNT_CACHE, else `whencount` in XDG_CACHE_HOME, else in `~/.cache`.

    Raises:
        InputError: no variable is set and there is no home folder.
    """
    own = os.environ.get("WHENCOUNT_CACHE")
    if own:
        return Path(own).absolute()
    common = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(common):  # others are to be ignored, says the XDG specification
        return Path(common) / "whencount"
    try:
        return Path.home() / ".cache" / "whencount"
    except RuntimeError:
        raise InputError(
            "there is no home folder to keep a cache in; name one in the variable WHENCOUNT_CACHE"
        ) from None
