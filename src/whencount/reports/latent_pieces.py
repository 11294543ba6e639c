"""Tables and words of the page on latent terms; everything that comes from data is escaped."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

import pandas as pd

from whencount.attribution import QUALITY_COLUMNS
from whencount.latent_terms.comparing import COMPARISONS
from whencount.reports import setting_pieces
from whencount.reports.drawing import Table
from whencount.reports.latent_figures import model_name
from whencount.reports.latent_tables import LatentTables
from whencount.reports.latent_words import SCORER_NAMES, sentences
from whencount.reports.markup import folded, markup
from whencount.reports.setting_pieces import bounded, paragraphs, tile, tiles
from whencount.reports.setting_style import clipped
from whencount.reports.style import SWITCH_COLOURS, SWITCH_NAMES
from whencount.setting_summaries.latent_terms import ALPHA, LatentAnswer, over_seeds
from whencount.wording import number, plural, signed

_COMPARISON_NAMES = {
    "bm25_over_inner_untuned": "BM25 less inner product, untuned",
    "bm25_over_inner_tuned": "BM25 less inner product, both tuned",
    "tuned_over_untuned_bm25": "BM25: tuned less untuned",
    "tuned_over_untuned_inner": "inner product: tuned less untuned",
    "untuned_over_words": "BM25 on latent terms less on words, untuned",
    "tuned_over_words": "tuned BM25 on latent terms less BM25 on words",
}


def answer(found: LatentAnswer) -> Table:
    """The answer: key numbers, then sentences."""
    parts = [
        tile(number(found.bm25), "BM25 on latent terms", "mean nDCG@10, untuned"),
        tile(number(found.inner), "inner product on them", "mean nDCG@10"),
        *[
            tile(
                signed(found.switches[switch].mean),
                f"φ {SWITCH_NAMES[switch]}",
                "mean Shapley value",
                SWITCH_COLOURS[switch],
            )
            for switch in found.switches
        ],
    ]
    return Table(f"{tiles(parts)}\n{paragraphs(sentences(found))}")


def qualities(rows: pd.DataFrame) -> Table:
    """The eight qualities of every model and collection, means over seeds; the best is bold."""
    body = []
    for _, line in over_seeds(rows).iterrows():
        values = [float(line[column]) for column in QUALITY_COLUMNS]
        cells = [html.escape(model_name(str(line["representation"])))]
        cells.append(html.escape(clipped(str(line["collection"]), 60)))
        for column, value in zip(QUALITY_COLUMNS, values, strict=True):
            text = number(value)
            shown = f"<b>{text}</b>" if value == max(values) else text
            spread = float(line[f"sd_{column}"])
            cells.append(f"{shown} <small>± {spread:.3f}</small>" if line["seeds"] > 1 else shown)
        body.append([*cells, signed(float(line["gain"]))])
    head = ["model", "collection", *(one[1:] for one in QUALITY_COLUMNS), "Q111 − Q000"]
    said = "<p>Means over seeds; ± is the population deviation over them.</p>"
    return Table(f"{said}\n{bounded(head, body, 2, 'rows.parquet')}")


def compared(table: pd.DataFrame) -> Table:
    """Every comparison with its interval and Holm p; what passes is bold."""
    body = []
    for name in COMPARISONS:
        for _, line in table[table["comparison"] == name].iterrows():
            difference = signed(float(line["difference"]))
            told = line["holm_p"] <= ALPHA
            interval = "too few queries"
            if not pd.isna(line["low"]):
                interval = f"{signed(float(line['low']))} to {signed(float(line['high']))}"
            body.append(
                [
                    html.escape(_COMPARISON_NAMES[name]),
                    html.escape(model_name(str(line["representation"]))),
                    html.escape(clipped(str(line["collection"]), 60)),
                    number(float(line["first"])),
                    number(float(line["second"])),
                    f"<b>{difference}</b>" if told else difference,
                    interval,
                    f"{float(line['holm_p']):.4f}",
                    f"{int(line['queries']):,}",
                ]
            )
    head = ["comparison", "model", "collection", "first", "second", "difference"]
    head += ["95 % interval", "Holm p", "queries"]
    said = (
        "<p>Test queries only, seeds averaged query by query, paired bootstrap over queries; Holm's"
        f" correction runs over the lines of one comparison. Bold: at most {ALPHA:g}.</p>"
    )
    return Table(f"{said}\n{bounded(head, body, 3, 'comparisons.parquet')}")


def chosen(grid: pd.DataFrame) -> Table:
    """What the development queries chose, and what it gave on both parts; folded."""
    body = []
    for _, line in grid[grid["chosen"]].iterrows():
        parameters = [
            "–" if pd.isna(line[one]) else f"{float(line[one]):g}" for one in ("phi", "k1", "b")
        ]
        body.append(
            [
                html.escape(model_name(str(line["representation"]))),
                html.escape(clipped(str(line["collection"]), 60)),
                str(int(line["seed"])),
                html.escape(SCORER_NAMES[str(line["scorer"])]),
                *parameters,
                number(float(line["development"])),
                number(float(line["test"])),
            ]
        )
    head = ["model", "collection", "seed", "scorer", "φ", "k1", "b", "development", "test"]
    table = bounded(head, body, 2, "grid.parquet")
    return Table(folded(f"What was chosen ({plural(len(body), 'choice')})", table))


def recalled(latent: pd.DataFrame, references: pd.DataFrame) -> Table | None:
    """Recall at every rank: latent terms as means over models and seeds, and the references."""
    tables = [one for one in (latent, references) if len(one)]
    if not tables:
        return None
    both = pd.concat(tables, ignore_index=True)
    keys = ["collection", "scorer", "setting", "part"]
    cutoffs = sorted(both["cutoff"].unique())
    means = both.groupby([*keys, "cutoff"])["recall"].mean().unstack("cutoff")
    body = []
    for key, line in means.iterrows():
        collection, scorer, setting, part = map(str, tuple(key))  # type: ignore[arg-type]
        cells = [clipped(collection, 60), SCORER_NAMES.get(scorer, scorer), setting, part]
        body.append([*map(html.escape, cells), *(number(float(line[one])) for one in cutoffs)])
    head = ["collection", "ranked by", "parameters", "queries", *(f"@{one:,}" for one in cutoffs)]
    return Table(markup(head, body, 3))


def pruned(table: pd.DataFrame) -> Table:
    """The curve of pruning in numbers, folded."""
    columns = ["features", "postings", "posting_work", "empty_queries", "inner", "bm25"]
    means = table.groupby(["collection", "threshold"])[columns].mean().reset_index()
    means = means.sort_values(["collection", "threshold"], ascending=[True, False])
    body = [
        [
            html.escape(clipped(str(line["collection"]), 60)),
            f"{float(line['threshold']):g}",
            f"{float(line['features']):,.0f}",
            f"{float(line['postings']):,.0f}",
            f"{float(line['posting_work']):,.0f}",
            f"{float(line['empty_queries']):.3f}",
            number(float(line["inner"])),
            number(float(line["bm25"])),
        ]
        for _, line in means.iterrows()
    ]
    head = ["collection", "largest df / N", "features", "postings", "posting work"]
    head += ["empty queries", "inner product", "BM25"]
    return Table(
        folded(
            "The numbers, means over models and seeds", bounded(head, body, 1, "pruning.parquet")
        )
    )


def trained(table: pd.DataFrame) -> Table:
    """The last line of each training."""
    last = table.sort_values("step", kind="stable").groupby(["model", "seed"]).tail(1)
    last = last.sort_values(["model", "seed"])
    columns = ["step", "states", "training_fvu", "validation_fvu", "active", "dead"]
    body = [
        [
            html.escape(clipped(str(line["model"]), 40)),
            str(int(line["seed"])),
            *(_value(line[one]) for one in columns),
        ]
        for _, line in last.iterrows()
    ]
    head = ["model", "seed", "steps", "states", "error, training", "error, validation"]
    head += ["active", "dead features"]
    return Table(bounded(head, body, 1, "training.parquet"))


def _value(value: Any) -> str:
    if isinstance(value, str):
        return html.escape(clipped(value, 40))
    if pd.isna(value):
        return "–"
    return f"{float(value):,.0f}" if float(value).is_integer() else f"{float(value):.4g}"


def making(tables: LatentTables, settings: Mapping[str, Any], study: str) -> Table:
    """What was computed and how."""
    read = {
        name: getattr(tables, name)
        for name in ("rows", "grid", "tuned", "comparisons", "recall", "pruning", "frequencies")
    }
    return setting_pieces.making({"study": study, **settings}, read)
