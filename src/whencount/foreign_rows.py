"""Anyone's table of rows, read and checked: eight qualities per row, or the targets alone.

What comes back has the columns of rows.parquet that the analysis needs, under its names, whatever
the names and budgets were called. Every fault is one sentence that names the row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from whencount import attribution
from whencount.diagnostics import TIER_1, TIER_2
from whencount.errors import InputError
from whencount.ranking_diagnostics import TIER_3
from whencount.row_families import inferred_families
from whencount.scoring import SWITCHES

if TYPE_CHECKING:
    import pandas as pd

SHAPLEY_COLUMNS = tuple(f"shapley_{switch}" for switch in SWITCHES)
_KEYS = ("representation", "collection", "seed", "budget", "k1", "b", "control")
_TEXTS = ("representation", "basis", "granularity", "collection", "corpus", "budget", "control")
_MERGED_ON = (*_KEYS, "basis", "granularity")
_SUFFIXES = (".parquet", ".csv", ".csv.gz", ".tsv", ".tsv.gz")

# Six decimals: four rounded numbers differ by at most 4 x 0.5e-6.
_ROUNDING = 2.5e-6
_LARGEST_SEED = 2**53

_STATISTICS = frozenset({*TIER_1, *TIER_2, *TIER_3})
_PSEUDO = re.compile(r"pseudo_.+_[01]{3}")

_BUDGET = re.compile(r"([1-9][0-9]*)/([1-9][0-9]*)|native")
_PUBLISHED_BUDGET = re.compile(r"q([1-9][0-9]*)_d([1-9][0-9]*)")
_PUBLISHED_NAMES = {
    "msmarco_dev": "msmarco-dev",
    "trec_covid": "trec-covid",
    "miracl_hi": "miracl-hi",
    "miracl_bn": "miracl-bn",
    "miracl_te": "miracl-te",
    "dl19": "trec-dl-2019",
    "dl20": "trec-dl-2020",
}
"""How publications call collections that the configuration calls otherwise."""


@dataclass(frozen=True)
class ForeignRows:
    """A table of rows that is fit to analyse.

    Attributes:
        frame: representation, basis, granularity, collection, corpus, seed, budget, k1, b, control,
            families; q000 ... q111 where the table has them; gain and the Shapley values; every
            other column of the table, numbers as float64.
        notes: what was supplied because the table lacks it, a sentence each.
    """

    frame: pd.DataFrame
    notes: tuple[str, ...]


def read_rows(path: str | Path, index_statistics: str | Path | None = None) -> ForeignRows:
    """Read a table of rows, and statistics of their indexes from another table.

    Args:
        path: Parquet, CSV or TSV, with collection, budget, k1, b and either representation or basis
            and granularity, and either q000 ... q111 or gain and the three Shapley values. Without
            seed it is 0, without control none, without corpus the collection; `families` are
            inferred where missing (`inferred_families`).
        index_statistics: one line per index, merged on the keys that both tables have.

    Raises:
        InputError: a file cannot be read, a column is missing, a value is missing or no number, two
            lines have the same keys, a quality is outside [0, 1], Shapley values do not add up to
            the gain, or a line of statistics fits no row.
    """
    path = Path(path)
    frame = _read(path)
    notes: list[str] = []
    frame = _keyed(frame, path, notes)
    _distinct(frame, path, _KEYS)
    frame = _measured(frame, path)
    for column in frame.columns:
        if column in _STATISTICS or _PSEUDO.fullmatch(column):
            frame[column] = _numbers(frame, path, column, empty=True)
    if index_statistics is not None:
        frame = _with_statistics(frame, path, Path(index_statistics), notes)
    if "families" not in frame.columns:
        frame["families"] = inferred_families(frame)
        notes.append("the table has no column families; they are inferred from the settings")
    else:
        frame["families"] = _text(frame["families"])
    return ForeignRows(frame.drop(columns="_place").reset_index(drop=True), tuple(notes))


def _read(path: Path) -> pd.DataFrame:
    """The table with a column `_place` that says where a line stands, all text as text."""
    import pandas as pd
    import pyarrow as pa

    if not path.name.lower().endswith(_SUFFIXES):
        raise InputError(f"{path}: what kind of table is that? name it {' or '.join(_SUFFIXES)}")
    parquet = path.name.lower().endswith(".parquet")
    try:
        if parquet:
            frame = pd.read_parquet(path)
        else:
            # Without a header a line longer than it is an error and no index; this parser leaves
            # fields that a short line lacks missing, not empty.
            frame = pd.read_csv(
                path,
                sep="\t" if ".tsv" in path.name.lower() else ",",
                header=None,
                dtype=str,
                keep_default_na=False,
                encoding="utf-8-sig",
                engine="python",
            )
            short = frame.isna().any(axis=1)
            if short.any():
                raise ValueError(f"line {int(short.to_numpy().argmax()) + 1} is cut short")
            frame = frame[1:].set_axis(frame.iloc[0].tolist(), axis=1)
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file; give a table of rows") from error
    except (OSError, EOFError, ValueError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{path} cannot be read as a table ({reason})") from error
    frame.columns = [str(name).strip() for name in frame.columns]
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise InputError(f"{path}: the column {repeated[0]!r} stands twice; keep one")
    if len(frame) == 0:
        raise InputError(f"{path} has no rows")
    if len(frame.columns) == 1:
        raise InputError(
            f"{path} has one column, {frame.columns[0][:60]!r}; separate columns by commas in .csv,"
            " by tabs in .tsv"
        )
    first, noun = (1, "row") if parquet else (2, "line")
    frame = frame.reset_index(drop=True)
    frame["_place"] = [f"{noun} {number}" for number in range(first, first + len(frame))]
    if not parquet:
        for column in frame.columns.difference([*_TEXTS, "families", "_place"]):
            frame[column] = _as_numbers(frame[column])
    return frame


def _as_numbers(column: pd.Series) -> pd.Series:
    """A column of a text file as numbers, empty cells missing; as it was if one is no number."""
    import pandas as pd

    numbers = pd.to_numeric(column.mask(column.str.strip() == ""), errors="coerce")
    return numbers if (numbers.notna() | (column.str.strip() == "")).all() else column


def _text(column: pd.Series) -> pd.Series:
    return column.astype(object).where(column.notna(), "").astype(str).str.strip()


def _keyed(frame: pd.DataFrame, path: Path, notes: list[str]) -> pd.DataFrame:
    """The keys of rows.parquet: supplied where missing, under its names, checked."""
    frame = _named(frame, path)
    _need(frame, path, ("collection", "budget", "k1", "b"))
    for column, value in (("seed", 0), ("control", "")):
        if column not in frame.columns:
            frame[column] = value
            taken = "none" if value == "" else value
            notes.append(f"the table has no column {column}; taken as {taken}")
    for column in ("k1", "b", "seed"):
        frame[column] = _numbers(frame, path, column)
    _refuse(frame, path, frame["k1"] < 0, "k1", "it must be at least 0")
    _refuse(frame, path, (frame["b"] < 0) | (frame["b"] > 1), "b", "it must lie between 0 and 1")
    strange = (frame["seed"] % 1 != 0) | (frame["seed"] < 0) | (frame["seed"] > _LARGEST_SEED)
    _refuse(frame, path, strange, "seed", "it must be a whole number from 0 to 2^53")
    frame["seed"] = frame["seed"].astype("int64")
    if "corpus" not in frame.columns:
        frame["corpus"] = frame["collection"]
    empty = frame["corpus"] == ""
    frame["corpus"] = frame["corpus"].mask(empty, frame["collection"])
    return frame


def _named(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Names as rows.parquet has them: representation, basis, granularity, collection, budget."""
    frame = frame.copy()
    for column in _TEXTS:
        if column in frame.columns:
            frame[column] = _text(frame[column])
    if "representation" not in frame.columns:
        if not {"basis", "granularity"} <= set(frame.columns):
            raise InputError(
                f"{path} says of no row what was indexed: add a column representation, or basis and"
                " granularity"
            )
        for column in ("basis", "granularity"):
            _refuse(frame, path, frame[column] == "", column, "name it")
        frame["representation"] = frame["basis"] + "_" + frame["granularity"]
    split = frame["representation"].str.extract(r"^(?P<basis>.*)_(?P<granularity>[^_]*)$")
    known = split["granularity"].isin(["pooled", "token", "external"])
    for column, other in (("basis", frame["representation"]), ("granularity", "")):
        if column not in frame.columns:
            frame[column] = split[column].where(known, other)
    for column in ("collection", "corpus"):
        if column in frame.columns:
            frame[column] = frame[column].replace(_PUBLISHED_NAMES)
    for column in ("representation", "collection"):
        if column in frame.columns:
            _refuse(frame, path, frame[column] == "", column, "name it")
    if "budget" in frame.columns:
        frame["budget"] = frame["budget"].str.replace(_PUBLISHED_BUDGET, r"\1/\2", regex=True)
        strange = ~frame["budget"].str.fullmatch(_BUDGET)
        _refuse(frame, path, strange, "budget", "write it as 32/128 (query/document) or native")
    if "control" in frame.columns:
        frame["control"] = frame["control"].replace({"none": ""})
    return frame


