"""One collection and one dense arm: every rule on every evaluated query, and what claims ask.

All rules order the same rows, those that the first `depth` of either list has. Equal scores stand
in the dense order, then by document position (`rules.order`). nDCG@10 is the study's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from whencount.fusion import nulls as null_checks
from whencount.fusion import reversals
from whencount.fusion.arms import Arms
from whencount.fusion.calibration import Pairs, draw, evaluation_half, halves
from whencount.fusion.checks import Checks
from whencount.fusion.events import EVENTS, checked_reversals, events, relevant_left
from whencount.fusion.gates import SHOWN
from whencount.fusion.nulls import Null
from whencount.fusion.pair_scores import PairScores
from whencount.fusion.pools import Pools, pool
from whencount.fusion.profile import FEWEST_ROWS, Profile, estimate
from whencount.fusion.rules import RULES, order
from whencount.fusion.rules.joint_density import joint_density
from whencount.fusion.rules.most_significant import most_significant_arm
from whencount.judgements import Judgements, discounts
from whencount.measures import ndcg
from whencount.progress import progress
from whencount.references.runs import Run

PROFILES = {"judged": "joint_density", "foreign": "joint_density_foreign"}
"""The rule that each null's profile makes."""
FUSED = ("reciprocal_rank", "min_max", "square_root", *PROFILES.values())
"""Rules that make one order of both lists."""


@dataclass(frozen=True)
class Options:
    """What is declared beforehand.

    Attributes:
        depth: rows of each list that count.
        floor: null tail, in one arm at least, that the panel's rows have at most.
        queries, documents: drawn for the panel and for each null: queries, and documents of each.
        seed: of all draws, and of the halves of the queries.
    """

    depth: int
    floor: float
    queries: int
    documents: int
    seed: int


@dataclass(frozen=True)
class Inputs:
    """A collection under one dense arm.

    Attributes:
        query_ids: of all queries.
        judgements: positive ones.
        judged: query positions, document positions, grades of all known judgements.
        scores: of pairs of its own queries and documents.
        foreign: the same documents with queries of other collections; None where there are none.
        lengths: words of each document, float64, shape (N,).
        dense_run, lexical_run: the lists.
    """

    query_ids: NDArray[np.object_]
    judgements: Judgements
    judged: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
    scores: PairScores
    foreign: PairScores | None
    lengths: NDArray[np.float64]
    dense_run: Run
    lexical_run: Run


@dataclass
class _Tally:
    """What is summed over the queries of a rule."""

    counts: dict[str, float] = field(default_factory=lambda: dict.fromkeys(EVENTS, 0.0))
    loss: float = 0.0
    loss_nothing_left: float = 0.0
    pairs: NDArray[np.int64] = field(default_factory=lambda: np.zeros(4, dtype=np.int64))


def evaluate(inputs: Inputs, options: Options) -> dict[str, pd.DataFrame]:
    """Calibrate on one half of the queries, evaluate all rules on the other.

    Returns:
        Tables `per_query`, `events`, `reversals`, `nulls`, `drift`, `checks` (docs/tables.md has
        their columns, but for `collection` and `dense_arm`).
    """
    mine = evaluation_half(inputs.query_ids, options.seed)
    drawn = _drawn(inputs, ~mine, options)
    tables = _null_tables(drawn, inputs.lengths)
    calibrated = _nulls(drawn["judged"])
    profiles = _profiles(drawn, calibrated, options)
    pools = pool(
        inputs.dense_run,
        inputs.lexical_run,
        inputs.scores,
        calibrated,
        inputs.judged,
        options.depth,
    )
    queries = np.flatnonzero(mine & inputs.judgements.evaluated)
    checks = Checks(options.depth, inputs.scores.size[1])
    found = _Evaluation(inputs, pools, profiles, calibrated, checks)
    for query in progress(queries, len(queries), "fusing", "query"):
        found.add(int(query))
    checks.calibration(drawn, calibrated)
    checks.independence(inputs, profiles, options)
    checks.panel(drawn["judged"], profiles)
    return tables | found.tables(queries) | {"checks": checks.table()}


