"""A representation: a fitted basis at a granularity, with its scale."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from whencount.bases import Basis, Codes, basis_type, load_basis
from whencount.encoders import segment_sum
from whencount.errors import InputError

GRANULARITIES = ("pooled", "token")


@dataclass(frozen=True)
class RepresentationSpec:
    """What defines a representation: a basis, its options, a granularity and a seed.

    Attributes:
        name: what it is called in tables and paths.
        basis: identity, gaussian, pca, kmeans, pq, rq or sae.
        granularity: "pooled" or "token".
        seed: of every random draw of the fit.
        options: the basis's own options; what is left out has the published value.
        fitted_on: the granularity whose states the basis is fitted on; None is `granularity`
            (`sae_shared` says "token").
    """

    name: str
    basis: str
    granularity: str
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    fitted_on: str | None = None

    def __post_init__(self) -> None:
        for what in (self.granularity, self.fitted_on or self.granularity):
            if what not in GRANULARITIES:
                raise InputError(
                    f"representation {self.name!r}: granularity {what!r} is unknown; choose one of"
                    f" {list(GRANULARITIES)}"
                )
        basis_type(self.basis).parse_options(self.options)


@dataclass(frozen=True)
class Representation:
    """A fitted basis at a granularity.

    Attributes:
        basis: the fitted basis.
        granularity: "pooled" (codes of the mean state) or "token" (sum of the states' codes).
        scale: what every value is divided by.
    """

    basis: Basis[Any]
    granularity: str
    scale: float

    @classmethod
    def load(cls, path: str | Path) -> Representation:
        """Read a directory written by `whencount.fitting.fit_basis`.

        Raises:
            InputError: it is not there, or not whole.
        """
        path = Path(path)
        basis = load_basis(path)
        try:
            manifest = json.loads((path / "manifest.json").read_text())
            return cls(basis, manifest["granularity"], float(manifest["scale"]))
        except (OSError, KeyError, ValueError) as error:
            raise InputError(
                f"{path} holds no whole representation ({error}); fit the basis again"
            ) from error

    def encode(
        self, states: torch.Tensor, pooled: torch.Tensor, offsets: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
        """Vectors of some texts, as (row, feature, value) triples, rows rising.

        Args:
            states: content-token states, float32, shape (states, dimensions).
            pooled: their means, float32, shape (texts, dimensions).
            offsets: int64, shape (texts + 1,); text i owns states offsets[i]..offsets[i + 1] - 1.
        """
        rows, features, values = raw_values(self.basis, self.granularity, states, pooled, offsets)
        scaled = (values / self.scale).astype(np.float32)
        keep = scaled > 0
        return rows[keep], features[keep], scaled[keep]


def raw_values(
    basis: Basis[Any],
    granularity: str,
    states: torch.Tensor,
    pooled: torch.Tensor,
    offsets: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """As `Representation.encode`, before the division by the scale; values positive, float64.

    A text without content tokens has no values at either granularity.
    """
    if granularity == "token":
        return aggregate(basis.encode(states), offsets)
    texts = np.flatnonzero(np.diff(offsets))
    codes = basis.encode(pooled[torch.from_numpy(texts).to(pooled.device)])
    rows, features, values = aggregate(codes, np.arange(len(texts) + 1))
    return texts[rows], features, values


def aggregate(
    codes: Codes, offsets: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """Sum codes over consecutive states, without a dense states x features array.

    Args:
        codes: of the states.
        offsets: int64, shape (rows + 1,).

    Returns:
        (row, feature, value) triples, each pair once, rows rising, values positive.
    """
    count = len(offsets) - 1
    if codes.features is None:
        dense = segment_sum(codes.values, offsets).cpu().numpy()
        rows, features = np.nonzero(dense)
        return rows, features.astype(np.int32), dense[rows, features].astype(np.float64)
    width = codes.features.shape[1]
    size = (count, codes.vocabulary_size)
    states = sparse.csr_array(
        (
            codes.values.cpu().numpy().ravel().astype(np.float64),
            codes.features.cpu().numpy().ravel(),
            np.arange(len(codes.values) + 1) * width,
        ),
        shape=(len(codes.values), size[1]),
    )
    members = sparse.csr_array(
        (np.ones(len(codes.values)), np.arange(len(codes.values)), offsets),
        shape=(count, len(codes.values)),
    )
    sums = (members @ states).tocsr()
    rows = np.repeat(np.arange(count), np.diff(sums.indptr))
    keep = sums.data > 0
    return (
        rows[keep].astype(np.int64),
        sums.indices[keep].astype(np.int32),
        sums.data[keep].astype(np.float64),
    )
