"""Paired bootstrap over queries, and Holm's correction (the study, section 6).

The statistics of a row are standardised effects: the gain, and the three main effects, each
divided by the population standard deviation across the eight configurations. Every draw resamples
queries with replacement, the same queries for all configurations, and computes effect and
deviation anew. The two-sided p is centred at the observed value:
`p = (1 + #{|d* - d| >= |d|}) / (B + 1)` (Davison and Hinkley, 1997, section 4.2).

All rows of a collection share their draws, so the means of all of them are one matrix product. The
draws follow from the seed, the collection's name and the number of queries alone: neither the
order of rows nor which rows are asked for changes a p.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whencount.attribution import QUALITY_COLUMNS, UNDEFINED_BELOW
from whencount.errors import InputError
from whencount.progress import progress
from whencount.scoring import SWITCHES

if TYPE_CHECKING:
    import pandas as pd

EFFECTS = ("full", *SWITCHES)
"""What is tested: full BM25 against the inner product, then the three main effects."""

FAMILIES = {"full": ("full",), "main_effects": SWITCHES}
"""Effects that are corrected together, over all rows of a study."""

FEWEST_QUERIES = 5
"""Rows with fewer are not tested: resamples of one query are all alike, and its p the smallest."""

# A draw that reaches the border |d* - d| = |d| up to rounding counts, whatever the last bits of
# the matrix product are: they depend on where in the matrix a row stands.
_BORDER = 1e-9
_CELLS_PER_BLOCK = 1 << 20


@dataclass(frozen=True)
class Attainability:
    """Whether Holm's correction can let anything pass, given the number of draws.

    Attributes:
        tests: hypotheses in the family.
        draws: bootstrap draws B.
        alpha: the level.
        smallest: the smallest Holm p there can be, `tests / (B + 1)`.
        passes: whether that is at most alpha.
        message: one sentence for a person.
    """

    tests: int
    draws: int
    alpha: float
    smallest: float
    passes: bool
    message: str


def attainability(tests: int, draws: int, alpha: float = 0.05) -> Attainability:
    """Check before running whether the smallest attainable Holm p can pass `alpha`.

    Raises:
        InputError: there are no tests or no draws, or alpha is not between 0 and 1.
    """
    if tests < 1 or draws < 1:
        raise InputError(f"{tests} tests with {draws} draws; both must be at least 1")
    if not 0 < alpha < 1:
        raise InputError(f"alpha is {alpha}; it must lie between 0 and 1")
    smallest = min(1.0, tests / (draws + 1))
    passes = smallest <= alpha
    needed = math.ceil(tests / alpha) - 1
    message = (
        f"with {draws:,} draws and {tests:,} tests the smallest attainable Holm p is"
        f" {smallest:.4g}, "
    ) + (
        f"which can pass {alpha:g}"
        if passes
        else f"so nothing can pass {alpha:g}; use at least {needed:,} draws"
    )
    return Attainability(tests, draws, alpha, smallest, passes, message)


@dataclass(frozen=True)
class Bootstrap:
    """Observed standardised effects and their bootstrap p.

    Attributes:
        observed: float64, shape (rows, 4), in the order of EFFECTS; 0 where the deviation across
            the configurations is at most 1e-12. The first column is the margin.
        p: float64, shape (rows, 4), between 1 / (draws + 1) and 1.
        draws: how many draws were made.
    """

    observed: NDArray[np.float64]
    p: NDArray[np.float64]
    draws: int


def resamples(
    queries: int, draws: int, *, collection: str, seed: int
) -> Iterator[NDArray[np.float64]]:
    """Yield how often each query is drawn: blocks of shape (draws in the block, queries), float64.

    The counts of a draw sum to `queries`. A block is at most 8 MiB, or one draw. The
    same arguments yield the same blocks.
    """
    name = int.from_bytes(hashlib.sha256(collection.encode()).digest()[:16], "big")
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, name])))
    per_block = max(1, min(256, _CELLS_PER_BLOCK // max(queries, 1)))
    for start in range(0, draws, per_block):
        size = min(per_block, draws - start)
        # int64 draws take a whole word each, so blocks are a pure cut of one stream.
        drawn = random.integers(0, queries, size=(size, queries), dtype=np.int64)
        drawn += np.arange(size, dtype=np.int64)[:, None] * queries
        counts = np.bincount(drawn.reshape(-1), minlength=size * queries)
        yield counts.reshape(size, queries).astype(np.float64)


def _contrasts(quality: NDArray[np.float64]) -> NDArray[np.float64]:
    """The seven contrasts of a 2 x 2 x 2 design; shape (..., 8) to (..., 7).

    Contrast n (from 1) is the mean over configurations c of `Q_c * (-1)^(bits that n and c share)`:
    the Walsh-Hadamard transform without its constant. By Parseval the population variance across
    the eight is the sum of the squared contrasts. A switch that changes nothing has exact zeros:
    differences come from pairs of equal numbers.
    """
    cube = quality.reshape(*quality.shape[:-1], 2, 2, 2)
    for axis in (-3, -2, -1):
        off, on = np.take(cube, 0, axis=axis), np.take(cube, 1, axis=axis)
        cube = np.stack([off + on, off - on], axis=axis)
    return cube.reshape(*quality.shape[:-1], 8)[..., 1:] / 8


# Contrast numbers - 1 of the switches, and the contrasts that make up Q111 - Q000: those of an odd
# number of switches, each with the factor -2.
_MAIN = [0b100 - 1, 0b010 - 1, 0b001 - 1]
_ODD = [*_MAIN, 0b111 - 1]


def _effects(
    contrasts: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Effects in the order of EFFECTS and deviation; shape (..., 7, rows) to (..., 4, rows).

    The deviation has the shape (..., 1, rows). Effects are not yet divided by it; they are 0 where
    it is at most 1e-12.
    """
    effects = np.empty((*contrasts.shape[:-2], len(EFFECTS), contrasts.shape[-1]))
    effects[..., 0, :] = contrasts[..., _ODD, :].sum(axis=-2)
    effects[..., 1:, :] = contrasts[..., _MAIN, :]
    effects *= -2
    np.square(contrasts, out=contrasts)
    deviation = np.sqrt(contrasts.sum(axis=-2, keepdims=True))
    return effects * (deviation > UNDEFINED_BELOW), deviation


