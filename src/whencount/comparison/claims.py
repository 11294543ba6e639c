"""A claim of the published study with what a run says of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pandas as pd

AGREES = "agrees"
DISAGREES = "disagrees"
CANNOT_TELL = "cannot be told here"
VERDICTS = (AGREES, DISAGREES, CANNOT_TELL)


@dataclass(frozen=True)
class Claim:
    """A claim of the published study, held against a run. All plain text.

    Attributes:
        topic: what it is about: `shares`, `saturation`, `representations`, `settings`,
            `hypotheses`, `prediction` or `decision`.
        statement: the claim, a clause that can follow "that": no capital, no full stop.
        published: the published figures behind it.
        here: this run's figures, empty where there are none.
        verdict: one of VERDICTS.
        reason: why it cannot be told, or what to keep in mind; may be empty.
    """

    topic: str
    statement: str
    published: str
    here: str
    verdict: str
    reason: str = ""


class Study(Protocol):
    """The tables of a run that claims are held against (docs/tables.md has their columns)."""

    @property
    def rows(self) -> pd.DataFrame:
        """rows.parquet."""

    @property
    def reported(self) -> pd.DataFrame:
        """The rows that the statistics report."""

    @property
    def shares(self) -> pd.DataFrame:
        """shares.parquet."""

    @property
    def predictors(self) -> pd.DataFrame | None:
        """predictors.parquet, if the run has it."""

    @property
    def decisions(self) -> pd.DataFrame | None:
        """decisions.parquet, if the run has it."""

    @property
    def hypotheses(self) -> pd.DataFrame | None:
        """hypotheses.parquet, if the run has it."""


def held(topic: str, statement: str, published: str, here: str, *, agrees: bool) -> Claim:
    """A claim that this run can decide."""
    return Claim(topic, statement, published, here, AGREES if agrees else DISAGREES)


def untold(topic: str, statement: str, published: str, reason: str, here: str = "") -> Claim:
    """A claim that this run cannot decide, and why: a clause that can follow "because"."""
    return Claim(topic, statement, published, here, CANNOT_TELL, reason)
