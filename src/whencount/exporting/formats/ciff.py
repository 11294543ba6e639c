"""The Common Index File Format (Lin et al., 2020, arXiv:2003.08276)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from whencount.engine.storage import open_index, write_index
from whencount.exporting.ciff import write_ciff
from whencount.vectors import SparseVectors

if TYPE_CHECKING:
    from whencount.exporting.formats import Baked


def write(path: Path, baked: Baked) -> None:
    """An inverted index of whole numbers; terms are the numbers of features in ten digits.

    The names of the features stand beside it, `FILE.features.txt`.
    """
    with TemporaryDirectory(dir=path.parent) as scratch:
        index = Path(scratch) / "index"
        ids: list[str] = []

        def seen() -> Iterator[SparseVectors]:
            for block in baked.blocks():
                ids.extend(block.ids)
                yield block

        write_index(index, seen())
        opened = open_index(index)
        write_ciff(path, opened, ids)
    baked.names.write(path.with_name(f"{path.name}.features.txt"), opened.vocabulary_size)