class _Evaluation:
    def __init__(
        self,
        inputs: Inputs,
        pools: Pools,
        profiles: Mapping[str, Profile],
        calibrated: tuple[Null, Null],
        checks: Checks,
    ) -> None:
        self.inputs, self.pools, self.profiles = inputs, pools, profiles
        self.calibrated, self.checks = calibrated, checks
        self.tops: dict[str, list[NDArray[np.int64]]] = {}
        self.pseudo: dict[str, list[tuple[float, float]]] = {}
        self.tallies: dict[str, _Tally] = {}

    def add(self, query: int) -> None:
        """Order the rows of a query by every rule and count what that does."""
        at = self.pools.rows(query)
        arms = self.pools.arms(query)
        relevance = self.pools.relevance[at]
        dense, lexical = self.pools.dense[at], self.pools.lexical[at]
        scored = {name: rule(arms) for name, rule in RULES.items()}
        for profile, name in PROFILES.items():
            if profile in self.profiles:
                scored[name] = joint_density(arms, self.profiles[profile], dense, lexical)
        size = self.inputs.scores.size[1]
        scored["most_significant"] = most_significant_arm(arms, self.calibrated, size)
        orders = {name: order(one, arms) for name, one in scored.items()}
        documents = self.pools.documents[at]
        labels = [orders[name][:SHOWN] for name in ("lexical_first", "dense_first")]
        for name, found in orders.items():
            top = found[:SHOWN]
            self.tops.setdefault(name, []).append(documents[top])
            self.pseudo.setdefault(name, []).append(
                (_agreement(top, labels[0]), _agreement(top, labels[1]))
            )
        pairs = reversals.dense_pairs(arms)
        base = orders["dense_first"][:SHOWN]
        quality = self._quality(query, documents[base])
        for name in (one for one in FUSED if one in orders):
            tally = self.tallies.setdefault(name, _Tally())
            top = orders[name][:SHOWN]
            for event, count in events(arms, base, top, relevance).items():
                tally.counts[event] += count
            lost = quality - self._quality(query, documents[top])
            tally.loss += lost
            if not relevant_left(base, top, relevance):
                tally.loss_nothing_left += lost
            turns = self._turns(name, arms, dense, lexical)
            if turns is not None:
                place = np.empty(len(arms), dtype=np.int64)
                place[orders[name]] = np.arange(len(orders[name]))
                tally.pairs += checked_reversals(scored[name], place, pairs, turns)
        self.checks.query(arms, lexical, dense, relevance, self.profiles.get("judged"))

    def _quality(self, query: int, top: NDArray[np.int64]) -> float:
        """nDCG@10 of one query's order."""
        keys = self.inputs.judgements.keys
        wanted = query * self.inputs.judgements.documents + top
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        gains = np.where(keys[place] == wanted, self.inputs.judgements.gains[place], 0.0)
        ideal = self.inputs.judgements.ideal(SHOWN)[query]
        return float((gains * discounts(len(top))).sum() / ideal)

    def _turns(
        self,
        name: str,
        arms: Arms,
        dense: NDArray[np.float64],
        lexical: NDArray[np.float64],
    ) -> Callable[[NDArray[np.int64]], NDArray[np.bool_]] | None:
        if name == "reciprocal_rank":
            return lambda pairs: reversals.reciprocal_rank_turns(arms, pairs)
        if name == "square_root":
            return lambda pairs: reversals.square_root_turns(arms, pairs)
        if name == PROFILES["judged"]:
            profile = self.profiles["judged"]
            alone = profile.dense_alone(dense)
            added = profile.conditional(dense, lexical)
            return lambda pairs: reversals.conditional_evidence_turns(alone, added, pairs)
        return None

    def tables(self, queries: NDArray[np.int64]) -> dict[str, pd.DataFrame]:
        """Per query and rule, and what was summed over queries."""
        ids = self.inputs.query_ids[queries]
        frames = []
        for name, tops in self.tops.items():
            positions = np.full((self.inputs.judgements.queries, SHOWN), -1, dtype=np.int32)
            counts = np.zeros(self.inputs.judgements.queries, dtype=np.int32)
            for query, top in zip(queries, tops, strict=True):
                positions[query, : len(top)] = top
                counts[query] = len(top)
            quality = ndcg(positions, counts, self.inputs.judgements, SHOWN)[queries]
            agreement = np.asarray(self.pseudo[name]).reshape(-1, 2)
            frames.append(
                pd.DataFrame(
                    {
                        "rule": name,
                        "query_id": ids,
                        "ndcg_10": quality,
                        "against_lexical": agreement[:, 0],
                        "against_dense": agreement[:, 1],
                    }
                )
            )
        columns = ["rule", "query_id", "ndcg_10", "against_lexical", "against_dense"]
        per_query = pd.concat(frames) if frames else pd.DataFrame(columns=columns)
        counted = [
            {
                "rule": name,
                "queries": len(queries),
                **tally.counts,
                "loss": tally.loss,
                "loss_nothing_left": tally.loss_nothing_left,
            }
            for name, tally in self.tallies.items()
        ]
        held = [
            dict(
                zip(
                    ("rule", "pairs", "reversals", "violations", "left_out"),
                    (name, *map(int, tally.pairs)),
                    strict=True,
                )
            )
            for name, tally in self.tallies.items()
            if tally.pairs.any()
        ]
        return {
            "per_query": per_query,
            "events": pd.DataFrame(
                counted, columns=["rule", "queries", *EVENTS, "loss", "loss_nothing_left"]
            ),
            "reversals": pd.DataFrame(
                held, columns=["rule", "pairs", "reversals", "violations", "left_out"]
            ),
        }