def bootstrap(
    quality: ArrayLike, *, collection: str, draws: int = 10_000, seed: int = 0
) -> Bootstrap:
    """Paired bootstrap of all rows of one collection, with common draws.

    A draw in which the configurations do not differ (deviation at most 1e-12) has the effect 0,
    and so counts against significance.

    Args:
        quality: per-query quality, shape (rows, queries, 8), no NaN; all rows on the same queries
            in the same order.
        collection: names the draws.
        draws: B.
        seed: of the study.

    Raises:
        InputError: no draws, no queries, or a quality that is not finite.
    """
    array = np.asarray(quality, dtype=np.float64)
    if array.ndim != 3 or array.shape[-1] != len(QUALITY_COLUMNS):
        raise ValueError(f"shape {array.shape}: (rows, queries, 8) is needed")
    rows, queries, _ = array.shape
    if draws < 1:
        raise InputError(f"{draws} bootstrap draws; at least 1 is needed")
    if queries == 0:
        raise InputError(f"collection {collection!r} has no evaluated query to resample")
    if not np.isfinite(array).all():
        raise InputError(
            f"collection {collection!r}: a per-query quality is not finite; leave out queries"
            " without a positive judgement"
        )
    # (queries, 7 x rows): one product with the counts gives every contrast of every row.
    contrasts = np.ascontiguousarray(_contrasts(array).transpose(1, 2, 0))
    matrix = contrasts.reshape(queries, -1)
    effects, deviation = _effects(contrasts.mean(axis=0))
    observed = effects / np.where(deviation > UNDEFINED_BELOW, deviation, 1.0)
    bound = np.abs(observed) * (1 - _BORDER)
    extreme = np.zeros(observed.shape, dtype=np.int64)
    for counts in resamples(queries, draws, collection=collection, seed=seed):
        means = (counts @ matrix) / queries
        effects, deviation = _effects(means.reshape(len(counts), -1, rows))
        # |d* - d| >= |d| with d* = effect / deviation, times the deviation. Without deviation the
        # effect is 0 and d* counts as 0, which both sides of the product give as well.
        effects -= observed * deviation
        extreme += (np.abs(effects, out=effects) >= bound * deviation).sum(axis=0)
    return Bootstrap(observed.T.copy(), (1 + extreme.T) / (draws + 1), draws)


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """Holm's step-down adjusted p of one family (Holm, 1979); any shape, kept.

    Raises:
        InputError: a p is missing.
    """
    from statsmodels.stats.multitest import multipletests

    array = np.asarray(p, dtype=np.float64)
    if np.isnan(array).any():
        raise InputError("a p of the family is missing; leave rows without a test out of it")
    if array.size == 0:
        return array.copy()
    adjusted: NDArray[np.float64] = multipletests(array.reshape(-1), method="holm")[1]
    return adjusted.reshape(array.shape)


