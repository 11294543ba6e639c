"""Small data sets in the layout of ir_datasets, and a host on this machine to fetch them from."""

from __future__ import annotations

import functools
import gzip
import hashlib
import io
import json
import pkgutil
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

# Nothing listens there: every fetch from another machine fails at once.
NOWHERE = "http://127.0.0.1:9"


def without_network(patch: pytest.MonkeyPatch) -> None:
    """Let nothing but this machine be reached."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        patch.setenv(name, NOWHERE)
        patch.setenv(name.upper(), NOWHERE)
    for name in ("no_proxy", "NO_PROXY"):
        patch.setenv(name, "127.0.0.1,localhost")
    patch.setenv("IR_DATASETS_DL_TRIES", "1")
    patch.setenv("IR_DATASETS_DL_403_TRIES", "1")


def forget_ir_datasets() -> None:
    """Make the next import read its environment and its list of downloads anew."""
    for name in list(sys.modules):
        if name.partition(".")[0] == "ir_datasets":
            del sys.modules[name]


@dataclass
class Home:
    """The folder of downloads, and what ir_datasets shall believe about single files.

    Attributes:
        path: the folder.
        told: changes to entries of its downloads.json, by `group/key`.
    """

    path: Path
    told: dict[str, dict[str, Any]] = field(default_factory=dict)

    def plant(self, key: str, content: bytes, trusted: bool = True) -> Path:
        """Put a download in place; a trusted one has the checksum that is expected."""
        group, _, name = key.partition("/")
        entry = json.loads(_downloads())[group][name]
        path = self.path / group / str(entry["cache_path"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        if trusted:
            self.told.setdefault(key, {})["expected_md5"] = hashlib.md5(content).hexdigest()
        return path

    def write(self, name: str, content: str) -> Path:
        """Write a file that ir_datasets itself would have made."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        return path


@functools.cache
def _downloads() -> bytes:
    content = pkgutil.get_data("ir_datasets", "etc/downloads.json")
    assert content is not None
    return content


@contextmanager
def planted_home(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Home]:
    """ir_datasets over an empty folder, without a network; its code is as installed."""
    without_network(patch)
    patch.setenv("IR_DATASETS_HOME", str(folder))
    home = Home(folder)
    _downloads()
    forget_ir_datasets()
    original = pkgutil.get_data

    def get_data(package: str, resource: str) -> bytes | None:
        content = original(package, resource)
        if (package, resource) != ("ir_datasets", "etc/downloads.json") or content is None:
            return content
        entries = json.loads(content)
        for key, changes in home.told.items():
            group, _, name = key.partition("/")
            entries[group][name].update(changes)
        return json.dumps(entries).encode()

    patch.setattr(pkgutil, "get_data", get_data)
    yield home
    forget_ir_datasets()


def lines(records: Sequence[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def beir_zip(
    name: str,
    corpus: str,
    queries: str,
    qrels: Sequence[tuple[str, str, int]],
    split: str = "test",
) -> bytes:
    """An archive as BEIR publishes them."""
    judged = "query-id\tcorpus-id\tscore\n" + "".join(f"{q}\t{d}\t{r}\n" for q, d, r in qrels)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}/corpus.jsonl", corpus)
        archive.writestr(f"{name}/queries.jsonl", queries)
        archive.writestr(f"{name}/qrels/{split}.tsv", judged)
    return buffer.getvalue()


def gzipped(text: str) -> bytes:
    return gzip.compress(text.encode(), mtime=0)


def tar_gz(files: Mapping[str, str]) -> bytes:
    """An archive as MS MARCO publishes its passages."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()


@dataclass
class Host:
    """A web server on this machine.

    Attributes:
        address: without a slash at the end.
        files: what it has, by path from the root.
        ranges: whether it can begin in the middle of a file.
        break_after: it breaks off the first answer to a path after so many bytes.
        asked: the paths asked for, each with the wanted range or an empty string.
    """

    address: str
    files: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    break_after: dict[str, int] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)

    def serve(self, path: str, content: bytes) -> str:
        """Add a file; its address comes back."""
        self.files[path] = content
        return f"{self.address}{path}"


@contextmanager
def running_host() -> Iterator[Host]:
    """A host that answers until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range", "")
            host.asked.append((self.path, wanted))
            content = host.files.get(self.path)
            if content is None:
                self.send_error(404)
                return
            start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and host.ranges else 0
            if start and start >= len(content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            rest = content[start:]
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(rest)))
            self.end_headers()
            self.wfile.write(rest[: host.break_after.pop(self.path, len(rest))])

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    host = Host(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield host
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
