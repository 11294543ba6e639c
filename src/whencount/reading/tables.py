"""Parquet files and Arrow files, the data of a saved Hugging Face dataset among them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from whencount.errors import InputError
from whencount.reading.columns import columns_of, rows_of
from whencount.reading.places import Places
from whencount.reading.rows import ROWS_AT_ONCE, WEIGHTS_AT_ONCE, Rows
from whencount.reading.vocabulary import Vocabulary


def parquet_rows(path: Path) -> int:
    """Rows of a Parquet file, from its footer.

    Raises:
        InputError: it is none.
    """
    try:
        return int(pq.read_metadata(path).num_rows)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} is no whole Parquet file ({error}); write it again") from error


def read_parquet(places: Places, vocabulary: Vocabulary) -> Iterator[Rows]:
    """Rows of all files, in order; a few thousand are held at a time.

    Raises:
        InputError: a file is damaged or lacks a column, or a row is malformed.
    """
    for file, path in enumerate(places.files):
        try:
            with pq.ParquetFile(path) as table:
                columns = columns_of(table.schema_arrow, path)
                batches = table.iter_batches(ROWS_AT_ONCE, columns=columns)
                yield from _rows(batches, columns, places, file, vocabulary)
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{path} cannot be read ({error}); write it again") from error


def read_arrow(places: Places, vocabulary: Vocabulary) -> Iterator[Rows]:
    """Rows of all Arrow files (streams or files), in order, memory-mapped.

    Raises:
        InputError: as `read_parquet`.
    """
    for file, path in enumerate(places.files):
        try:
            with pa.memory_map(str(path)) as stream:
                batches, schema = _batches(stream)
                columns = columns_of(schema, path)
                yield from _rows(batches, columns, places, file, vocabulary)
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{path} cannot be read ({error}); write it again") from error


def _batches(stream: Any) -> tuple[Iterator[Any], Any]:
    if stream.read(6) == b"ARROW1":
        reader = pa.ipc.open_file(stream)
        return map(reader.get_batch, range(reader.num_record_batches)), reader.schema
    stream.seek(0)
    reader = pa.ipc.open_stream(stream)
    return iter(reader), reader.schema


def _rows(
    batches: Iterator[Any], columns: list[str], places: Places, file: int, vocabulary: Vocabulary
) -> Iterator[Rows]:
    """Rows of batches, small ones joined and large ones cut."""
    start = 0
    waiting: list[Any] = []

    def joined() -> Any:
        return pa.Table.from_batches(waiting).combine_chunks().to_batches()[0]

    for batch in batches:
        chosen = batch.select(columns)
        # By bytes: a batch of few rows may have many weights.
        step = max(
            1, min(ROWS_AT_ONCE, int(len(batch) * WEIGHTS_AT_ONCE * 8 / (chosen.nbytes + 1)))
        )
        for low in range(0, len(batch), step):
            part = chosen.slice(low, step)
            if waiting and (
                sum(map(len, waiting)) + len(part) > ROWS_AT_ONCE
                or sum(one.nbytes for one in waiting) > WEIGHTS_AT_ONCE * 8
            ):
                rows = rows_of(joined(), columns, places, file, start, vocabulary)
                yield rows
                start += len(rows.ids)
                waiting.clear()
            if len(part):
                waiting.append(part)
    if waiting:
        yield rows_of(joined(), columns, places, file, start, vocabulary)


def dataset_files(folder: Path) -> list[Path]:
    """The Arrow files of a dataset saved with `save_to_disk`, in order.

    Raises:
        InputError: rows were selected or shuffled without being written anew, or files are missing.
    """
    import orjson

    try:
        state = orjson.loads((folder / "state.json").read_bytes())
        files = [folder / one["filename"] for one in state["_data_files"]]
        selected = state.get("_indices_data_files") or state.get("_indices_files")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{folder / 'state.json'} cannot be read ({error})") from error
    if selected:
        raise InputError(
            f"{folder}: rows of the dataset were selected or reordered; save it again after"
            " .flatten_indices()"
        )
    missing = [path for path in files if not path.is_file()]
    if missing or not files:
        raise InputError(f"{folder}: {missing[0] if missing else 'data'} is missing; save it again")
    return files


def splits(folder: Path) -> list[str]:
    """Names of the splits of a saved dictionary of datasets."""
    return sorted(path.parent.name for path in folder.glob("*/state.json"))
