"""The seven bases: each turns states into non-negative codes, one file per basis."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from whencount.bases.base import FORMAT, Basis, Codes, TrainingStates
from whencount.bases.gaussian import Gaussian
from whencount.bases.identity import Identity
from whencount.bases.kmeans import Kmeans
from whencount.bases.pca import Pca
from whencount.bases.pq import Pq
from whencount.bases.rq import Rq
from whencount.bases.sae import Sae
from whencount.errors import InputError

BASES: dict[str, type[Basis[Any]]] = {
    basis.name: basis for basis in (Identity, Gaussian, Pca, Kmeans, Pq, Rq, Sae)
}

__all__ = ["BASES", "Basis", "Codes", "TrainingStates", "basis_type", "load_basis"]


def basis_type(name: str) -> type[Basis[Any]]:
    """The basis of that name.

    Raises:
        InputError: there is none.
    """
    if name not in BASES:
        raise InputError(f"basis {name!r} is unknown; the bases are {sorted(BASES)}")
    return BASES[name]


def load_basis(path: str | Path) -> Basis[Any]:
    """Read a basis from a directory that `Basis.save` wrote into.

    Raises:
        InputError: the directory holds no basis, or one of another format.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = Path(path)
    try:
        record = json.loads((path / "basis.json").read_text())
        tensors = load_file(path / "basis.safetensors")
        if record.pop("format") != FORMAT:
            raise InputError(f"{path}: not of format {FORMAT!r}; fit the basis again")
        kind = basis_type(record.pop("basis"))
        options = kind.parse_options(record.pop("options"))
        dimensions = int(record.pop("dimensions"))
        record.pop("vocabulary_size")
    except (OSError, KeyError, ValueError, SafetensorError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} holds no whole basis ({error}); fit it again") from error
    return kind(tensors, options, dimensions, record)
