"""From passages to fit states, and from fit states to a fitted representation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whencount.encoders import Encoder

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


@dataclass(frozen=True)
class FitStates:
    """States of the fit passages, memory-mapped from a directory (see `fit_states`).

    Attributes:
        pooled: shape (passages, dimensions), mean content-token state; zero without content.
        token_counts: int32, shape (passages,), content tokens of each passage.
        tokens: shape (sampled states, dimensions), passage by passage.
        token_passages: int32, shape (sampled states,), the passage each state is from.
        scale_tokens: shape (states, dimensions), all content-token states of the first passages.
        scale_offsets: int64, shape (scale passages + 1,).
        validation: bool, shape (passages,), the passages kept for validation.
        manifest: what was encoded and how.
    """

    pooled: NDArray[Any]
    token_counts: NDArray[np.int32]
    tokens: NDArray[Any]
    token_passages: NDArray[np.int32]
    scale_tokens: NDArray[Any]
    scale_offsets: NDArray[np.int64]
    validation: NDArray[np.bool_]
    manifest: Mapping[str, Any]

    @classmethod
    def load(cls, path: str | Path) -> FitStates:
        """Open a directory written by `fit_states`."""
        raise NotImplementedError


def fit_states(
    encoder: Encoder,
    passages: Iterable[tuple[str, str]],
    out: str | Path,
    *,
    seed: int = 0,
    states_per_passage: int = 10,
    maximum_states: int = 2_000_000,
    scale_passages: int = 1024,
    validation_share: float = 0.1,
    dtype: str = "float32",
    total: int | None = None,
) -> FitStates:
    """Encode the fit passages (id, text) once and keep the states that bases are fitted on.

    The directory `out` appears whole. Validation passages are drawn with `seed`; the states of a
    passage are sampled with a seed derived from (seed, passage id), so they depend neither on the
    order of the passages nor on batches.

    Raises:
        InputError: fewer than two passages with content, or a duplicate passage id.
    """
    raise NotImplementedError


def fit_basis(
    states: str | Path,
    spec: RepresentationSpec,
    out: str | Path,
    *,
    dictionary: str | Path | None = None,
    device: str = "auto",
    threads: int | None = None,
) -> dict[str, Any]:
    """Fit the basis of a representation, find its scale, and write both to the directory `out`.

    Args:
        states: a directory written by `fit_states`.
        spec: the representation.
        out: the directory, written whole: `basis.safetensors` and `manifest.json`.
        dictionary: a directory written by `fit_basis` whose basis is taken as it is, so that only
            the scale is found anew (`sae_shared`: the directory of the token SAE).
        device: "auto", "cpu" or "cuda".
        threads: of the fit on a CPU; None takes every core.

    Returns:
        The manifest.

    Raises:
        InputError: unknown basis, granularity or option, too few states, or a dictionary of another
            basis.
    """
    raise NotImplementedError
