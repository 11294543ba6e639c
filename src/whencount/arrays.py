"""Arrays that come in pieces: .npy files that grow row by row, segments put in order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


class ArrayWriter:
    """Append blocks of rows to an .npy file; `close` writes the final shape into its header."""

    def __init__(self, path: str | Path, dtype: str, width: int) -> None:
        self._stream = Path(path).open("w+b")  # noqa: SIM115 - closed by `close`
        self._dtype = np.dtype(dtype)
        self._width = width
        self._rows = 0
        self._header()

    def append(self, rows: NDArray[Any]) -> None:
        """Add rows, shape (n, width)."""
        self._stream.write(np.ascontiguousarray(rows, dtype=self._dtype).data)
        self._rows += len(rows)

    def close(self) -> None:
        """Finish the file."""
        self._header()
        self._stream.close()

    def _header(self) -> None:
        # numpy pads the header so that the first axis can grow in place.
        self._stream.seek(0)
        description = {
            "descr": np.lib.format.dtype_to_descr(self._dtype),
            "fortran_order": False,
            "shape": (self._rows, self._width),
        }
        np.lib.format.write_array_header_1_0(self._stream, description)


def segment_order(positions: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where to take rows from so that segments stand by rising position.

    Args:
        positions: int64, shape (segments,), distinct: the place each segment shall have.
        sizes: int64, shape (segments,), rows of each segment, as they stand now.

    Returns:
        int64, shape (rows,): row i of the result is row order[i] now.
    """
    starts = np.cumsum(sizes) - sizes
    order = np.argsort(positions)
    moved = sizes[order]
    shift = starts[order] - (np.cumsum(moved) - moved)
    return np.asarray(np.arange(int(sizes.sum())) + np.repeat(shift, moved), dtype=np.int64)
