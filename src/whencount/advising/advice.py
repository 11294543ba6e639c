"""From evidence to advice: which switches, which k1 and b, how sure, and what speaks against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whencount.advising.evidence import (
    CUTOFF,
    ESTIMATES,
    Evidence,
    Grid,
    Interval,
    gather,
    paired,
)
from whencount.advising.index import Expectation, saturation_expected
from whencount.diagnostics import index_statistics
from whencount.errors import InputError
from whencount.scoring import CONFIGURATIONS, SWITCHES, Parameters
from whencount.vectors import SparseVectors

FEW_QUERIES = 50
MANY_QUERIES = 200
CIRCULAR = 0.8
"""A reference that some configuration repeats to this nDCG@10 is hardly another ranking."""
_UNCORRECTED = "000"


@dataclass(frozen=True)
class Advice:
    """What is advised, and what it rests on.

    Attributes:
        configuration: three bits, IDF, saturation and length.
        parameters: k1 and b.
        confidence: strong, moderate or weak; `index alone` where no reference was given.
        reasons: sentences, what the advice rests on.
        warnings: sentences, what speaks against it.
        statistics: of the index, by name.
        expectation: the effect of saturation that published rows let expect; None where a
            statistic is undefined.
        evidence: one per reference.
        effects: reference to the pseudo-quality of the advice less that of the inner product.
        agreement: pair of references to the mean share of their first ten that both have.
        rule: the study's own rule per reference: 111 where G~ > 0, else 010.
        documents, queries: how many.
        cells: of k1 and b, in the order of the evidence.
    """

    configuration: str
    parameters: Parameters
    confidence: str
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    statistics: Mapping[str, float]
    expectation: Expectation | None
    evidence: tuple[Evidence, ...]
    effects: Mapping[str, Interval]
    agreement: Mapping[str, float]
    rule: Mapping[str, str]
    documents: int
    queries: int
    cells: tuple[Parameters, ...]

    def as_json(self) -> dict[str, Any]:
        """As JSON values; a number that is undefined is null."""
        return {
            "configuration": self.configuration,
            "switches": {
                switch: bit == "1" for switch, bit in zip(SWITCHES, self.configuration, strict=True)
            },
            "k1": self.parameters.k1,
            "b": self.parameters.b,
            "confidence": self.confidence,
            "reasons": list(self.reasons),
            "warnings": list(self.warnings),
            "documents": self.documents,
            "queries": self.queries,
            "index": {name: _number(value) for name, value in self.statistics.items()},
            "expected_saturation": None if self.expectation is None else asdict(self.expectation),
            "references": {
                one.name: {
                    "queries": one.queries,
                    "estimates": {name: asdict(one.estimates[name]) for name in ESTIMATES},
                    "pseudo_quality": {
                        str(configuration): float(value)
                        for configuration, value in zip(CONFIGURATIONS, one.quality[0], strict=True)
                    },
                    "effect_of_advice": asdict(self.effects[one.name]),
                    "rule_of_the_study": self.rule[one.name],
                }
                for one in self.evidence
            },
            "agreement": dict(self.agreement),
        }


def advise(
    documents: SparseVectors,
    queries: SparseVectors | None = None,
    references: Mapping[str, NDArray[np.int32]] | None = None,
    *,
    grid: Grid | None = None,
    draws: int = 2000,
    seed: int = 0,
    threads: int | None = None,
) -> Advice:
    """Advise on an index, without a relevance label.

    Args:
        documents: capped as they shall be searched; memory-mapped is fine.
        queries: the same; None leaves the index alone to speak.
        references: name to document positions, int32, shape (queries, 10), best first, -1 past the
            end: what stands in for relevance.
        grid: of k1 and b.
        draws, seed: of the bootstrap over queries.
        threads: of the search; None leaves it to the engine.

    Raises:
        InputError: references without queries, sizes that differ, or vectors out of range.
    """
    references = dict(references or {})
    if references and queries is None:
        raise InputError("a reference ranks documents for queries; give --queries too")
    grid = grid or Grid()
    statistics = index_statistics(documents)
    expectation = saturation_expected(statistics)
    if queries is None or not references:
        return _of_the_index(documents, queries, statistics, expectation, grid)
    for name, positions in references.items():
        if len(positions) != len(queries):
            raise InputError(
                f"the reference {name} ranks {len(positions)} queries, there are {len(queries)}"
            )
    evidence = gather(documents, queries, references, grid, draws=draws, seed=seed, threads=threads)
    empty = [one.name for one in evidence if not one.queries]
    if empty:
        raise InputError(f"the reference {empty[0]} ranks nothing for any query; give another")
    cells = grid.cells()
    chosen = _configuration(evidence, draws, seed)
    cell, moved = _cell(evidence, chosen, draws, seed)
    effects = {one.name: paired(one, (cell, chosen), (0, 0), draws, seed) for one in evidence}
    agreement = {
        f"{one} and {other}": _overlap(references[one], references[other])
        for one, other in combinations(references, 2)
    }
    name = str(CONFIGURATIONS[chosen])
    return Advice(
        name,
        cells[cell],
        _confidence(evidence, effects, name),
        tuple(_reasons(evidence, effects, name, cells[cell], moved)),
        tuple(_warnings(evidence, agreement, expectation, queries, references)),
        statistics,
        expectation,
        tuple(evidence),
        effects,
        agreement,
        {
            one.name: "111" if one.estimates["collection_gain"].value > 0 else "010"
            for one in evidence
        },
        len(documents),
        len(queries),
        tuple(cells),
    )


def _of_the_index(
    documents: SparseVectors,
    queries: SparseVectors | None,
    statistics: Mapping[str, float],
    expectation: Expectation | None,
    grid: Grid,
) -> Advice:
    """Advice without a reference: saturation, if its expected effect is above its error."""
    warnings = [
        "No reference was given, so nothing is said of IDF and length: give --reference or"
        " --reference-text, and queries"
    ]
    on = expectation is not None and expectation.value > 0
    reasons = []
    if expectation is None:
        warnings.append("The index has an undefined statistic (no document has a feature)")
    else:
        reasons.append(_expected(expectation))
        warnings += _outside(expectation)
        if abs(expectation.value) < expectation.rmse:
            warnings.append(
                "The expected effect of saturation is smaller than the model's error on corpora"
                " that it had not seen, so its sign is uncertain"
            )
    return Advice(
        "010" if on else _UNCORRECTED,
        grid.cells()[0],
        "index alone",
        tuple(reasons),
        tuple(warnings),
        statistics,
        expectation,
        (),
        {},
        {},
        {},
        len(documents),
        0 if queries is None else len(queries),
        tuple(grid.cells()),
    )


def _configuration(evidence: Sequence[Evidence], draws: int, seed: int) -> int:
    """The best configuration in the mean of the references, without switches that do nothing.

    A switch goes, the one that costs least first, unless some reference loses by it (the 95 %
    interval of the paired difference lies below 0) and none gains.
    """
    chosen = int(np.mean([one.quality[0] for one in evidence], axis=0).argmax())
    while True:
        simpler = []
        for bit in (4, 2, 1):
            if not chosen & bit:
                continue
            without = [
                paired(one, (0, chosen & ~bit), (0, chosen), draws, seed) for one in evidence
            ]
            loses = any(one.sign < 0 for one in without)
            gains = any(one.sign > 0 for one in without)
            if not loses or gains:
                simpler.append((float(np.mean([one.value for one in without])), chosen & ~bit))
        if not simpler:
            return chosen
        chosen = max(simpler)[1]


def _cell(evidence: Sequence[Evidence], chosen: int, draws: int, seed: int) -> tuple[int, bool]:
    """The best cell of k1 and b; the default unless every reference is better off by it."""
    best = int(np.mean([one.quality[:, chosen] for one in evidence], axis=0).argmax())
    better = all(paired(one, (best, chosen), (0, chosen), draws, seed).sign > 0 for one in evidence)
    return (best, True) if better else (0, False)


def _confidence(
    evidence: Sequence[Evidence], effects: Mapping[str, Interval], configuration: str
) -> str:
    signs = [one.sign for one in effects.values()]
    fewest = min(one.queries for one in evidence)
    if configuration == _UNCORRECTED or min(signs) < 0 or fewest < FEW_QUERIES:
        return "weak"
    if all(_circular(one) for one in evidence):
        return "weak"
    if len(evidence) > 1 and min(signs) > 0 and fewest >= MANY_QUERIES:
        return "strong"
    return "moderate" if max(signs) > 0 else "weak"


def _reasons(
    evidence: Sequence[Evidence],
    effects: Mapping[str, Interval],
    configuration: str,
    parameters: Parameters,
    moved: bool,
) -> list[str]:
    found = []
    for one in evidence:
        effect = effects[one.name]
        found.append(
            f"By {one.name}, over {one.queries:,} queries, the advice changes the estimated nDCG@10"
            f" by {effect.value:+.3f} ({effect.low:+.3f} to {effect.high:+.3f})"
        )
    for place, switch in enumerate(SWITCHES):
        told = ", ".join(
            f"{one.estimates[switch].value:+.3f} ({one.estimates[switch].low:+.3f} to"
            f" {one.estimates[switch].high:+.3f}) by {one.name}"
            for one in evidence
        )
        state = "on" if configuration[place] == "1" else "off"
        found.append(f"{_word(switch)} {state}: estimated effect {told}")
    if moved:
        found.append(
            f"k1 {parameters.k1:g} and b {parameters.b:g} are better than 1.2 and .75 by every"
            " reference"
        )
    elif configuration != _UNCORRECTED:
        found.append(
            f"k1 {parameters.k1:g} and b {parameters.b:g}: no cell of the grid is better by every"
            " reference"
        )
    return found


def _warnings(
    evidence: Sequence[Evidence],
    agreement: Mapping[str, float],
    expectation: Expectation | None,
    queries: SparseVectors,
    references: Mapping[str, NDArray[np.int32]],
) -> list[str]:
    found = []
    for one in evidence:
        if one.queries < FEW_QUERIES:
            found.append(
                f"{one.name} answers {one.queries} queries only; give {FEW_QUERIES} or more before"
                " you lean on it"
            )
        if _circular(one):
            found.append(
                f"{one.name} is nearly repeated by {CONFIGURATIONS[int(one.quality[0].argmax())]}"
                f" (estimated nDCG@10 {one.quality[0].max():.2f}): it ranks by the same features"
                " and cannot judge them; give a reference of another kind, a dense ranking say"
            )
        short = references[one.name]
        share = float((short[(short >= 0).any(axis=1)] < 0).mean())
        if share > 0.2:
            found.append(
                f"{one.name} has fewer than {CUTOFF} known documents for many queries"
                f" ({share:.0%} of places are empty)"
            )
    if len(evidence) == 1:
        found.append(
            "One reference alone: what it and the corrected score share, words say, is counted as"
            " quality; give a second one of another kind"
        )
    for switch in SWITCHES:
        signs = {one.estimates[switch].sign for one in evidence}
        if {1, -1} <= signs:
            found.append(f"The references disagree on {_word(switch)}: one gains, another loses")
    for pair, share in agreement.items():
        if share < 0.1:
            found.append(
                f"{pair} agree on {share:.0%} of their first ten documents only, so at least one of"
                " them is far from relevance"
            )
    without = int((queries.row_sizes() == 0).sum())
    if without:
        found.append(f"{without:,} of {len(queries):,} queries have no feature")
    if expectation is not None:
        found += _outside(expectation)
        signs = {one.estimates["saturation"].sign for one in evidence}
        if -np.sign(expectation.value) in signs and abs(expectation.value) > expectation.rmse:
            found.append(
                "The index lets another sign of saturation expect than a reference estimates"
            )
    return found


def _circular(evidence: Evidence) -> bool:
    """Whether the reference is one of the configurations in all but name."""
    return float(evidence.quality[0].max()) >= CIRCULAR


def _expected(expectation: Expectation) -> str:
    return (
        f"Saturation alone is expected to change nDCG@10 by {expectation.value:+.3f}, by ridge over"
        f" {expectation.rows} published indexes of {expectation.corpora} corpora (error"
        f" {expectation.rmse:.3f} on a corpus held out; right sign {expectation.sign_accuracy:.0%},"
        f" the more frequent sign alone {expectation.majority:.0%})"
    )


def _outside(expectation: Expectation) -> list[str]:
    if not expectation.outside:
        return []
    return [
        f"{', '.join(expectation.outside)} of this index lie outside what the published indexes"
        " had, so the expected effect of saturation is an extrapolation"
    ]


def _overlap(one: NDArray[np.int32], other: NDArray[np.int32]) -> float:
    """Mean share of common documents among the first ten, over queries that both answer."""
    both = (one >= 0).any(axis=1) & (other >= 0).any(axis=1)
    if not both.any():
        return float("nan")
    same = (one[both][:, :, None] == other[both][:, None, :]) & (one[both][:, :, None] >= 0)
    return float(same.any(axis=2).sum(axis=1).mean() / CUTOFF)


def _word(switch: str) -> str:
    return {"idf": "IDF", "saturation": "saturation", "length": "length normalisation"}[switch]


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
