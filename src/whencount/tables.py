"""Tables between the stages: Parquet, written whole, with the same bytes for the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from whencount.errors import InputError
from whencount.files import atomic_file

if TYPE_CHECKING:
    import pandas as pd


def write_table(frame: pd.DataFrame, path: str | Path) -> None:
    """Write a table as Parquet, without its index; whole or not at all.

    Raises:
        InputError: the place cannot be written, or the disk is full.
    """
    with atomic_file(path) as temporary:
        frame.to_parquet(temporary, index=False, compression="zstd")


def read_table(path: str | Path) -> pd.DataFrame:
    """Read a table that `write_table` wrote.

    Raises:
        InputError: the file is missing, truncated or no Parquet.
    """
    import pandas as pd
    import pyarrow as pa

    try:
        return pd.read_parquet(path)
    except (OSError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"{path} cannot be read as a Parquet table ({reason}); delete it and run again"
        ) from error
