"""What a study found, as numbers: the answer of the report, computed from its tables.

Tables in, numbers out; `whencount.reports` puts them into words and figures. Columns of the tables:
docs/tables.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from whencount.errors import InputError
from whencount.scoring import SWITCHES
from whencount.significance import EFFECTS, FAMILIES

if TYPE_CHECKING:
    import pandas as pd

ROW_KEYS = ("representation", "collection", "budget", "k1", "b", "seed", "control")
"""The columns that name a row of a study."""

CELL_KEYS = ("budget", "k1", "b", "seed", "control")
"""The columns that say under which settings a representation of a collection was scored."""


@dataclass(frozen=True)
class Signs:
    """How many values are above, below and exactly 0, and their mean.

    Attributes:
        mean: NaN where there is no value.
    """

    up: int
    down: int
    same: int
    mean: float

    @property
    def total(self) -> int:
        """How many values there are."""
        return self.up + self.down + self.same


@dataclass(frozen=True)
class Share:
    """Share of the summed gain that a switch carries, with its interval; NaN where undefined."""

    switch: str
    share: float
    low: float
    high: float

    @property
    def has_interval(self) -> bool:
        """False for one collection alone, which gives no interval."""
        return self.low < self.high


@dataclass(frozen=True)
class ShareGroup:
    """The shares of a group of rows.

    Attributes:
        scope: what the rows are grouped by: `all`, `collection`, `granularity` or `basis`.
        value: the name of the group, empty for all rows.
        rows: how many.
        gain: their summed gain.
        shares: one per switch, in the order of SWITCHES.
    """

    scope: str
    value: str
    rows: int
    gain: float
    shares: tuple[Share, ...]


@dataclass(frozen=True)
class Correlation:
    """Spearman's rank correlation over `rows` pairs; NaN where one side is constant."""

    rho: float
    rows: int


@dataclass(frozen=True)
class Verdict:
    """How many rows differ after Holm's correction, by direction.

    Attributes:
        effect: one of `significance.EFFECTS`.
        up: significant and above 0.
        down: significant and below 0.
        rows: how many were tested.
        smallest: the smallest corrected p.
    """

    effect: str
    up: int
    down: int
    rows: int
    smallest: float


@dataclass(frozen=True)
class Answer:
    """The answer of a study in numbers, over the rows that its statistics report.

    Attributes:
        representations, collections, rows: how many.
        settings: the distinct (budget, k1, b) of those rows.
        gain: of `Q111 - Q000` over the rows.
        shares: largest first; undefined ones last.
        statistics: of `G = Q111 - Q010` over the rows.
        length_added: of `Q011 - Q010` over the rows, what length adds to saturation.
        idf_added: of `Q111 - Q011` over the rows, what IDF adds to the two.
        by_collection: mean G of every collection, largest first.
        saturation: Spearman of cv_x and phi_sat over the rows.
        saturation_within: the same after subtracting each collection's mean from both.
        tested: one per effect.
        alpha: level of the tests.
        attainable: for each family of `significance.FAMILIES` the smallest Holm p that its number
            of tests and draws allow; None where the number of draws is not known.
    """

    representations: int
    collections: int
    rows: int
    settings: tuple[tuple[str, float, float], ...]
    gain: Signs
    shares: tuple[Share, ...]
    statistics: Signs
    length_added: Signs
    idf_added: Signs
    by_collection: tuple[tuple[str, float], ...]
    saturation: Correlation
    saturation_within: Correlation
    tested: tuple[Verdict, ...]
    alpha: float
    attainable: dict[str, float] | None


def answer(
    reported: pd.DataFrame,
    significance: pd.DataFrame,
    shares: pd.DataFrame,
    *,
    alpha: float,
    draws: int | None = None,
) -> Answer:
    """Compute the answer of a study.

    Args:
        reported: the rows that the statistics report (`reported_rows`).
        significance: significance.parquet.
        shares: shares.parquet.
        alpha: level of the tests.
        draws: bootstrap draws behind `significance`.

    Raises:
        InputError: there are no rows, or the shares over all rows are missing.
    """
    if len(reported) == 0:
        raise InputError("no rows to report; check the family and the collections of statistics")
    by_collection = reported.groupby("collection")["collection_gain"].mean()
    settings = reported[["budget", "k1", "b"]].drop_duplicates()
    return Answer(
        representations=reported["representation"].nunique(),
        collections=reported["collection"].nunique(),
        rows=len(reported),
        settings=tuple(settings.itertuples(index=False, name=None)),
        gain=signs(reported["gain"]),
        shares=_overall(shares),
        statistics=signs(reported["collection_gain"]),
        length_added=signs(reported["q011"] - reported["q010"]),
        idf_added=signs(reported["q111"] - reported["q011"]),
        by_collection=tuple(
            sorted(
                ((str(name), float(value)) for name, value in by_collection.items()),
                key=lambda item: (-item[1], item[0]),
            )
        ),
        saturation=spearman(reported, "value_cv", "shapley_saturation"),
        saturation_within=spearman(
            centred(reported, ["value_cv", "shapley_saturation"]),
            "value_cv",
            "shapley_saturation",
        ),
        tested=tuple(_tested(significance, effect, alpha) for effect in EFFECTS),
        alpha=alpha,
        attainable=None if draws is None else _attainable(len(significance), draws),
    )


