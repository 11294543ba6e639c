"""`whencount decompose`: what each switch does for a collection."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whencount.cli.options import (
    COUNT,
    FILE,
    format_option,
    parse_configurations,
    read_inputs,
    scorer_from,
    scoring_options,
    warn,
)

if TYPE_CHECKING:
    import pandas as pd

    from whencount.decomposition import Decomposition


_FEW_QUERIES = 20
"""Below this a bootstrap over queries is told to say little."""


@click.command(
    epilog="""\b
Examples:
  whencount decompose --documents docs.jsonl --queries queries.jsonl --qrels qrels.tsv --out result
  whencount decompose --documents docs.jsonl.gz --queries queries.jsonl --qrels qrels.trec \\
      --out result --k1 0.9 --b 0.4 --query-budget 32 --document-budget 128 --json"""
)
@scoring_options
@click.option(
    "--qrels",
    type=FILE,
    required=True,
    metavar="FILE",
    help="Judgements: TREC (4 columns) or BEIR (3 columns, header); .gz too.",
)
@format_option("Write the runs of --configurations too, in this format.  [default: no runs]")
@click.option(
    "--draws",
    type=COUNT,
    default=10_000,
    show_default=True,
    metavar="N",
    help="Of the bootstrap over queries.",
)
@click.option(
    "--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True, metavar="N"
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def decompose(
    out: Path,
    qrels: Path,
    file_format: str | None,
    configurations: str,
    draws: int,
    seed: int,
    as_json: bool,
    **options: Any,
) -> None:
    """Tell what IDF, saturation and length normalisation each do for a collection.

    Scores all eight configurations, measures nDCG@10 and attributes the gain of BM25 (111) over the
    inner product (000) to the three switches. Writes DIR/rows.parquet (one row) and
    DIR/per_query.parquet. Queries without a relevant document are left out; a query without
    features counts with 0.
    """
    chosen = parse_configurations(configurations)
    scorer = scorer_from(options)
    from whencount.collections.qrels import read_qrels

    judgements = read_qrels(qrels)
    files = read_inputs(options)
    from whencount import decomposition
    from whencount.files import atomic_files
    from whencount.significance import attainability

    family = attainability(3, draws)
    if not family.passes:
        warn(f"main effects: {family.message}")
    # Opened before the work, so that a place that cannot be written is told at once.
    with atomic_files(out) as folder:
        result = decomposition.decompose(
            files.documents, files.queries, judgements, scorer, draws=draws, seed=seed
        )
        _row(result, options, draws, seed).to_parquet(folder / "rows.parquet", index=False)
        result.per_query_table().to_parquet(folder / "per_query.parquet", index=False)
        if file_format is not None:
            decomposition.write_runs(
                folder, files.documents, files.queries, scorer, chosen, file_format
            )
    if result.unknown_documents:
        warn(
            f"{result.unknown_documents} judgements in {qrels} name documents that have no vector;"
            " they are kept, so that their queries cannot reach nDCG 1"
        )
    if result.unknown_queries:
        warn(f"{result.unknown_queries} queries in {qrels} have no vector; they are left out")
    if len(result.query_ids) < _FEW_QUERIES:
        warn(
            f"only {len(result.query_ids)} evaluated queries: resampling so few says little, so"
            " read nothing into p"
        )
    if as_json:
        import orjson

        click.echo(orjson.dumps(result.summary()).decode())
    else:
        _print(result, len(files.queries))
        click.echo(f"{out}: rows.parquet, per_query.parquet", err=True)


def _row(result: Decomposition, options: dict[str, Any], draws: int, seed: int) -> pd.DataFrame:
    """The row of `rows.parquet`: how it was computed, then what was found."""
    row = result.row()
    names = ("query_budget", "document_budget", "k1", "b", "depth")
    settings = {name: options[name] for name in names} | {"draws": draws, "seed": seed}
    for place, (name, value) in enumerate(settings.items()):
        row.insert(place, name, value)
    return row.astype({"query_budget": "Int64", "document_budget": "Int64"})


def _print(result: Decomposition, queries: int) -> None:
    from rich.console import Console
    from rich.table import Table

    from whencount import attribution
    from whencount.scoring import CONFIGURATIONS, SWITCHES

    console = Console(highlight=False, soft_wrap=True)
    summary = result.summary()
    console.print(f"{len(result.query_ids):,} of {queries:,} queries evaluated")
    quality = Table(title="Quality", title_justify="left", caption_justify="left")
    quality.caption = "bits: IDF, saturation, length; expected: equal scores in random order"
    for name in ("configuration", "nDCG@10", "expected", "tie at rank 10"):
        quality.add_column(name, justify="left" if name == "configuration" else "right")
    for place, configuration in enumerate(CONFIGURATIONS):
        quality.add_row(
            str(configuration),
            f"{result.quality[place]:.4f}",
            f"{result.expected[place]:.4f}",
            f"{result.tie_share[place]:.1%}",
        )
    console.print(quality)
    switches = Table(title="Switches", title_justify="left")
    for name in ("switch", "Shapley value", "share of gain", "main effect", "p", "Holm p"):
        switches.add_column(name, justify="left" if name == "switch" else "right")
    gain = summary["gain"]
    for switch in SWITCHES:
        switches.add_row(
            switch,
            f"{summary['shapley'][switch]:+.4f}",
            # Of a loss, or of nothing, there is no share to read.
            f"{summary['shapley'][switch] / gain:.1%}" if gain > 0 else "-",
            f"{summary['main_effect'][switch]:+.4f}",
            f"{result.p[switch]:.4g}",
            f"{result.holm[switch]:.4g}",
        )
    console.print(switches)
    margin = float(attribution.margin(result.quality))
    shown = f"{margin:+.3f}"
    if math.isnan(margin):
        shown = "undefined, as the configurations do not differ"
    console.print(
        f"gain, 111 against 000: {gain:+.4f}, p {result.p['full']:.4g},"
        f" Holm p {result.holm['full']:.4g}"
    )
    console.print(f"margin, gain in standard deviations across the eight: {shown}")
    console.print(f"collection gain, 111 against 010: {summary['collection_gain']:+.4f}")
