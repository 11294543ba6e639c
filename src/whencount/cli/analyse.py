"""`whencount analyse`: shares, hypotheses and predictors of anyone's rows."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whencount.cli.options import COUNT, FILE

if TYPE_CHECKING:
    import pandas as pd

    from whencount.analysis import Analysis


@click.command(
    epilog="""\b
Examples:
  whencount analyse --rows results/rows.parquet --out analysis
  whencount analyse --rows rows.csv --index-statistics statistics.csv --out analysis --json"""
)
@click.option(
    "--rows",
    type=FILE,
    required=True,
    metavar="FILE",
    help="Parquet, CSV or TSV: a row per representation, collection and setting.",
)
@click.option(
    "--index-statistics",
    type=FILE,
    metavar="FILE",
    help="More columns of the same keys: value_cv and the like.",
)
@click.option(
    "--out",
    type=FILE,
    required=True,
    metavar="DIR",
    help="Folder to write to; other files in it stay as they are.",
)
@click.option(
    "--hypotheses",
    type=FILE,
    multiple=True,
    metavar="FILE",
    help="Hypotheses to test; may be given several times.  [default: H1 to H6 and D1]",
)
@click.option(
    "--family",
    default="primary",
    show_default=True,
    metavar="NAME",
    help="The family that shares are over and predictors are fitted on.",
)
@click.option(
    "--predictors",
    type=click.Choice(["all", "ridge", "none"]),
    default="all",
    show_default=True,
    help="Models to fit where the columns are there: ridge is quick, boosted trees take minutes.",
)
@click.option(
    "--draws",
    type=COUNT,
    default=2_000,
    show_default=True,
    metavar="N",
    help="Resamples of whole collections behind an interval.",
)
@click.option(
    "--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True, metavar="N"
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
def analyse(
    rows: Path,
    index_statistics: Path | None,
    out: Path,
    hypotheses: tuple[Path, ...],
    family: str,
    predictors: str,
    draws: int,
    seed: int,
    as_json: bool,
) -> None:
    """Tell what a table of rows says: shares, hypotheses, predictors.

    A row has collection, budget (32/128 or native), k1, b, and representation or basis and
    granularity; and either the eight qualities q000 ... q111 or gain, shapley_idf,
    shapley_saturation and shapley_length. Where no column `families` says which rows are primary,
    those at 32/128, k1 1.2, b 0.75, seed 0 without a control are. Writes shares.parquet,
    hypotheses.parquet, predictors.parquet, predictions.parquet, decisions.parquet,
    summary.json and analysis.html.
    """
    from whencount import analysis
    from whencount.foreign_rows import read_rows

    analysis.refuse_place(out, rows)
    result = analysis.analyse(
        read_rows(rows, index_statistics),
        source=rows,
        files=hypotheses or None,
        family=family,
        models={"all": ("ridge", "boosted"), "ridge": ("ridge",), "none": ()}[predictors],
        draws=draws,
        seed=seed,
    )
    try:
        from whencount.reports.analysis_page import analysis_page

        page = analysis_page(result, rows.name)
    except ImportError as error:
        page = None
        click.echo(f"Note: no page: {error.name} is missing; install whencount[study].", err=True)
    analysis.write(result, out, page)
    if as_json:
        click.echo(analysis.as_json(result).decode())
    else:
        _print(result)
        pages = "" if page is None else "analysis.html, "
        click.echo(f"{out}: {pages}summary.json and tables", err=True)
    for note in result.notes:
        click.echo(f"Note: {note.rstrip('.')}.", err=True)


_LEAST_WIDTH = 128
"""Columns of a table that is not printed on a terminal: a pipe has no width."""


def _print(result: Analysis) -> None:
    import sys

    from rich.console import Console

    from whencount.reports.hypothesis_pieces import reasons

    width = None if sys.stdout.isatty() else _LEAST_WIDTH
    console = Console(highlight=False, soft_wrap=True, width=width)
    console.print("Shares of the gain have their 95 % interval over collections in brackets.")
    over = f"the {result.family} rows" if result.family else "all rows"
    for scope in ("all", "budget", "collection", "representation"):
        lines = result.shares[result.shares["scope"] == scope]
        title = f"Shares of the gain in %, {'over ' + over if scope == 'all' else f'by {scope}'}"
        console.print(_shares(lines, title))
    console.print(_hypotheses(result.hypotheses))
    for sentence in reasons(result.hypotheses):
        console.print(sentence)
    if len(result.predictors):
        console.print(_predictors(result.predictors))
    if len(result.decisions):
        console.print(_decisions(result.decisions))


def _table(title: str, *names: str, texts: int = 1) -> Any:
    from rich.table import Table

    table = Table(title=title, title_justify="left", caption_justify="left")
    for place, name in enumerate(names):
        table.add_column(name, justify="left" if place < texts else "right", no_wrap=True)
    return table


def _shares(shares: pd.DataFrame, title: str) -> Any:
    from whencount.analysis import PARTS

    table = _table(title, "rows of", *PARTS, "rows", "gain")
    for value, lines in shares.groupby("value", sort=False):
        cells = [_share(line) for line in lines.to_dict("records")]
        first = lines.iloc[0]
        table.add_row(str(value) or "all", *cells, f"{first['rows']:,}", f"{first['gain']:+.3f}")
    return table


def _share(line: dict[Any, Any]) -> str:
    if math.isnan(line["share"]):
        return "-"
    share, low, high = (100 * line[key] for key in ("share", "low", "high"))
    return f"{share:.1f}" if low == high else f"{share:.1f} ({low:.1f}, {high:.1f})"


def _hypotheses(hypotheses: pd.DataFrame) -> Any:
    names = ("hypothesis", "outcome", "status", "rows", "estimate", "against", "p", "Holm p")
    table = _table("Hypotheses", *names, texts=3)
    for line in hypotheses.to_dict("records"):
        known = line["status"] != "not testable"
        against = line["comparison"]
        table.add_row(
            f"{line['hypothesis']} {line['setting']}".strip(),
            # The words of the pages; a test without an outcome is told by its status.
            ("passed" if line["passes"] else "FAILED") if known else "-",
            line["status"],
            f"{line['rows']:,}",
            _number(line["estimate"], ".5g"),
            _number(line["threshold"] if math.isnan(against) else against, ".5g"),
            _number(line["p"], ".4g"),
            _number(line["holm_p"], ".4g"),
        )
    return table


def _predictors(predictors: pd.DataFrame) -> Any:
    names = ("target", "predictors", "model", "axis", "rows", "R²", "Spearman", "sign", "majority")
    table = _table("Predictors, on rows not fitted on", *names, texts=4)
    for line in predictors.to_dict("records"):
        if line["model"] != "boosted":
            table.add_row(
                *(str(line[key]) for key in names[:4]),
                f"{line['rows']:,}",
                *(_number(line[key], ".2f") for key in ("r2", "spearman")),
                *(_number(line[key], ".0%") for key in ("sign_accuracy", "majority_accuracy")),
            )
    table.caption = "the boosted models: predictors.parquet"
    return table


def _decisions(decisions: pd.DataFrame) -> Any:
    names = ("reference", "rows", "never", "always", "rule", "oracle", "recovered")
    table = _table("Decision rule, mean nDCG@10", *names)
    for line in decisions[decisions["scope"] == "all"].to_dict("records"):
        table.add_row(
            str(line["reference"]),
            f"{line['rows']:,}",
            *(_number(line[key], ".4f") for key in names[2:6]),
            _number(line["recovered"], ".0%"),
        )
    return table


def _number(value: float, form: str) -> str:
    return "-" if value is None or math.isnan(value) else format(value, form)