def reported_rows(
    rows: pd.DataFrame, significance: pd.DataFrame, family: str | None = None
) -> pd.DataFrame:
    """The rows that the statistics report: those that were tested for significance.

    Args:
        rows: rows.parquet.
        significance: significance.parquet.
        family: keep the rows of this family only.

    Raises:
        InputError: a tested row is not among the rows, or none belongs to the family.
    """
    keys = [key for key in ROW_KEYS if key in significance.columns]
    tested = significance[keys].drop_duplicates()
    found = rows if family is None else in_family(rows, family)
    found = found.merge(tested, on=keys, how="inner", validate="many_to_one")
    if len(found) != len(significance):
        raise InputError(
            f"significance.parquet tests {len(significance)} rows, of which rows.parquet has"
            f" {len(found)} in the family {family!r}; the two are of different runs: run the study"
            " again"
        )
    return found


def share_groups(shares: pd.DataFrame) -> list[ShareGroup]:
    """The groups of shares.parquet, in its order.

    Raises:
        InputError: a group lacks the share of a switch, or has it twice.
    """
    groups = []
    for (scope, value), lines in shares.groupby(["scope", "value"], sort=False):
        if sorted(lines["part"]) != sorted(SWITCHES):
            raise InputError(
                f"shares.parquet: the group {scope} {value!r} has the parts"
                f" {', '.join(lines['part'])}, not {', '.join(SWITCHES)}; run the study again"
            )
        numbers = lines.set_index("part")[["share", "low", "high"]].to_dict("index")
        groups.append(
            ShareGroup(
                str(scope),
                str(value),
                int(lines["rows"].iloc[0]),
                float(lines["gain"].iloc[0]),
                tuple(
                    Share(switch, *(float(number) for number in numbers[switch].values()))
                    for switch in SWITCHES
                ),
            )
        )
    return groups


def in_family(rows: pd.DataFrame, family: str) -> pd.DataFrame:
    """The rows that belong to a family of the configuration; none is no fault."""
    member = rows["families"].str.split().map(lambda names: family in names)
    return rows[member.astype(bool)]


def signs(values: pd.Series) -> Signs:
    """Count the values above, below and exactly 0; missing values are left out."""
    known = values.dropna()
    return Signs(
        int((known > 0).sum()),
        int((known < 0).sum()),
        int((known == 0).sum()),
        float(known.mean()) if len(known) else math.nan,
    )


def centred(rows: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """The rows with each collection's mean subtracted from `columns`."""
    result = rows.copy()
    for column in columns:
        result[column] -= rows.groupby("collection")[column].transform("mean")
    return result


def spearman(rows: pd.DataFrame, one: str, other: str) -> Correlation:
    """Spearman's rank correlation of two columns, over the rows that have both."""
    from scipy.stats import spearmanr

    known = rows[[one, other]].dropna()
    if len(known) < 3 or known[one].nunique() < 2 or known[other].nunique() < 2:
        return Correlation(math.nan, len(known))
    return Correlation(float(spearmanr(known[one], known[other]).statistic), len(known))


def varied(rows: pd.DataFrame, column: str, reported: pd.DataFrame) -> pd.DataFrame:
    """The rows in which `column` alone departs from the settings of the reported rows.

    Of every reported representation of a collection that has at least two values of `column` all of
    them are kept. Empty where the study varies nothing there.

    Args:
        rows: rows.parquet.
        column: one of CELL_KEYS.
        reported: the rows whose settings count as the default; the first where they differ.
    """
    default = reported.iloc[0]
    at_default = rows[rows["representation"].isin(reported["representation"])]
    for key in CELL_KEYS:
        if key != column:
            at_default = at_default[at_default[key] == default[key]]
    values = at_default.groupby(["representation", "collection"])[column].transform("nunique")
    return at_default[values > 1]


def _overall(shares: pd.DataFrame) -> tuple[Share, ...]:
    groups = [group for group in share_groups(shares) if group.scope == "all"]
    if len(groups) != 1:
        raise InputError(
            f"shares.parquet has {len(groups)} groups of all rows and must have one; run the study"
            " again"
        )
    return tuple(
        sorted(
            groups[0].shares, key=lambda item: math.inf if math.isnan(item.share) else -item.share
        )
    )


def _tested(significance: pd.DataFrame, effect: str, alpha: float) -> Verdict:
    passed = significance[f"holm_{effect}"] <= alpha
    statistic = significance[f"statistic_{effect}"]
    return Verdict(
        effect,
        int((passed & (statistic > 0)).sum()),
        int((passed & (statistic < 0)).sum()),
        len(significance),
        float(significance[f"holm_{effect}"].min()),
    )


def _attainable(rows: int, draws: int) -> dict[str, float]:
    return {
        family: min(1.0, rows * len(effects) / (draws + 1)) for family, effects in FAMILIES.items()
    }
