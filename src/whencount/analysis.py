"""The analysis of anyone's rows: shares with intervals, hypotheses, predictors, decision rule."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from whencount import attribution
from whencount.errors import InputError
from whencount.files import atomic_files
from whencount.foreign_rows import ForeignRows
from whencount.hypotheses import HypothesisFile, confirm, load_file, shipped_files
from whencount.registration import record_path
from whencount.scoring import SWITCHES
from whencount.tables import write_table

if TYPE_CHECKING:
    import pandas as pd

PRIMARY = "primary"
HELD_BACK = "held_back"
PARTS = (*SWITCHES, "idf+length")
"""The switches, and the two collection statistics together."""

_SCOPES = ("collection", "representation", "granularity", "basis")


@dataclass(frozen=True)
class Analysis:
    """What a table of rows says; docs/tables.md has the columns.

    Attributes:
        shares: share of the gain per part with its interval, over all primary rows and within
            groups of rows.
        hypotheses: as `whencount.hypotheses.confirm`, all files together.
        predictors, predictions, decisions: of `whencount.prediction`; without lines where the rows
            lack the columns.
        rows: how many rows the table has.
        collections: the collections of the rows that `shares` is over.
        family: the family of those rows; None where the table has no primary rows, so that all
            rows are taken.
        intervals: the bounds [low, high] of the hypotheses that have them, by name.
        notes: a sentence for whatever was supplied or left out.
    """

    shares: pd.DataFrame
    hypotheses: pd.DataFrame
    predictors: pd.DataFrame
    predictions: pd.DataFrame
    decisions: pd.DataFrame
    rows: int
    collections: tuple[str, ...]
    family: str | None
    intervals: Mapping[str, tuple[float, float]]
    notes: tuple[str, ...]


def analyse(
    rows: ForeignRows,
    *,
    source: str | Path | None = None,
    files: Sequence[str | Path] | None = None,
    family: str = PRIMARY,
    models: Sequence[str] = ("ridge", "boosted"),
    draws: int = 2_000,
    seed: int = 0,
) -> Analysis:
    """Analyse a table of rows.

    Args:
        rows: as `whencount.foreign_rows.read_rows` gives them.
        source: the file they were read from.
        files: of hypotheses; those that come with whencount where left out. A registration beside
            a file is looked at.
        family: the rows that shares are over and that predictors are fitted on.
        models: of the predictors; none for no predictors. Boosted trees take the longest of all.
        draws: resamples of whole collections behind every interval.
        seed: of the resamples and the models.

    Raises:
        InputError: a file of hypotheses is not valid, or two files have a hypothesis of one name.
    """
    checked = _distinct([load_file(path) for path in (shipped_files() if files is None else files)])
    frame, notes = rows.frame, list(rows.notes)
    primary, found = _in_family(frame, family), True
    if len(primary) == 0:
        primary, found = frame, False
        notes.append(f"no row is of the family {family}; shares are over all rows")
    shares = share_groups(frame, primary, draws=draws, seed=seed)
    hypotheses = _hypotheses(checked, frame, source, draws, seed)
    predicted = _predicted(frame, family, models if found else (), seed, notes)
    decided = _decided(primary, draws, seed, notes)
    return Analysis(
        shares,
        hypotheses,
        *predicted,
        decided,
        len(frame),
        tuple(sorted(primary["collection"].unique())),
        family if found else None,
        {
            one.name: (float(one.options["low"]), float(one.options["high"]))
            for file in checked
            for one in file.hypotheses
            if one.test == "share_within"
        },
        tuple(notes),
    )


def share_groups(
    rows: pd.DataFrame, primary: pd.DataFrame, *, draws: int = 2_000, seed: int = 0
) -> pd.DataFrame:
    """Shares of the gain over the primary rows, within groups of them, and at every budget.

    Args:
        rows: all rows.
        primary: those of them that shares are reported over.
        draws: resamples of whole collections.
        seed: of them.

    Returns:
        One line per group and part of PARTS: scope (`all`, `collection`, `representation`,
        `granularity`, `basis` or `budget`), value, part, share, low, high, rows, gain, as
        shares.parquet. A budget takes the rows that differ from primary ones in it alone; rows
        that were held back take no part.
    """
    import pandas as pd

    groups = [("all", "", primary)]
    for scope in _SCOPES:
        groups += [(scope, str(value), part) for value, part in primary.groupby(scope, sort=True)]
    settings = ["representation", "k1", "b", "seed", "control"]
    alike = rows[rows["families"] != HELD_BACK].merge(
        primary[settings].drop_duplicates(), on=settings, how="inner"
    )
    groups += [("budget", value, alike[alike["budget"] == value]) for value in _budgets(alike)]
    lines = []
    for scope, value, part in groups:
        table = attribution.shares(part, draws=draws, seed=seed, parts=PARTS)
        table = table.rename_axis("part").reset_index()
        table.insert(0, "value", value)
        table.insert(0, "scope", scope)
        lines.append(table.assign(rows=len(part), gain=float(part["gain"].sum())))
    return pd.concat(lines, ignore_index=True)


def refuse_place(folder: str | Path, source: str | Path) -> None:
    """Refuse a folder in which the tables of an analysis would replace those of a study.

    Raises:
        InputError: `source` lies in `folder`, or `folder` is a file.
    """
    if Path(folder).is_file():
        raise InputError(f"{folder} is a file; name a folder")
    if Path(source).resolve().parent == Path(folder).resolve():
        raise InputError(
            f"{folder} holds {Path(source).name} itself; choose another folder, so that no table of"
            " the study is replaced"
        )


def write(analysis: Analysis, folder: str | Path, page: str | None = None) -> None:
    """Write an analysis into a folder: Parquet tables, summary.json and a page, all or none.

    Args:
        page: `whencount.reports.analysis_page` of it; None for none.

    Raises:
        InputError: the place cannot be written.
    """
    with atomic_files(folder) as temporary:
        for name in ("shares", "hypotheses", "predictors", "predictions", "decisions"):
            write_table(getattr(analysis, name), temporary / f"{name}.parquet")
        (temporary / "summary.json").write_bytes(as_json(analysis) + b"\n")
        if page is not None:
            (temporary / "analysis.html").write_text(page, encoding="utf-8")


def as_json(analysis: Analysis) -> bytes:
    """`summary` as strict JSON, indented: what is not known is null, never NaN."""
    return orjson.dumps(summary(analysis), option=orjson.OPT_INDENT_2)


def summary(analysis: Analysis) -> dict[str, Any]:
    """An analysis as an object of plain values, with stable keys; docs/hypotheses.md has them."""
    groups = [
        {
            "scope": scope,
            "value": value,
            "rows": int(lines["rows"].iloc[0]),
            "gain": _plain(lines["gain"].iloc[0]),
            "shares": _shares(lines),
        }
        for (scope, value), lines in analysis.shares.groupby(["scope", "value"], sort=False)
    ]
    overall = groups[0]
    return {
        "shares": {switch: overall["shares"][switch] for switch in SWITCHES},
        "shares_over": {
            "family": analysis.family,
            "rows": overall["rows"],
            "collections": list(analysis.collections),
            "gain": overall["gain"],
        },
        "collection_statistics": overall["shares"]["idf+length"],
        "share_groups": groups,
        "hypotheses": _hypotheses_by_name(analysis),
        "predictors": _records(analysis.predictors),
        "decisions": _records(analysis.decisions),
        "rows": analysis.rows,
        "notes": list(analysis.notes),
    }


def _in_family(rows: pd.DataFrame, family: str) -> pd.DataFrame:
    return rows[[family in names.split() for names in rows["families"]]]


def _budgets(rows: pd.DataFrame) -> list[str]:
    """Distinct budgets, small to large, `native` last."""
    return sorted(
        set(rows["budget"]),
        key=lambda budget: (
            [math.inf] if budget == "native" else [float(size) for size in budget.split("/")]
        ),
    )


def _distinct(files: Sequence[HypothesisFile]) -> Sequence[HypothesisFile]:
    seen: dict[str, Path] = {}
    for file in files:
        for hypothesis in file.hypotheses:
            if hypothesis.name in seen:
                raise InputError(
                    f"{seen[hypothesis.name]} and {file.path} both have a hypothesis"
                    f" {hypothesis.name}; analyse them one at a time, or rename one"
                )
        seen |= {hypothesis.name: file.path for hypothesis in file.hypotheses}
    return files


def _hypotheses(
    files: Sequence[HypothesisFile],
    rows: pd.DataFrame,
    source: str | Path | None,
    draws: int,
    seed: int,
) -> pd.DataFrame:
    import pandas as pd

    tables = []
    for file in files:
        beside = record_path(file.path)
        record = beside if beside.exists() else None
        tables.append(confirm(file.path, record, rows, source=source, draws=draws, seed=seed))
    return pd.concat(tables, ignore_index=True)


def _predicted(
    rows: pd.DataFrame, family: str, models: Sequence[str], seed: int, notes: list[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    import pandas as pd

    from whencount.prediction import PREDICTION_COLUMNS, PREDICTOR_COLUMNS, feature_tiers, predict

    empty = (
        pd.DataFrame(columns=list(PREDICTOR_COLUMNS)),
        pd.DataFrame(columns=list(PREDICTION_COLUMNS)),
    )
    if not models:
        return empty
    tiers = feature_tiers(rows)
    if not tiers.features:
        notes.extend(tiers.notes)
        return empty
    try:
        result = predict(rows, primary_family=family, seed=seed, models=models)
    except InputError as error:
        notes.append(f"no predictors: {error}")
        return empty
    except ImportError as error:
        notes.append(f"no predictors: {error.name} is missing; install whencount[study]")
        return empty
    notes.extend(result.notes)
    return result.predictors, result.predictions


def _decided(rows: pd.DataFrame, draws: int, seed: int, notes: list[str]) -> pd.DataFrame:
    import pandas as pd

    from whencount.prediction import DECISION_COLUMNS, decisions, references_of

    if not references_of(rows) or not set(attribution.QUALITY_COLUMNS) <= set(rows.columns):
        notes.append(
            "no decision rule: it needs the eight qualities and the pseudo-labels of a reference"
        )
        return pd.DataFrame(columns=list(DECISION_COLUMNS))
    return decisions(rows, draws=draws, seed=seed)


def _shares(lines: pd.DataFrame) -> dict[str, dict[str, float | None]]:
    return {
        str(line["part"]): {key: _plain(line[key]) for key in ("share", "low", "high")}
        for line in lines.to_dict("records")
    }


_ESTIMATES = ("rows", "estimate", "comparison", "threshold", "p", "holm_p", "passes")


def _hypotheses_by_name(analysis: Analysis) -> dict[str, Any]:
    """One object per hypothesis; the settings of one that has several are objects inside it."""
    found: dict[str, Any] = {}
    for name, lines in analysis.hypotheses.groupby("hypothesis", sort=False):
        records = lines.to_dict("records")
        first = records[0]
        entry: dict[str, Any] = {key: first[key] for key in ("registration", "statement", "test")}
        settings = {}
        for line in records:
            values = {key: _plain(line[key]) for key in (*_ESTIMATES, "status", "reason")}
            values["published"] = {
                key: _plain(line[column])
                for key, column in (
                    ("estimate", "published"),
                    ("comparison", "published_comparison"),
                    ("p", "published_p"),
                )
            }
            settings[line["setting"]] = values
        if str(name) in analysis.intervals:
            entry["interval"] = list(analysis.intervals[str(name)])
        if list(settings) == [""]:
            entry |= settings[""]
        else:
            passes = [values["passes"] for values in settings.values()]
            entry["passes"] = None if None in passes else all(passes)
            entry["settings"] = settings
        found[str(name)] = entry
    return found


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {str(key): _plain(value) for key, value in line.items()}
        for line in table.to_dict("records")
    ]


def _plain(value: Any) -> Any:
    """A value of a table as JSON has it; missing and not finite ones are None."""
    import numpy as np
    import pandas as pd

    if value is None or value is pd.NA:
        return None
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return value
