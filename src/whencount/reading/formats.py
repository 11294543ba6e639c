"""Which format a path is in, and the files that belong to it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from whencount.errors import InputError
from whencount.files import open_binary

FORMATS = {
    "folder": "vectors of whencount itself: a folder with meta.json",
    "json lines": 'JSON lines, {"id": ..., "vector": {"feature": weight, ...}}',
    "topics": "Pyserini's encoded queries: id, tab, terms as often as they weigh (.tsv)",
    "npz": "compressed sparse rows of scipy.sparse.save_npz",
    "parquet": "Parquet: id, and indices and values, or vector",
    "arrow": "Arrow, and datasets saved with save_to_disk",
    "tensor": "sparse tensors of torch.save (.pt)",
    "ciff": "the Common Index File Format",
}
"""Name of a format to what it is, for people."""

_SUFFIXES = {
    ".jsonl": "json lines",
    ".json": "json lines",
    ".ndjson": "json lines",
    ".tsv": "topics",
    ".npz": "npz",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".pt": "tensor",
    ".pth": "tensor",
    ".ciff": "ciff",
}
_PACKED = (".gz", ".zst")
STREAMED = frozenset({"json lines", "topics"})
"""Formats that are read from compressed files as they are; others are unpacked first."""


@dataclass(frozen=True)
class Found:
    """What stands at a path.

    Attributes:
        format: a key of FORMATS.
        files: to be read in this order.
    """

    format: str
    files: tuple[Path, ...]


def find(path: Path) -> Found:
    """Tell the format of a file or folder by its name, or by its first bytes.

    Raises:
        InputError: there is nothing, or nothing that is known; or there are several things.
    """
    if path.is_dir():
        return _in_folder(path)
    format_ = _by_name(path) or _by_content(path)
    if format_ is None:
        known = "; ".join(f"{what}" for what in FORMATS.values())
        raise InputError(f"{path}: neither its name nor its beginning tells the format; {known}")
    return Found(format_, (path,))


def _by_name(path: Path) -> str | None:
    suffixes = [one.lower() for one in path.suffixes]
    while suffixes and suffixes[-1] in _PACKED:
        suffixes.pop()
    return _SUFFIXES.get(suffixes[-1]) if suffixes else None


def _by_content(path: Path) -> str | None:
    with open_binary(path) as stream:
        try:
            start = stream.read(64).lstrip(b"\xef\xbb\xbf \r\n\t")
        except (OSError, EOFError) as error:
            raise InputError(f"{path} cannot be read ({error}); write it again") from error
    if start.startswith(b"{"):
        return "json lines"
    return {b"PAR1": "parquet", b"ARRO": "arrow"}.get(start[:4])


def _in_folder(path: Path) -> Found:
    from whencount.reading import tables

    if (path / "meta.json").is_file():
        return Found("folder", (path,))
    if (path / "state.json").is_file():
        return Found("arrow", tuple(tables.dataset_files(path)))
    splits = tables.splits(path)
    if len(splits) == 1:
        return Found("arrow", tuple(tables.dataset_files(path / splits[0])))
    if splits:
        raise InputError(
            f"{path} holds the splits {', '.join(splits)}; name one, {path / splits[0]} say"
        )
    files = [
        entry
        for entry in sorted(path.rglob("*"))
        if entry.is_file()
        and not any(part.startswith(".") for part in entry.relative_to(path).parts)
    ]
    by_format: dict[str, list[Path]] = {}
    for entry in files:
        name = _by_name(entry)
        # Small JSON files describe a data set; they hold no vectors.
        if name is not None and entry.name not in ("dataset_info.json", "config.json"):
            by_format.setdefault(name, []).append(entry)
    if not by_format:
        raise InputError(f"{path} holds no file of vectors; {'; '.join(FORMATS.values())}")
    if len(by_format) > 1:
        told = "; ".join(f"{kind}: {found[0].name}" for kind, found in by_format.items())
        raise InputError(f"{path} holds files of several formats ({told}); name one of them")
    (format_, found), *_ = by_format.items()
    return Found(format_, tuple(found))
