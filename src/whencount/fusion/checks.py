"""Numbers that the claims of the derivation are held against, from one collection and dense arm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from whencount.fusion import gates
from whencount.fusion.arms import Arms, ranks
from whencount.fusion.calibration import Pairs, halves
from whencount.fusion.nulls import Null
from whencount.fusion.profile import Profile
from whencount.fusion.selectors import maximum_tail
from whencount.fusion.stages import admission_floor, pool_size_gate, run_stages
from whencount.significance import resamples

if TYPE_CHECKING:
    from whencount.fusion.evaluation import Inputs, Options

LEVELS = (0.01, 0.05, 0.1)
_DEPTHS = (5, 10, 15, 20, 30, 50, 100)
_FLOORS = (0.0005, 0.005, 0.05)
_DRAWS = 2_000
_PIPELINE_QUERIES = 200
_INDEPENDENCE_QUERIES = 20


class Checks:
    """Gathers the numbers; `table` gives them.

    Args:
        depth: rows of each list that count.
        documents: N.
    """

    def __init__(self, depth: int, documents: int) -> None:
        self._depths = [one for one in _DEPTHS if one < depth] + [depth]
        self._documents = documents
        self._passed = 0
        self._gate = np.zeros(4, dtype=np.int64)
        self._starved = np.zeros(3, dtype=np.int64)
        self._adds: list[float] = []
        self._lines: list[tuple[str, str, float, float, float]] = []

    def query(
        self,
        arms: Arms,
        lexical: NDArray[np.float64],
        dense: NDArray[np.float64],
        relevance: NDArray[np.float64],
        profile: Profile | None,
    ) -> None:
        """Gate and reservation on the rows of the first queries; what the lexical score adds."""
        if self._passed < _PIPELINE_QUERIES:
            self._passed += 1
            for depth in self._depths:
                self._pass(_cut(arms, depth))
        if profile is not None:
            added = _added(profile.conditional(dense, lexical), dense, relevance)
            if added is not None:
                self._adds.append(added)

    def _pass(self, arms: Arms) -> None:
        gated = np.zeros(len(arms), dtype=bool)
        gated[pool_size_gate()(arms, np.flatnonzero(arms.admitted))] = True
        pool = int(arms.admitted.sum())
        only = np.isnan(arms.dense) & arms.admitted
        last = gates.last_surviving_rank(pool)
        place = ranks(arms.lexical)
        survivors = gated & only
        wrong = survivors.sum() if pool <= 30 else 0
        # Beyond 30 rows exactly those up to the last surviving rank are let through.
        if pool > 30 and last is not None:
            wrong = (survivors != (only & (place <= last))).sum()
        self._gate += (int(only.sum()), int(survivors.sum()), int(pool <= 30), int(wrong))
        rows = Arms(*(getattr(arms, name)[arms.admitted] for name in arms.__dataclass_fields__))
        for floor in _FLOORS:
            kept = run_stages(rows, [admission_floor(floor, floor), pool_size_gate()])
            short = len(kept.rows) < min(gates.SHOWN, len(rows))
            self._starved += (1, int(short), int(len(kept.kept) < min(gates.SHOWN, len(rows))))

    def calibration(self, drawn: Mapping[str, Pairs], calibrated: tuple[Null, Null]) -> None:
        """Whether maxima over rows that are all irrelevant are as rare as their tails say."""
        pairs = drawn["judged"]
        _, rest = halves(pairs)
        mine = pairs.only(rest & ~pairs.relevant)
        starts = np.flatnonzero(np.diff(mine.queries, prepend=-1))
        for arm, null in zip(("dense", "lexical"), calibrated, strict=True):
            scores = getattr(mine, arm)
            best = np.maximum.reduceat(scores, starts) if len(mine) else np.empty(0)
            sizes = np.diff(starts, append=len(mine))
            tails = np.array(
                [
                    maximum_tail(float(below), int(size))
                    for below, size in zip(null.below(best), sizes, strict=True)
                ]
            )
            for level in LEVELS:
                hits = int((tails <= level).sum())
                self._add(
                    "null_maximum",
                    f"{arm} {level}",
                    hits / len(tails) if len(tails) else np.nan,
                    _lower_bound(hits, len(tails)),
                    len(tails),
                )
            self._add(
                "smallest_maximum_tail",
                arm,
                maximum_tail(1 - 1 / (null.draws + 1), int(sizes.max()) if len(sizes) else 1),
            )

    def independence(
        self, inputs: Inputs, profiles: Mapping[str, Profile], options: Options
    ) -> None:
        """S* of the same rows out of lists of other depths and orders: the largest difference."""
        if "judged" not in profiles:
            return
        profile, worst, rows = profiles["judged"], 0.0, 0
        for query in range(min(_INDEPENDENCE_QUERIES, inputs.scores.size[0])):
            run = inputs.dense_run
            mine = run.document_positions[run.query_positions == query].astype(np.int64)
            if not len(mine):
                continue
            whole = _scored(inputs, profile, query, mine)
            for part in (mine[::-1], mine[: max(1, len(mine) // 3)], mine[1::2]):
                if len(part):
                    place = np.array([int(np.flatnonzero(mine == one)[0]) for one in part])
                    apart = np.abs(_scored(inputs, profile, query, part) - whole[place])
                    worst, rows = max(worst, float(apart.max())), rows + len(part)
        self._add("candidate_independence", "largest difference", worst, count=rows)

    def panel(self, pairs: Pairs, profiles: Mapping[str, Profile]) -> None:
        """How many rows the panel has, and how many of them are judged relevant."""
        self._add("panel", "pairs", len(pairs), count=int(pairs.relevant.sum()))
        for name, profile in profiles.items():
            self._add("panel", f"rows beyond the floor, {name}", profile.panel_rows)
            self._add("panel", f"null rows beyond the floor, {name}", profile.null_rows)

    def table(self) -> pd.DataFrame:
        """A line per number: `check`, `quantity`, `value`, `bound`, `count`."""
        only, survivors, small, wrong = map(int, self._gate)
        self._add("gate", "contradictions", wrong, count=only)
        self._add("gate", "lexical-only survivors", survivors, count=only)
        self._add("gate", "pools of at most 30 rows", small)
        runs, short, without = map(int, self._starved)
        self._add("reservation", "outputs that are too short", short, count=runs)
        self._add("reservation", "would be too short without a reserve", without, count=runs)
        adds = np.asarray(self._adds)
        low, high = _mean_interval(adds)
        mean = float(adds.mean()) if len(adds) else np.nan
        self._add(
            "redundancy", "J of relevant rows less J of dense neighbours", mean, low, len(adds)
        )
        self._add("redundancy", "upper end", high, count=len(adds))
        columns = ["check", "quantity", "value", "bound", "count"]
        return pd.DataFrame(self._lines, columns=columns)

    def _add(
        self,
        check: str,
        quantity: str,
        value: float,
        bound: float = float("nan"),
        count: float = float("nan"),
    ) -> None:
        self._lines.append((check, quantity, float(value), float(bound), float(count)))


def _cut(arms: Arms, depth: int) -> Arms:
    """The same with lists of a smaller depth."""
    dense, lexical = (
        np.where((ranks(one) < depth) & ~np.isnan(one), one, np.nan)
        for one in (arms.dense, arms.lexical)
    )
    return Arms(
        dense,
        lexical,
        np.where(np.isnan(dense), 1.0, arms.dense_tail),
        np.where(np.isnan(lexical), 1.0, arms.lexical_tail),
    )


def _added(
    conditional: NDArray[np.float64], dense: NDArray[np.float64], relevance: NDArray[np.float64]
) -> float | None:
    """Mean J of relevant rows less that of the irrelevant ones next to them in the dense order."""
    good, bad = np.flatnonzero(relevance > 0), np.flatnonzero(relevance <= 0)
    if not len(good) or not len(bad):
        return None
    rising = bad[np.argsort(dense[bad], kind="stable")]
    at = np.searchsorted(dense[rising], dense[good])
    below, above = np.maximum(at - 1, 0), np.minimum(at, len(rising) - 1)
    beside = (conditional[rising[below]] + conditional[rising[above]]) / 2
    return float((conditional[good] - beside).mean())


def _scored(
    inputs: Inputs, profile: Profile, query: int, documents: NDArray[np.int64]
) -> NDArray[np.float64]:
    queries = np.full(len(documents), query)
    return profile.score(
        inputs.scores.dense(queries, documents), inputs.scores.lexical(queries, documents)
    )


def _lower_bound(hits: int, trials: int, confidence: float = 0.95) -> float:
    """One-sided lower bound of Clopper and Pearson."""
    from scipy.stats import beta

    return 0.0 if hits == 0 else float(beta.ppf(1 - confidence, hits, trials - hits + 1))


def _mean_interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """95 % percentile interval of the mean, queries resampled; NaN with fewer than five."""
    if len(values) < 5:
        return float("nan"), float("nan")
    blocks = resamples(len(values), _DRAWS, collection="redundancy", seed=0)
    means = np.concatenate([block @ values for block in blocks]) / len(values)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)
