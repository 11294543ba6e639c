"""Models decoded once out of a packed form, kept as safetensors with a manifest of checksums."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from whencount.errors import InputError
from whencount.files import atomic_directory

MANIFEST = "decoded.json"
_LOG = logging.getLogger(__name__)


def keep(folder: Path, fill: Callable[[Path], None], about: Mapping[str, Any]) -> None:
    """Write a decoded model, whole or not at all, with the SHA-256 of every file of it.

    Args:
        folder: where it shall stand.
        fill: writes the files into the folder that it is given.
        about: what else the manifest says; `packed_sha256` names the packed file.

    Raises:
        InputError: no space, or the place cannot be written.
    """
    from safetensors import SafetensorError

    with atomic_directory(folder) as temporary:
        try:
            fill(temporary)
        except SafetensorError as error:
            raise InputError(f"{folder} cannot be written ({error})") from error
        entries = sorted(temporary.iterdir())
        manifest = {**about, "sha256": {entry.name: sha256_of(entry) for entry in entries}}
        (temporary / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
        # safetensors lets nobody else read what it writes.
        for entry in entries:
            shutil.copymode(temporary / MANIFEST, entry)


def kept(folder: Path, packed_sha256: str) -> bool:
    """Whether a folder that `keep` wrote stands there undamaged; damage is logged."""
    if not folder.is_dir():
        return False
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if manifest["packed_sha256"] != packed_sha256:
            raise ValueError("it belongs to another packed file")
        for name, expected in manifest["sha256"].items():
            if sha256_of(folder / name) != expected:
                raise ValueError(f"{name} has another SHA-256 than when it was written")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        tell_damage(folder, error)
        return False
    return True


def tell_damage(folder: Path, error: Exception) -> None:
    """Log that a kept model is damaged and is decoded anew."""
    _LOG.warning("%s is damaged (%s) and is written again", folder, error)


def sha256_of(path: Path) -> str:
    """SHA-256 of a file in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