def _measured(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    """The targets: computed from the eight qualities, or checked where they come alone."""
    present = [name for name in attribution.QUALITY_COLUMNS if name in frame.columns]
    given = [name for name in ("gain", *SHAPLEY_COLUMNS) if name in frame.columns]
    if len(present) < 8 and len(given) < 4:
        missing = [name for name in attribution.QUALITY_COLUMNS if name not in present]
        others = [name for name in ("gain", *SHAPLEY_COLUMNS) if name not in given]
        raise InputError(
            f"{path} has neither all eight qualities (it lacks {', '.join(missing[:3])}"
            f"{' and others' if len(missing) > 3 else ''}) nor all targets (it lacks"
            f" {', '.join(others)}); add the ones or the others"
        )
    if len(given) == 4:
        for column in given:
            frame[column] = _numbers(frame, path, column)
            _refuse(frame, path, frame[column].abs() > 1, column, "it must lie between -1 and 1")
        difference = (frame["gain"] - frame[list(SHAPLEY_COLUMNS)].sum(axis=1)).abs()
        _refuse(
            frame,
            path,
            difference > _ROUNDING,
            "gain",
            "the Shapley values of the row do not add up to it",
        )
    if len(present) == 8:
        for column in present:
            frame[column] = _numbers(frame, path, column)
            outside = (frame[column] < 0) | (frame[column] > 1)
            _refuse(frame, path, outside, column, "a quality must lie between 0 and 1")
        computed = attribution.targets(frame)
        for column in given:
            frame[column] = _numbers(frame, path, column)
            _refuse(
                frame,
                path,
                (frame[column] - computed[column]).abs() > _ROUNDING,
                column,
                "the eight qualities of the row give another value",
            )
        frame[list(computed.columns)] = computed
    return frame


def _with_statistics(
    frame: pd.DataFrame, path: Path, statistics_path: Path, notes: list[str]
) -> pd.DataFrame:
    statistics = _named(_read(statistics_path), statistics_path)
    _need(statistics, statistics_path, ("collection",))
    for column in ("k1", "b", "seed"):
        if column in statistics.columns:
            statistics[column] = _numbers(statistics, statistics_path, column)
    keys = [key for key in _MERGED_ON if key in statistics.columns]
    values = [name for name in statistics.columns if name not in (*keys, "_place", "corpus")]
    both = [name for name in values if name in frame.columns]
    if both:
        raise InputError(
            f"{path} and {statistics_path} both have the column {both[0]}; take it out of one"
        )
    if not values:
        raise InputError(f"{statistics_path} has no column beside the keys {', '.join(keys)}")
    for column in values:
        statistics[column] = _numbers(statistics, statistics_path, column, empty=True)
    _distinct(statistics, statistics_path, keys)
    strange = statistics.merge(frame[keys].drop_duplicates(), on=keys, how="left", indicator=True)
    alone = strange[strange["_merge"] == "left_only"]
    if len(alone):
        raise InputError(
            f"{statistics_path}, {alone.iloc[0]['_place']}: {_called(alone.iloc[0], keys)} is no"
            f" row of {path}; take the line out, or bring the names of both into line"
        )
    merged = frame.merge(statistics[[*keys, *values]], on=keys, how="left", validate="m:1")
    without = len(merged) - len(merged.merge(statistics[keys], on=keys))
    if without:
        notes.append(f"{without:,} of {len(merged):,} rows have no line of index statistics")
    return merged


def _numbers(frame: pd.DataFrame, path: Path, column: str, *, empty: bool = False) -> pd.Series:
    """A column as float64.

    Raises:
        InputError: a value is no finite number, or missing where `empty` is False.
    """
    import pandas as pd

    types = pd.api.types
    values = frame[column]
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.astype(object)
    numbers = pd.to_numeric(values, errors="coerce")
    if types.is_bool_dtype(values) or types.is_datetime64_any_dtype(values):
        # pandas takes them for 0 and 1, and for nanoseconds.
        numbers = pd.Series(np.nan, index=values.index)
    if numbers.dtype in ("float16", "float32"):
        # 0.6 of half the width is 0.6000000238: settings are compared as they are written.
        numbers = numbers.astype("float64").round(3 if numbers.dtype == "float16" else 6)
    numbers = numbers.astype("float64")
    blank = values.isna() | (values.astype(str).str.strip() == "")
    bad = ~np.isfinite(numbers) & ~(blank & empty)
    _refuse(frame, path, bad, column, "give a number")
    return numbers


def _need(frame: pd.DataFrame, path: Path, columns: Sequence[str]) -> None:
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise InputError(
            f"{path} lacks the column{'s' if len(missing) > 1 else ''} {', '.join(missing)}; it has"
            f" {', '.join(name for name in list(frame.columns)[:12] if name != '_place')}"
        )


def _refuse(frame: pd.DataFrame, path: Path, bad: Any, column: str, remedy: str) -> None:
    """Refuse the first line where `bad` is True, by its place, its keys and what stands there."""
    wrong = np.asarray(bad, dtype=bool)
    if wrong.any():
        line = frame.iloc[int(wrong.argmax())]
        value = line[column]
        if _is_number(value):
            shown = "missing" if np.isnan(value) else f"{value:.9g}"
        elif isinstance(value, str):
            shown = repr(value)
        else:
            shown = str(value)[:60] if value is not None else "missing"
            shown = "missing" if shown in ("<NA>", "NaT") else shown
        keys = [key for key in _KEYS if key in frame.columns and key != column]
        raise InputError(
            f"{path}, {line['_place']} ({_called(line, keys)}): {column} is {shown}; {remedy}"
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _distinct(frame: pd.DataFrame, path: Path, keys: Sequence[str]) -> None:
    repeated = frame.duplicated(list(keys))
    if repeated.any():
        second = frame[repeated].iloc[0]
        same = (frame[list(keys)] == second[list(keys)]).all(axis=1)
        first = frame[same].iloc[0]
        raise InputError(
            f"{path}: {first['_place']} and {second['_place']} are the same row"
            f" ({_called(second, keys)}); keep one, or tell them apart by seed or control"
        )


def _called(line: pd.Series, keys: Sequence[str]) -> str:
    """The keys of a line for a reader: `sae_token, limit, seed 0, 32/128, k1 1.2, b 0.75`."""
    parts = []
    for key in keys:
        value = line[key]
        if key in ("k1", "b", "seed"):
            parts.append(f"{key} {value:g}" if _is_number(value) else f"{key} {value}")
        elif value != "" and not (key in ("basis", "granularity") and "representation" in keys):
            parts.append(str(value))
    return ", ".join(parts)