def significance(
    per_query: pd.DataFrame,
    keys: Sequence[str],
    *,
    draws: int = 10_000,
    seed: int = 0,
    group: str = "collection",
) -> pd.DataFrame:
    """Bootstrap p and Holm p of every row of a study.

    Rows of a collection are paired by query id, whatever their order.

    Args:
        per_query: one line per row and evaluated query, with the columns `group`, `keys`,
            query_id, q000..q111.
        keys: the columns that, with `group`, name a row.
        draws: B.
        seed: of the study.
        group: the column whose rows share queries and draws.

    Returns:
        One line per row, sorted: `group`, `keys`, queries, statistic_full, statistic_idf, ...,
        p_full, p_idf, p_saturation, p_length, holm_full, holm_idf, holm_saturation, holm_length.
        Holm's families are FAMILIES over all lines. A row with fewer than FEWEST_QUERIES queries
        has p 1 and stays in its family.

    Raises:
        InputError: a row of a collection misses queries that another has, or has one twice.
    """
    import pandas as pd

    names = [group, *keys]
    ordered = per_query.sort_values([*names, "query_id"], kind="stable")
    parts = []
    collections = list(ordered.groupby(group, sort=True))
    for collection, lines in progress(collections, len(collections), "bootstrap", "collection"):
        rows = lines[names].drop_duplicates()
        quality = _paired(lines, rows, names)
        result = bootstrap(quality, collection=str(collection), draws=draws, seed=seed)
        part = rows.reset_index(drop=True)
        part["queries"] = quality.shape[1]
        for index, effect in enumerate(EFFECTS):
            part[f"statistic_{effect}"] = result.observed[:, index]
        for index, effect in enumerate(EFFECTS):
            part[f"p_{effect}"] = (
                result.p[:, index] if part["queries"][0] >= FEWEST_QUERIES else 1.0
            )
        parts.append(part)
    if not parts:
        raise InputError("no rows to test; check the selection")
    table = pd.concat(parts, ignore_index=True)
    for effects in FAMILIES.values():
        adjusted = holm(table[[f"p_{effect}" for effect in effects]].to_numpy())
        table[[f"holm_{effect}" for effect in effects]] = adjusted
    return table


def _paired(lines: pd.DataFrame, rows: pd.DataFrame, names: list[str]) -> NDArray[np.float64]:
    """Lines sorted by row and query as an array, shape (rows, queries, 8)."""
    queries = lines["query_id"].nunique()
    repeated = lines.duplicated([*names, "query_id"])
    if repeated.any():
        first = lines[repeated].iloc[0]
        raise InputError(
            f"query {first['query_id']!r} stands twice in the row"
            f" {dict(first[names])}; a row has each query once"
        )
    if len(lines) != queries * len(rows):
        sizes = lines.groupby(names, sort=False, dropna=False)["query_id"].size()
        raise InputError(
            f"the rows of a collection must have the same queries: {dict(rows.iloc[0])} and its"
            f" like have between {sizes.min()} and {sizes.max()} of {queries}; compute the rows"
            " again from one set of qrels"
        )
    values = lines[list(QUALITY_COLUMNS)].to_numpy(dtype=np.float64)
    return values.reshape(len(rows), queries, len(QUALITY_COLUMNS))
