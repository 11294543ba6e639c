"""A study as one file for publishing: tables, pages, manifests, configuration; no text of corpora.

The archive is a plain tar stream under zstd, so `tar --zstd -xf` opens it too. Its first member,
`contents.json`, lists every other with its size and SHA-256, and the artefacts that were left out,
whose manifests are there, so that the chain of every number stays whole. Times, owners and order
are fixed: the same study gives the same bytes.

Reading one trusts nothing: `read_archive` takes regular files alone, in the order and of the sizes
that `contents.json` states, under relative names of known kinds, up to a limit, and writes all of
them or nothing.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from whencount.errors import InputError
from whencount.files import atomic_directory, atomic_file
from whencount.provenance.manifest import hash_of_file
from whencount.provenance.scanning import CONTENTS

FORMAT = "whencount-archive-1"
DEFAULT_LIMIT = 64 << 30
"""Bytes that an archive may unpack to."""

_BLOCK = 512
_CHUNK = 1 << 20
_MOST_CONTENTS = 64 << 20
_MOST_PADDING = 1 << 16
_LONGEST_NAME = 255
_SUFFIXES = frozenset(
    {
        ".parquet",
        ".html",
        ".svg",
        ".png",
        ".pdf",
        ".json",
        ".yaml",
        ".yml",
        ".lock",
        ".cff",
        ".ipynb",
    }
    | {".npy", ".safetensors"}
)
_BARE_NAMES = frozenset({"LICENSE"})


@dataclass(frozen=True)
class Member:
    """One file of an archive: its name there, its size in bytes, its SHA-256."""

    path: str
    size: int
    sha256: str


def write_archive(
    out: Path, files: Mapping[str, Path | bytes], left_out: Sequence[Mapping[str, Any]]
) -> str:
    """Write an archive of files on disk, or of bytes, by their names in it.

    Beside it, `OUT.sha256` is written as `sha256sum` does.

    Returns:
        The SHA-256 of the archive.

    Raises:
        InputError: a name that no reader would take, a file that changed while it was read, or no
            space.
    """
    import pyarrow as pa

    members = []
    for name, content in sorted(files.items()):
        _refuse_name(name, str(out))
        if isinstance(content, bytes):
            members.append(Member(name, len(content), hashlib.sha256(content).hexdigest()))
        else:
            members.append(Member(name, content.stat().st_size, hash_of_file(content)))
    contents = {
        "format": FORMAT,
        "members": [asdict(member) for member in members],
        "left_out": list(left_out),
    }
    first = (json.dumps(contents, indent=1, sort_keys=True) + "\n").encode()
    with atomic_file(out) as temporary:
        with pa.CompressedOutputStream(str(temporary), "zstd") as stream:
            _put(stream, CONTENTS, len(first), io.BytesIO(first))
            for member in members:
                content = files[member.path]
                if isinstance(content, bytes):
                    _put(stream, member.path, member.size, io.BytesIO(content))
                else:
                    with content.open("rb") as file:
                        _put(stream, member.path, member.size, file)
            stream.write(bytes(2 * _BLOCK))
        digest = hash_of_file(temporary)
    with atomic_file(_checksum_path(out)) as temporary:
        temporary.write_text(f"{digest}  {out.name}\n", encoding="utf-8")
    return digest


def read_archive(
    archive: Path, out: Path, *, limit: int = DEFAULT_LIMIT, sha256: str | None = None
) -> list[Member]:
    """Unpack an archive into a new folder, whole or not at all; see the module for what it takes.

    Args:
        archive: the file. `ARCHIVE.sha256` is compared where it stands beside it.
        out: a folder that does not exist yet, or is empty.
        limit: the most bytes to unpack.
        sha256: what the archive shall have.

    Raises:
        InputError: the archive is damaged or holds what it must not; the member is named.
    """
    check_archive(archive, sha256)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} is there already; name a folder that is not, or an empty one")
    with _opened(archive) as stream, atomic_directory(out) as folder:
        members, contents = _contents(stream, limit)
        (folder / CONTENTS).write_bytes(contents)
        for member in members:
            name, size = stream.header()
            if name != member.path or size != member.size:
                raise InputError(
                    f"{archive}: expected member {member.path!r} of {member.size} bytes by its"
                    f" contents.json, found {name!r} of {size} bytes; get the archive again"
                )
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            digest = hashlib.sha256()
            with path.open("xb") as file:
                for chunk in stream.content(size):
                    digest.update(chunk)
                    file.write(chunk)
            if digest.hexdigest() != member.sha256:
                raise InputError(
                    f"{archive}: member {name!r} has SHA-256 {digest.hexdigest()[:16]} where its"
                    f" contents.json says {member.sha256[:16]}; get the archive again"
                )
        stream.end()
        _check_manifests(folder, out)
    return members


def check_archive(archive: Path, sha256: str | None = None) -> None:
    """Compare an archive with a checksum given, and with the one beside it if there is one.

    Raises:
        InputError: it is missing or has another.
    """
    if not archive.is_file():
        raise InputError(f"{archive} is no file; name an archive that whencount export wrote")
    beside = _checksum_path(archive)
    wanted = [sha256.lower()] if sha256 else []
    if beside.is_file():
        wanted += beside.read_text(encoding="utf-8", errors="replace").split()[:1]
    if wanted:
        found = hash_of_file(archive)
        for one in wanted:
            if one != found:
                raise InputError(
                    f"{archive} has SHA-256 {found}, expected {one}; it is damaged or another"
                    " file: get it again"
                )


def _checksum_path(archive: Path) -> Path:
    return archive.with_name(f"{archive.name}.sha256")


def _check_manifests(folder: Path, out: Path) -> None:
    """Hold what was unpacked to its own manifests before anyone sees it."""
    from whencount.provenance.verification import verify

    findings = verify([folder], quick=True).findings
    if findings:
        sentence = findings[0].sentence.replace(str(folder), str(out))
        raise InputError(f"the archive does not agree with its manifests: {sentence}")


def _contents(stream: _Stream, limit: int) -> tuple[list[Member], bytes]:
    """The members that an archive promises, each under a name that may be written."""
    name, size = stream.header()
    if name != CONTENTS or size > _MOST_CONTENTS:
        raise InputError(
            f"{stream.path} does not begin with {CONTENTS}; it is no whencount archive"
        )
    text = b"".join(stream.content(size))
    try:
        record = json.loads(text)
        if record["format"] != FORMAT:
            raise ValueError(f"its format is {record['format']!r}, not {FORMAT!r}")
        members = [
            Member(str(one["path"]), int(one["size"]), str(one["sha256"]))
            for one in record["members"]
        ]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{stream.path}: {CONTENTS} cannot be used ({error})") from None
    taken: set[str] = {CONTENTS}
    for member in members:
        _refuse_name(member.path, str(stream.path))
        # Some disks take A and a for one name.
        folded = member.path.casefold()
        if folded in taken:
            raise InputError(f"{stream.path}: two members are called {member.path!r}")
        taken.add(folded)
    for member in members:
        if {str(parent).casefold() for parent in PurePosixPath(member.path).parents} & taken:
            raise InputError(f"{stream.path}: {member.path!r} lies in a member that is a file")
    total = sum(member.size for member in members)
    if any(member.size < 0 for member in members) or total > limit:
        raise InputError(
            f"{stream.path} would unpack to {total:,} bytes, more than {limit:,}; give a higher"
            " --limit if you trust it"
        )
    return members, text


def _refuse_name(name: str, archive: str) -> None:
    """Refuse a name that could land outside the folder, hide, or be taken for something else."""
    path = PurePosixPath(name)
    parts = name.split("/")
    if (
        any(part in ("", ".", "..") or part.startswith(".") for part in parts)
        or any(part != part.strip() or part.endswith(".") for part in parts)
        or any(ord(letter) < 32 or letter in '\\:*?"<>|\x7f' for letter in name)
        or len(name.encode("utf-8", "replace")) > _LONGEST_NAME
    ):
        raise InputError(
            f"{archive}: member {name[:300]!r} has a name that is not safe; nothing was written"
        )
    if path.suffix not in _SUFFIXES and name not in _BARE_NAMES:
        raise InputError(
            f"{archive}: member {name!r} is of no kind that a study holds; nothing was written"
        )


def _put(stream: Any, name: str, size: int, content: Any) -> None:
    """Write one member: a header without time and owner, the content, padding."""
    info = tarfile.TarInfo(name)
    info.size = size
    info.mode = 0o644
    try:
        stream.write(info.tobuf(tarfile.USTAR_FORMAT, "utf-8", "strict"))
    except ValueError as error:
        raise InputError(f"{name!r} cannot be stored in a tar archive ({error})") from None
    left = size
    while left:
        chunk = content.read(min(left, _CHUNK))
        if not chunk:
            raise InputError(f"{name} became shorter while it was read; run again")
        stream.write(chunk)
        left -= len(chunk)
    stream.write(bytes(-size % _BLOCK))


@contextmanager
def _opened(path: Path) -> Iterator[_Stream]:
    import pyarrow as pa

    try:
        file = pa.OSFile(str(path), "rb")
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error}); check its permissions") from error
    with file, pa.CompressedInputStream(file, "zstd") as stream:
        yield _Stream(path, stream)


class _Stream:
    """A tar stream of plain files, read header by header; nothing in it is followed."""

    def __init__(self, path: Path, stream: Any) -> None:
        self.path = path
        self._stream = stream

    def header(self) -> tuple[str, int]:
        """The name and size of the next member."""
        block = self._exactly(_BLOCK)
        try:
            info = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
        except (tarfile.TarError, ValueError) as error:
            raise InputError(
                f"{self.path}: a member's header cannot be read ({error}); the archive is damaged"
                " or ends early"
            ) from None
        if info.type != tarfile.REGTYPE:
            raise InputError(
                f"{self.path}: member {info.name!r} is a link, folder, device or the like (type"
                f" {info.type!r}); only plain files are taken"
            )
        return info.name, info.size

    def content(self, size: int) -> Iterator[bytes]:
        """The bytes of the member whose header was read last."""
        left = size
        while left:
            chunk = self._exactly(min(left, _CHUNK))
            left -= len(chunk)
            yield chunk
        self._exactly(-size % _BLOCK)

    def end(self) -> None:
        """Make sure that nothing follows the last member but the zeros that end an archive."""
        rest = self._exactly(2 * _BLOCK)
        while len(rest) <= _MOST_PADDING and (chunk := self._read(_MOST_PADDING)):
            rest += chunk
        if any(rest) or len(rest) > _MOST_PADDING:
            raise InputError(f"{self.path} holds more than its {CONTENTS} says; get it again")

    def _exactly(self, size: int) -> bytes:
        parts, left = [], size
        while left:
            chunk = self._read(left)
            if not chunk:
                raise InputError(f"{self.path} ends early; get it again")
            parts.append(chunk)
            left -= len(chunk)
        return b"".join(parts)

    def _read(self, size: int) -> bytes:
        import pyarrow as pa

        try:
            return bytes(self._stream.read(size))
        except (OSError, pa.ArrowException) as error:
            raise InputError(
                f"{self.path} is no zstd archive or is damaged ({error}); get it again"
            ) from error


def common_folder(paths: Sequence[Path]) -> Path:
    """The folder that names in an archive start at: the innermost that holds all paths.

    Raises:
        InputError: that is the root of the file system.
    """
    folder = Path(os.path.commonpath([os.path.abspath(path.parent) for path in paths]))
    if folder == folder.parent:
        listed = " and ".join(str(path) for path in paths)
        raise InputError(f"{listed} have no folder in common; put them under one")
    return folder