def _agreement(top: NDArray[np.int64], labels: NDArray[np.int64]) -> float:
    """nDCG@10 with the rows of another arm's top ten as the relevant ones; 0 without any."""
    ideal = discounts(SHOWN)[: len(labels)].sum()
    found = np.isin(top, labels) * discounts(SHOWN)[: len(top)]
    return float(found.sum() / ideal) if len(labels) else 0.0


def _drawn(inputs: Inputs, calibration: NDArray[np.bool_], options: Options) -> dict[str, Pairs]:
    relevant = inputs.judgements.keys
    own = np.flatnonzero(calibration & inputs.judgements.evaluated)
    sizes = {"queries": options.queries, "documents": options.documents}
    found = {"judged": draw(inputs.scores, own, relevant, **sizes, seed=options.seed)}
    if inputs.foreign is not None:
        others = np.arange(inputs.foreign.size[0])
        nothing = np.empty(0, dtype=np.int64)
        found["foreign"] = draw(inputs.foreign, others, nothing, **sizes, seed=options.seed + 1)
    return found


def _nulls(pairs: Pairs) -> tuple[Null, Null]:
    """Both arms' nulls from the irrelevant pairs of the first half of the drawn queries."""
    first, _ = halves(pairs)
    mine = pairs.only(first & ~pairs.relevant)
    return Null.of(mine.dense), Null.of(mine.lexical)


def _null_tables(drawn: Mapping[str, Pairs], lengths: NDArray[np.float64]) -> dict[str, Any]:
    """Held-out rates of each null on irrelevant pairs of the study's own queries."""
    rates, drifts = [], []
    _, rest = halves(drawn["judged"])
    held_out = drawn["judged"].only(rest & ~drawn["judged"].relevant)
    for name, pairs in drawn.items():
        for arm, null in zip(("dense", "lexical"), _nulls(pairs), strict=True):
            keys: dict[str, Any] = {"null": name, "arm": arm, "draws": null.draws}
            keys["smallest_tail"] = 1 / (null.draws + 1)
            scores = getattr(held_out, arm)
            rates.append(null_checks.rates(null, scores).assign(**keys))
            drifts.append(
                null_checks.drift(null, scores, lengths[held_out.documents]).assign(**keys)
            )
    return {"nulls": pd.concat(rates), "drift": pd.concat(drifts)}


def _profiles(
    drawn: Mapping[str, Pairs], calibrated: tuple[Null, Null], options: Options
) -> dict[str, Profile]:
    """S* by each null, where enough rows pass the floor."""

    def passing(pairs: Pairs) -> Pairs:
        tails = (calibrated[0].tail(pairs.dense), calibrated[1].tail(pairs.lexical))
        return pairs.only((tails[0] <= options.floor) | (tails[1] <= options.floor))

    panel = passing(drawn["judged"])
    nulls = {"judged": panel.only(~panel.relevant)}
    if "foreign" in drawn:
        nulls["foreign"] = passing(drawn["foreign"])
    return {
        name: estimate(panel.scores, null.scores, options.seed)
        for name, null in nulls.items()
        if min(len(panel), len(null)) >= FEWEST_ROWS and panel.scores.std(axis=0).min() > 0
    }
