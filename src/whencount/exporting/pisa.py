"""PISA (Mallia et al., 2019, OSIRRC): an engine that prunes, searched through its own library.

The wheel of `pyterrier-pisa` carries PISA compiled; here its native module is loaded alone, without
PyTerrier and without Java. It is optional: `PACKAGES` says what to install.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import module_from_spec, spec_from_file_location
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whencount.errors import InputError
from whencount.exporting.ciff import CiffFile, term_of
from whencount.exporting.ties import Best, best
from whencount.files import atomic_directory
from whencount.vectors import SparseVectors

PACKAGES = ("pyterrier-pisa==0.4.9", "tbb==2020.3.254")
"""To be installed with `pip install --no-deps`; wheels are there for Linux on x86-64."""

ALGORITHMS = ("maxscore", "wand", "block_max_wand", "block_max_maxscore", "ranked_or")
"""How PISA may find the best k; the last does not prune."""

_ENCODING = "block_simdbp"
_EXACT = 1 << 24


@cache
def native() -> Any:
    """PISA's compiled module.

    Raises:
        InputError: it is not installed, or does not load on this machine.
    """
    name = "pyterrier_pisa"
    remedy = f"pip install --no-deps {' '.join(PACKAGES)}"
    try:
        folder = Path(str(distribution("pyterrier-pisa").locate_file(name)))
        path = next(
            folder / f"_pisathon{suffix}"
            for suffix in EXTENSION_SUFFIXES
            if (folder / f"_pisathon{suffix}").is_file()
        )
        for library in _threading_libraries():
            ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
        spec = spec_from_file_location("_pisathon", path)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    except (PackageNotFoundError, StopIteration) as error:
        raise InputError(f"PISA is not installed; {remedy}") from error
    except (ImportError, OSError) as error:
        raise InputError(f"PISA does not load here ({error}); {remedy}") from error
    return module


def _threading_libraries() -> list[Path]:
    """Where the wheel of tbb put the library that PISA is linked with."""
    files = distribution("tbb").files or []
    named = [Path(str(one.locate())) for one in files if one.name == "libtbb.so.2"]
    places = [*named, Path(sys.prefix) / "lib" / "libtbb.so.2"]
    return [path for path in places if path.is_file()][:1]


def write_collection(ciff: str | Path, folder: str | Path) -> None:
    """Turn a CIFF file into the folder that PISA builds its index from; whole or not at all.

    It holds PISA's binary collection (`inv.docs`, `inv.freqs`, `inv.sizes`: uint32 sequences, each
    with its length before it) and the names of terms and documents; a document is named by its
    position.

    Raises:
        InputError: PISA is not there, or the file is no CIFF.
    """
    module = native()
    source = CiffFile(ciff)
    with atomic_directory(folder) as target:
        with (
            (target / "inv.docs").open("wb") as documents,
            (target / "inv.freqs").open("wb") as weights,
        ):
            np.array([1, source.header.documents], dtype=np.uint32).tofile(documents)
            with (target / "fwd.terms").open("w") as terms:
                for term, positions, values in source.lists():
                    terms.write(f"{term}\n")
                    for stream, numbers in ((documents, positions), (weights, values)):
                        np.array([len(numbers)], dtype=np.uint32).tofile(stream)
                        numbers.astype(np.uint32).tofile(stream)
        lengths = np.fromiter((length for _, length in source.records()), np.uint32)
        with (target / "inv.sizes").open("wb") as sizes:
            np.array([len(lengths)], dtype=np.uint32).tofile(sizes)
            lengths.tofile(sizes)
        with (target / "fwd.documents").open("w") as names:
            names.writelines(f"{position}\n" for position in range(len(lengths)))
        for kind, lexicon in (("terms", "termlex"), ("documents", "doclex")):
            module.build_binlex(str(target / f"fwd.{kind}"), str(target / f"fwd.{lexicon}"))


class Pisa:
    """An index of PISA, made from a CIFF file of whole-number weights.

    Args:
        ciff: the file.
        folder: where the index goes; it must not be there.
        block: postings per block of block-max algorithms.

    Raises:
        InputError: as `write_collection`.
    """

    def __init__(self, ciff: str | Path, folder: str | Path, block: int = 64) -> None:
        self._module = native()
        write_collection(ciff, folder)
        self._context = self._module.RetrievalContext()
        self._module.prepare_index(
            self._context, str(folder), _ENCODING, "quantized", "", block_size=block
        )
        self.documents = int(self._module.num_docs(str(folder)))
        self.bytes = sum(path.stat().st_size for path in Path(folder).glob("*.bmw.*"))

    def prepare(self, queries: SparseVectors) -> list[dict[str, float]]:
        """Queries of whole-number weights as PISA takes them."""
        if queries.nonzeros and queries.values.astype(np.float64).max() >= _EXACT:
            raise InputError("a query weight is 2^24 or more; round queries to fewer bits")
        terms = [term_of(feature) for feature in queries.features.tolist()]
        weights = queries.values.astype(float).tolist()
        edges = queries.indptr.tolist()
        return [
            dict(zip(terms[low:high], weights[low:high], strict=True))
            for low, high in pairwise(edges)
        ]

    def retrieve(
        self, queries: list[dict[str, float]], depth: int, algorithm: str
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Positions and scores, shape (queries, depth); -1 and 0 past the end; PISA's own ties."""
        shape = len(queries) * depth
        numbers, ranks = np.empty((2, shape), dtype=np.int32)
        names = np.empty(shape, dtype=object)
        values = np.empty(shape, dtype=np.float32)
        found = self._module.retrieve(
            self._context,
            algorithm,
            list(enumerate(queries)),
            k=depth,
            threads=1,
            pretokenised=True,
            query_weighted=1,
            result_qidxs=numbers,
            result_docnos=names,
            result_ranks=ranks,
            result_scores=values,
        )
        positions = np.full((len(queries), depth), -1, dtype=np.int64)
        scores = np.zeros((len(queries), depth), dtype=np.float32)
        at = numbers[:found], ranks[:found]
        positions[at] = names[:found].astype(np.int64)
        scores[at] = values[:found]
        return positions, scores

    def search(self, queries: SparseVectors, k: int, algorithm: str) -> Best:
        """The best k documents of every query by an algorithm of `ALGORITHMS`, ties by position.

        Raises:
            InputError: an unknown algorithm.
        """
        if algorithm not in ALGORITHMS:
            raise InputError(
                f"PISA has no algorithm {algorithm!r}; choose of {', '.join(ALGORITHMS)}"
            )
        prepared = self.prepare(queries)

        def ask(numbers: NDArray[np.int64], depth: int) -> tuple[Any, Any]:
            return self.retrieve([prepared[one] for one in numbers.tolist()], depth, algorithm)

        return best(ask, len(prepared), k, self.documents)
