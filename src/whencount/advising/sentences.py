"""What an advice rests on and what speaks against it, in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from whencount.advising.evidence import CUTOFF, Evidence, Interval
from whencount.advising.index import Expectation
from whencount.scoring import CONFIGURATIONS, SWITCHES, Parameters
from whencount.vectors import SparseVectors
from whencount.wording import joined, plural

FEW_QUERIES = 50
FEW_DOCUMENTS = 200
"""With fewer, ten documents are more than a twentieth of the collection."""
CIRCULAR = 0.8
"""A reference that some configuration repeats to this nDCG@10 is hardly another ranking."""
UNCORRECTED = "000"


def reasons(
    evidence: Sequence[Evidence],
    effects: Mapping[str, Interval],
    agreement: Mapping[str, float],
    configuration: str,
    rival: str,
    parameters: Parameters,
    moved: bool,
) -> list[str]:
    """What the advice rests on: its effect by every reference, the switches, k1 and b, agreement.

    Args:
        effects: reference to what the advice is worth beside `rival`.
        moved: whether k1 and b are other than the default.
    """
    found = []
    for one in evidence:
        effect = effects[one.name]
        found.append(
            f"By {one.name}, over {plural(one.queries, 'query')}, estimated nDCG@10 of the advice"
            f" less that of {rival} is {_told(effect)}"
        )
    for place, switch in enumerate(SWITCHES):
        told = ", ".join(f"{_told(one.estimates[switch])} by {one.name}" for one in evidence)
        state = "on" if configuration[place] == "1" else "off"
        found.append(f"{_word(switch)} {state}: estimated effect {told}")
    if moved:
        found.append(
            f"k1 {parameters.k1:g} and b {parameters.b:g} are better than 1.2 and .75 by every"
            " reference"
        )
    elif configuration != UNCORRECTED:
        found.append(
            f"k1 {parameters.k1:g} and b {parameters.b:g}: no cell of the grid is better by every"
            " reference"
        )
    for pair, share in agreement.items():
        if share == share:  # noqa: PLR0124 - NaN alone differs from itself
            found.append(f"Of their first ten documents {pair} share {share:.0%}")
    return found


def warnings(
    evidence: Sequence[Evidence],
    effects: Mapping[str, Interval],
    agreement: Mapping[str, float],
    expectation: Expectation | None,
    documents: int,
    queries: SparseVectors,
    references: Mapping[str, NDArray[np.int32]],
) -> list[str]:
    """What speaks against leaning on the advice: few documents or queries, intervals that hold 0,
    circular or short references, references that disagree, an index unlike the published ones.
    """
    found = []
    if documents < FEW_DOCUMENTS:
        found.append(
            f"There are {plural(documents, 'document')} only, so the first {CUTOFF} of a reference"
            " hold much that is not relevant"
        )
    unsure = [name for name, effect in effects.items() if effect.sign == 0]
    if unsure:
        found.append(
            f"By {joined(unsure)} the effect of the advice may as well be none: its interval"
            " contains 0"
        )
    against = [name for name, effect in effects.items() if effect.sign < 0]
    if against:
        found.append(f"By {joined(against)} the advice loses")
    for one in evidence:
        if one.queries < FEW_QUERIES:
            found.append(
                f"The reference {one.name} answers {plural(one.queries, 'query')} only; give"
                f" {FEW_QUERIES} or more before you lean on it"
            )
        if circular(one):
            found.append(
                f"The reference {one.name} is nearly repeated by"
                f" {CONFIGURATIONS[int(one.quality[0].argmax())]}"
                f" (estimated nDCG@10 {one.quality[0].max():.2f}): it ranks by the same features"
                " and cannot judge them; give a reference of another kind, a dense ranking say"
            )
        short = references[one.name]
        share = float((short[(short >= 0).any(axis=1)] < 0).mean())
        if share > 0.2:
            found.append(
                f"The reference {one.name} has fewer than {CUTOFF} known documents for many queries"
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
                f"The references {pair} agree on {share:.0%} of their first ten documents only, so"
                " at least one of them is far from relevance"
            )
    without = int((queries.row_sizes() == 0).sum())
    if without:
        found.append(f"{without:,} of {len(queries):,} queries have no feature")
    if expectation is not None:
        found += outside(expectation)
        signs = {one.estimates["saturation"].sign for one in evidence}
        if -np.sign(expectation.value) in signs and abs(expectation.value) > expectation.rmse:
            found.append(
                "The index lets another sign of saturation expect than a reference estimates"
            )
    return found


def circular(evidence: Evidence) -> bool:
    """Whether the reference is one of the configurations in all but name."""
    return float(evidence.quality[0].max()) >= CIRCULAR


def expected(expectation: Expectation) -> str:
    """The effect that the published indexes let expect."""
    return (
        f"Saturation alone is expected to change nDCG@10 by {expectation.value:+.3f}, by ridge over"
        f" {expectation.rows} published indexes of {expectation.corpora} corpora (error"
        f" {expectation.rmse:.3f} on a corpus held out; right sign {expectation.sign_accuracy:.0%},"
        f" the more frequent sign alone {expectation.majority:.0%})"
    )


def outside(expectation: Expectation) -> list[str]:
    """A warning where the index is unlike the published ones."""
    if not expectation.outside:
        return []
    return [
        f"Of this index {joined(expectation.outside)} lie outside what the published indexes had,"
        " so the expected effect of saturation is an extrapolation"
    ]


def _word(switch: str) -> str:
    return {"idf": "IDF", "saturation": "saturation", "length": "length normalisation"}[switch]


def _told(interval: Interval) -> str:
    return f"{interval.value:+.3f} ({interval.low:+.3f} to {interval.high:+.3f})"
