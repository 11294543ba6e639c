"""What `whencount advise` takes for 1,000,000 documents: time, memory, and the progress it shows.

Run as `python -m benchmarks.advise_million`, with `--documents N` or `--format npz` for less.
Prints one JSON object per format. The vectors are made here; needs a few gigabytes of disk.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from benchmarks import data
from whencount.vectors import SparseVectors

DOCUMENTS, NONZEROS, QUERIES, ASKED = 1_000_000, 64, 1_000, 16
FORMATS = ("jsonl", "npz", "parquet")
LIMIT = 4_000_000_000
"""Bytes of memory that a run must stay under."""
_ROWS = 1 << 15


def blocks(documents: int, nonzeros: int) -> Iterator[SparseVectors]:
    """Documents of shape z, a block at a time, with ids that tell them apart."""
    for start in range(0, documents, _ROWS):
        block = data.generate(min(_ROWS, documents - start), nonzeros, "z", start + 7)
        ids = np.array([f"d{start + row}" for row in range(len(block))], dtype=object)
        yield SparseVectors(ids, block.indptr, block.features, block.values, block.vocabulary_size)


def write(folder: Path, file_format: str, documents: int, nonzeros: int) -> Path:
    """Write the documents in one of FORMATS; memory holds a block."""
    path = folder / f"documents.{file_format}"
    {"jsonl": _json_lines, "npz": _npz, "parquet": _parquet}[file_format](path, documents, nonzeros)
    return path


def _json_lines(path: Path, documents: int, nonzeros: int) -> None:
    with path.open("wb") as stream:
        for block in blocks(documents, nonzeros):
            _lines(stream, block)


def _lines(stream: Any, block: SparseVectors) -> None:
    terms = [f"t{feature}" for feature in block.features.tolist()]
    weights = np.round(block.values.astype(np.float64), 4).tolist()
    edges = block.indptr.tolist()
    for row, name in enumerate(block.ids):
        low, high = edges[row], edges[row + 1]
        vector = dict(zip(terms[low:high], weights[low:high], strict=True))
        stream.write(orjson.dumps({"id": name, "contents": "", "vector": vector}) + b"\n")


def _npz(path: Path, documents: int, nonzeros: int) -> None:
    # As scipy.sparse.save_npz, which would hold the whole matrix.
    indptr = np.arange(documents + 1, dtype=np.int64) * nonzeros
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in (
            ("format", np.array(b"csr")),
            ("shape", np.array([documents, data.VOCABULARY])),
            ("indptr", indptr),
        ):
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)
        for name, kind in (("indices", "features"), ("data", "values")):
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                dtype = np.dtype(np.int32 if name == "indices" else np.float32)
                header = {
                    "descr": np.lib.format.dtype_to_descr(dtype),
                    "fortran_order": False,
                    "shape": (documents * nonzeros,),
                }
                np.lib.format.write_array_header_1_0(stream, header)
                for block in blocks(documents, nonzeros):
                    stream.write(getattr(block, kind).astype(dtype).tobytes())
    ids = path.with_name("documents.ids.txt")
    ids.write_text("".join(f"d{row}\n" for row in range(documents)))


def _parquet(path: Path, documents: int, nonzeros: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = [("id", pa.string()), ("indices", pa.list_(pa.int32()))]
    schema = pa.schema([*kinds, ("values", pa.list_(pa.float32()))])
    with pq.ParquetWriter(path, schema) as writer:
        for block in blocks(documents, nonzeros):
            offsets = pa.array(block.indptr.astype(np.int32))
            columns = [
                pa.array(block.ids, type=pa.string()),
                pa.ListArray.from_arrays(offsets, pa.array(block.features)),
                pa.ListArray.from_arrays(offsets, pa.array(block.values)),
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))


def write_queries(folder: Path, file_format: str, documents: int, nonzeros: int) -> Path:
    """Queries that are parts of documents of the first block, and a run that finds these.

    The other nine documents of the run are drawn at random: what is measured is what the work
    takes, not what it says.
    """
    first = next(blocks(documents, nonzeros))
    random = np.random.default_rng(3)
    asked = min(QUERIES, len(first))
    sources = random.choice(len(first), asked, replace=False)
    path, prefix = folder / "queries.jsonl", "t" if file_format == "jsonl" else ""
    with path.open("wb") as stream, (folder / "reference.trec").open("w") as run:
        for number, source in enumerate(sources.tolist()):
            kept = random.choice(nonzeros, min(ASKED, nonzeros), replace=False)
            row = first.features[source * nonzeros : (source + 1) * nonzeros][kept].tolist()
            vector = {f"{prefix}{feature}": 1.0 for feature in row}
            stream.write(orjson.dumps({"id": f"q{number}", "vector": vector}) + b"\n")
            others = [f"d{one}" for one in random.integers(0, documents, 9) if one != source]
            for rank, name in enumerate(dict.fromkeys([f"d{source}", *others]), 1):
                run.write(f"q{number} Q0 {name} {rank} {-rank} drawn\n")
    return path


def watched(command: list[str], environment: dict[str, str]) -> dict[str, Any]:
    """Run a command; its seconds, its peaks of memory in bytes, and what it told of progress."""
    started = time.monotonic()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        peaks = {"RssAnon": 0, "VmHWM": 0}
        done = threading.Event()

        def watch() -> None:
            status = Path(f"/proc/{process.pid}/status")
            while not done.wait(0.02):
                try:
                    told = status.read_text()
                except OSError:
                    return
                for name, most in peaks.items():
                    found = re.search(rf"{name}:\s+(\d+) kB", told)
                    peaks[name] = max(most, int(found[1]) * 1024 if found else 0)

        watcher = threading.Thread(target=watch)
        watcher.start()
        out, err = process.communicate()
        done.set()
        watcher.join()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}: {err}")
    lines = [line for line in err.splitlines() if "/s" in line]
    if not lines:
        raise RuntimeError("no progress was shown")
    return {
        "seconds": round(time.monotonic() - started, 1),
        "private_bytes": peaks["RssAnon"],
        "resident_bytes": peaks["VmHWM"],
        "progress": lines,
        "advice": json.loads(out)["configuration"],
    }


def measure(file_format: str, documents: int, nonzeros: int) -> dict[str, Any]:
    """One row: a format, and what advising on it took."""
    with tempfile.TemporaryDirectory(prefix="whencount-") as scratch:
        folder = Path(scratch)
        path = write(folder, file_format, documents, nonzeros)
        queries = write_queries(folder, file_format, documents, nonzeros)
        command = [sys.executable, "-m", "whencount.cli", "advise", "--documents", str(path)]
        command += ["--queries", str(queries), "--reference", str(folder / "reference.trec")]
        command += ["--threads", "2", "--out", str(folder / "advice"), "--json"]
        found = watched(command, dict(os.environ))
        row = {
            "format": file_format,
            "documents": documents,
            "nonzeros": documents * nonzeros,
            "file_bytes": path.stat().st_size,
            **found,
        }
    row["limit_bytes"] = LIMIT
    row["met"] = row["resident_bytes"] < LIMIT
    return row


def run(documents: int = DOCUMENTS, formats: tuple[str, ...] = FORMATS) -> list[dict[str, Any]]:
    """Measure every format."""
    return [measure(one, documents, NONZEROS) for one in formats]


def main() -> None:
    """Measure, and print a row per format."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=DOCUMENTS)
    parser.add_argument("--format", nargs="+", choices=FORMATS, default=list(FORMATS))
    chosen = parser.parse_args()
    for one in chosen.format:
        print(json.dumps(measure(one, chosen.documents, NONZEROS)), flush=True)


if __name__ == "__main__":
    main()
