"""From evidence to advice: which switches, which k1 and b, how sure, and what speaks against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from whencount.advising.index import Expectation, described, saturation_expected
from whencount.advising.sentences import (
    FEW_DOCUMENTS,
    FEW_QUERIES,
    UNCORRECTED,
    circular,
    expected,
    outside,
    reasons,
    warnings,
)
from whencount.errors import InputError
from whencount.scoring import CONFIGURATIONS, SWITCHES, Parameters
from whencount.vectors import SparseVectors

if TYPE_CHECKING:
    import pandas as pd

MANY_QUERIES = 200


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
        rival: what the advice is compared with: 000, or where that is advised the best other one.
        effects: reference to the pseudo-quality of the advice less that of the rival.
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
    rival: str
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
            "compared_with": self.rival,
            "agreement": {pair: _number(share) for pair, share in self.agreement.items()},
        }

    def table(self) -> pd.DataFrame:
        """The estimates: a line per reference, k1, b and configuration, and one per target.

        Columns: reference, queries (int64), kind (`quality` or `effect`), name (a configuration, or
        idf, saturation, length, gain, collection_gain), k1, b, value, low, high (float64; the
        interval of a quality is not drawn and NaN).
        """
        import pandas as pd

        nothing = float("nan")
        lines = [
            (one.name, one.queries, "quality", str(name), cell.k1, cell.b, value, nothing, nothing)
            for one in self.evidence
            for cell, values in zip(self.cells, one.quality.tolist(), strict=True)
            for name, value in zip(CONFIGURATIONS, values, strict=True)
        ]
        for one in self.evidence:
            first = self.cells[0]
            for name in ESTIMATES:
                found = one.estimates[name]
                ends = (found.value, found.low, found.high)
                lines.append((one.name, one.queries, "effect", name, first.k1, first.b, *ends))
        columns = ["reference", "queries", "kind", "name", "k1", "b", "value", "low", "high"]
        types = dict.fromkeys(("k1", "b", "value", "low", "high"), "float64")
        types |= {"queries": "int64", "reference": "str", "kind": "str", "name": "str"}
        return pd.DataFrame(lines, columns=columns).astype(types)


def advise(
    documents: SparseVectors,
    queries: SparseVectors | None = None,
    references: Mapping[str, NDArray[np.int32]] | None = None,
    *,
    grid: Grid | None = None,
    draws: int = 2000,
    seed: int = 0,
    threads: int | None = None,
    scratch: Path | None = None,
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
        scratch: an empty folder for the index of a large collection.

    Raises:
        InputError: references without queries, sizes that differ, vectors out of range, or queries
            that share no feature with the documents.
    """
    references = dict(references or {})
    if references and queries is None:
        raise InputError("a reference ranks documents for queries; give --queries too")
    grid = grid or Grid()
    statistics = described(documents)
    expectation = saturation_expected(statistics)
    if queries is None or not references:
        return _of_the_index(documents, queries, statistics, expectation, grid)
    for name, positions in references.items():
        if len(positions) != len(queries):
            raise InputError(
                f"the reference {name} ranks {len(positions)} queries, there are {len(queries)}"
            )
    evidence = gather(
        documents,
        queries,
        references,
        grid,
        draws=draws,
        seed=seed,
        threads=threads,
        scratch=scratch,
    )
    empty = [one.name for one in evidence if not one.queries]
    if empty:
        raise InputError(f"the reference {empty[0]} ranks nothing for any query; give another")
    cells = grid.cells()
    chosen = _configuration(evidence, draws, seed)
    cell, moved = _cell(evidence, chosen, draws, seed)
    rival = 0 if chosen else _best_other(evidence)
    effects = {one.name: paired(one, (cell, chosen), (0, rival), draws, seed) for one in evidence}
    agreement = {
        f"{one} and {other}": _overlap(references[one], references[other])
        for one, other in combinations(references, 2)
    }
    name = str(CONFIGURATIONS[chosen])
    return Advice(
        name,
        cells[cell],
        _confidence(evidence, effects, len(documents)),
        tuple(
            reasons(
                evidence,
                effects,
                agreement,
                name,
                str(CONFIGURATIONS[rival]),
                cells[cell],
                moved,
            )
        ),
        tuple(
            warnings(evidence, effects, agreement, expectation, len(documents), queries, references)
        ),
        statistics,
        expectation,
        tuple(evidence),
        str(CONFIGURATIONS[rival]),
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
    against = [
        "No reference was given, so nothing is said of IDF and length: give --reference or"
        " --reference-text, and queries"
    ]
    on = expectation is not None and expectation.value > 0
    rests_on = []
    if expectation is None:
        against.append("The index has an undefined statistic (no document has a feature)")
    else:
        rests_on.append(expected(expectation))
        against += outside(expectation)
        if abs(expectation.value) < expectation.rmse:
            against.append(
                "The expected effect of saturation is smaller than the model's error on corpora"
                " that it had not seen, so its sign is uncertain"
            )
    return Advice(
        "010" if on else UNCORRECTED,
        grid.cells()[0],
        "index alone",
        tuple(rests_on),
        tuple(against),
        statistics,
        expectation,
        (),
        UNCORRECTED,
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


def _best_other(evidence: Sequence[Evidence]) -> int:
    """The best configuration but 000 in the mean of the references, at the default cell."""
    return 1 + int(np.mean([one.quality[0, 1:] for one in evidence], axis=0).argmax())


def _confidence(
    evidence: Sequence[Evidence], effects: Mapping[str, Interval], documents: int
) -> str:
    """Strong: two references or more, each sure, over many queries; weak: one loses, few queries
    or documents, none is sure, or all repeat a configuration.
    """
    signs = [one.sign for one in effects.values()]
    fewest = min(one.queries for one in evidence)
    few = fewest < FEW_QUERIES or documents < FEW_DOCUMENTS
    if min(signs) < 0 or few or all(map(circular, evidence)):
        return "weak"
    if len(evidence) > 1 and min(signs) > 0 and fewest >= MANY_QUERIES:
        return "strong"
    return "moderate" if max(signs) > 0 else "weak"


def _overlap(one: NDArray[np.int32], other: NDArray[np.int32]) -> float:
    """Mean share of common documents among the first ten, over queries that both answer."""
    both = (one >= 0).any(axis=1) & (other >= 0).any(axis=1)
    if not both.any():
        return float("nan")
    same = (one[both][:, :, None] == other[both][:, None, :]) & (one[both][:, :, None] >= 0)
    return float(same.any(axis=2).sum(axis=1).mean() / CUTOFF)


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
