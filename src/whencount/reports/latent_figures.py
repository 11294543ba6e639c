"""The figures of the study of latent terms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter

from whencount.attribution import QUALITY_COLUMNS
from whencount.reports.canvas import legend, panels_of
from whencount.reports.drawing import Drawing
from whencount.reports.latent_words import SCORER_NAMES
from whencount.reports.setting_style import (
    BLUE,
    GREEN,
    GREY,
    PINK,
    RED,
    SKY,
    YELLOW,
    Mark,
    clipped,
    spread_out,
)
from whencount.reports.style import INK, SETTINGS
from whencount.setting_summaries.latent_terms import over_seeds
from whencount.wording import plural

PANELS_SHOWN = 9
_MODEL_MARKS = (
    Mark(BLUE, "o"),
    Mark(RED, "^", (0, (4, 1.5))),
    Mark(GREEN, "s", (0, (4, 1.5, 1, 1.5))),
    Mark(YELLOW, "D", (0, (1, 1.5))),
    Mark(PINK, "v"),
    Mark(SKY, "P"),
)
SCORER_MARKS = {
    "bm25": Mark(RED, "^"),
    "inner": Mark(BLUE, "o", (0, (4, 1.5))),
    "words": Mark(INK, "", (0, (5, 2))),
    "dense": Mark(GREY, "", (0, (1, 1.5))),
}


def model_name(representation: str) -> str:
    """`minilm` for `minilm_latent`."""
    return clipped(representation.removesuffix("_latent"), 40)


def model_marks(representations: Iterable[str]) -> dict[str, Mark]:
    """A mark for each model, in the order of their names; with more than six they repeat."""
    names = sorted(set(representations))
    return {name: _MODEL_MARKS[place % len(_MODEL_MARKS)] for place, name in enumerate(names)}


def shown_collections(table: pd.DataFrame) -> list[str]:
    """The collections that have a panel."""
    return spread_out(sorted(table["collection"].unique()), PANELS_SHOWN)


def handles(marks: dict[str, Mark], names: dict[str, str]) -> list[Line2D]:
    """A legend entry per mark."""
    return [
        Line2D(
            [], [], color=mark.colour, ls=mark.line, marker=mark.marker or None, ms=6,
            label=names.get(name, name),
        )
        for name, mark in marks.items()
    ]  # fmt: skip


@mpl.rc_context(SETTINGS)
def configurations(rows: pd.DataFrame) -> Drawing:
    """The eight configurations, a panel per collection, a mark per model."""
    means = over_seeds(rows)
    collections = shown_collections(means)
    marks = model_marks(means["representation"])
    figure, panels = panels_of(len(collections), 2.6, share_x=False)
    offsets = np.linspace(-0.2, 0.2, len(marks)) if len(marks) > 1 else np.zeros(1)
    places = np.arange(len(QUALITY_COLUMNS))
    for panel, collection in zip(panels, collections, strict=True):
        here = means[means["collection"] == collection].set_index("representation")
        for offset, (name, mark) in zip(offsets, marks.items(), strict=True):
            if name in here.index:
                mean = here.loc[name, list(QUALITY_COLUMNS)].to_numpy(dtype=np.float64)
                columns = [f"sd_{one}" for one in QUALITY_COLUMNS]
                spread = here.loc[name, columns].to_numpy(dtype=np.float64)
                heights = places + offset
                panel.hlines(heights, mean - spread, mean + spread, color=mark.colour, lw=1.6)
                panel.plot(mean, heights, mark.marker, color=mark.colour, ms=5.5, zorder=3)
        panel.set_title(clipped(collection, 36))
        panel.set_xlabel("nDCG@10")
        panel.locator_params(axis="x", nbins=5)
        panel.tick_params(axis="y", length=0)
    panels[0].set_yticks(places, [column[1:] for column in QUALITY_COLUMNS])
    panels[0].set_ylim(len(places) - 0.4, -0.6)
    legend(figure, _points(marks))
    seeds = int(means["seeds"].max())
    return Drawing(
        "configurations",
        figure,
        "The eight configurations",
        "Mean nDCG@10 of each configuration (bits: IDF, saturation, length), untuned, on all"
        " queries; 000 is the inner product, 111 is BM25. Marks are means over"
        f" {plural(seeds, 'seed')}, lines reach one population deviation over seeds to each side."
        " Each panel has its own scale.",
        f"Dot plots of eight qualities on {plural(len(collections), 'collection')} for"
        f" {plural(len(marks), 'model')}.",
    )


def _points(marks: dict[str, Mark]) -> list[Line2D]:
    return [
        Line2D([], [], ls="", marker=mark.marker, color=mark.colour, ms=6, label=model_name(name))
        for name, mark in marks.items()
    ]


@mpl.rc_context(SETTINGS)
def tuning(tuned: pd.DataFrame, words: pd.DataFrame) -> Drawing:
    """Untuned and tuned quality of both scorers on the test queries, beside text BM25."""
    test = tuned[tuned["part"] == "test"]
    collections = shown_collections(test)
    names = sorted(test["representation"].unique())
    figure, panels = panels_of(len(collections), 0.4 * len(names) + 1.3, share_x=False)
    for panel, collection in zip(panels, collections, strict=True):
        here = test[test["collection"] == collection]
        own = words[
            (words["collection"] == collection) & words["query_id"].isin(here["query_id"].unique())
        ]
        panel.axvline(own["ndcg_10"].mean(), color=INK, ls=SCORER_MARKS["words"].line, lw=1.2)
        means = here.groupby(["representation", "scorer", "setting"])["ndcg_10"].mean()
        for height, name in enumerate(names):
            for scorer, offset in (("inner", 0.14), ("bm25", -0.14)):
                if (name, scorer, "tuned") not in means.index:
                    continue
                mark = SCORER_MARKS[scorer]
                before, after = (means[name, scorer, one] for one in ("untuned", "tuned"))
                panel.plot([before, after], [height + offset] * 2, color=mark.colour, lw=1.6)
                panel.plot(
                    before, height + offset, mark.marker, color=mark.colour, mfc="none", ms=7
                )
                panel.plot(after, height + offset, mark.marker, color=mark.colour, ms=5)
        panel.set_title(clipped(collection, 36))
        panel.set_xlabel("nDCG@10, test queries")
        panel.locator_params(axis="x", nbins=5)
        panel.tick_params(axis="y", length=0)
    panels[0].set_yticks(range(len(names)), [model_name(name) for name in names])
    panels[0].set_ylim(len(names) - 0.4, -0.6)
    entries = [
        Line2D(
            [], [], ls="", marker=SCORER_MARKS[scorer].marker, color=SCORER_MARKS[scorer].colour,
            mfc=SCORER_MARKS[scorer].colour if setting == "tuned" else "none", ms=6,
            label=f"{SCORER_NAMES[scorer].split(' on ')[0]}, {setting}",
        )
        for scorer in ("inner", "bm25")
        for setting in ("untuned", "tuned")
    ]  # fmt: skip
    entries += handles({"words": SCORER_MARKS["words"]}, SCORER_NAMES)
    legend(figure, entries)
    return Drawing(
        "tuning",
        figure,
        "Untuned and tuned",
        "Mean nDCG@10 on the test queries over seeds. Open marks have fixed parameters; filled ones"
        " have the phi (and for BM25 k1 and b) that were best on the development queries, which no"
        " test query had a part in. The dashed line is BM25 on the words of the text, untuned. Each"
        " panel has its own scale.",
        f"Dot plots of untuned and tuned quality on {plural(len(collections), 'collection')}.",
    )


@mpl.rc_context(SETTINGS)
def recall(latent: pd.DataFrame, references: pd.DataFrame) -> Drawing | None:
    """Recall against rank on collections of LIMIT, untuned, on all queries."""
    kept = [
        table[(table["part"] == "all") & (table["setting"] == "untuned")]
        for table in (latent, references)
    ]
    lines = pd.concat([one for one in kept if len(one)] or kept[:1], ignore_index=True)
    if len(lines) == 0:
        return None
    collections = shown_collections(lines)
    marks = {one: mark for one, mark in SCORER_MARKS.items() if one in set(lines["scorer"])}
    figure, panels = panels_of(len(collections), 2.6, columns=2)
    for panel, collection in zip(panels, collections, strict=True):
        here = lines[lines["collection"] == collection]
        for scorer, mark in marks.items():
            mine = here[here["scorer"] == scorer].groupby("cutoff")["recall"]
            mean = mine.mean()
            panel.fill_between(
                mean.index, mine.min(), mine.max(), color=mark.colour, alpha=0.15, lw=0
            )
            panel.plot(
                mean.index, mean, color=mark.colour, ls=mark.line, marker=mark.marker or ".", ms=6
            )
        cutoffs = sorted(here["cutoff"].unique())
        panel.set_xscale("log")
        panel.set_xticks(cutoffs, [f"{one:,}" for one in cutoffs], minor=False)
        panel.set_xticks([], minor=True)
        panel.set_ylim(-0.03, 1.03)
        panel.set_title(clipped(collection, 36))
        panel.set_xlabel("rank")
    panels[0].set_ylabel("recall")
    legend(figure, handles(marks, SCORER_NAMES))
    return Drawing(
        "recall",
        figure,
        "Recall on LIMIT",
        "The share of the relevant documents up to a rank, on collections made of every pair of a"
        " few documents, which a single vector of few dimensions cannot all rank first. All"
        " queries, untuned; shaded is the range over models and seeds.",
        f"Line plots of recall against rank on {plural(len(collections), 'collection')}.",
    )


@mpl.rc_context(SETTINGS)
def pruning(table: pd.DataFrame) -> Drawing:
    """Quality against the posting work that is left when saturated features are dropped."""
    collections = shown_collections(table)
    figure, panels = panels_of(len(collections), 2.5, share_y=False)
    for panel, collection in zip(panels, collections, strict=True):
        here = table[table["collection"] == collection]
        means = here.groupby("threshold")[["posting_work", "inner", "bm25"]].mean()
        work = means["posting_work"] / max(means["posting_work"].iloc[-1], 1e-12)
        for scorer in ("bm25", "inner"):
            mark = SCORER_MARKS[scorer]
            panel.plot(work, means[scorer], color=mark.colour, ls=mark.line, lw=1.2)
            panel.plot(work, means[scorer], mark.marker, color=mark.colour, ms=5)
        for threshold in spread_out(list(means.index), 5):
            panel.annotate(
                f"{threshold:g}", (work[threshold], means.loc[threshold, "bm25"]),
                textcoords="offset points", xytext=(0, 7), ha="center", fontsize=8,
            )  # fmt: skip
        panel.set_title(clipped(collection, 36))
        panel.set_xlabel("posting work left")
        panel.set_xlim(-0.04, 1.08)
        panel.margins(y=0.15)
    panels[0].set_ylabel("nDCG@10")
    legend(figure, handles({one: SCORER_MARKS[one] for one in ("bm25", "inner")}, SCORER_NAMES))
    return Drawing(
        "pruning",
        figure,
        "Dropping saturated features",
        "Features that more than a share of the documents have (the number at a mark) are dropped"
        " from documents and queries; the horizontal axis is what is left of the multiplications of"
        " an average query. Means over models and seeds, untuned, all queries. Each panel has a"
        " scale of quality of its own.",
        f"Line plots of quality against posting work on {plural(len(collections), 'collection')}.",
    )


@mpl.rc_context(SETTINGS)
def rank_frequency(curves: Sequence[tuple[str, pd.DataFrame]], name: str = "zipf") -> Drawing:
    """Document frequency against rank, of latent terms, words and other vectors.

    Args:
        curves: a label and lines of one kind, columns collection, representation, rank,
            frequency, zipf_slope; a curve is drawn per representation, of its first seed.
        name: of the drawing.
    """
    collections = shown_collections(pd.concat([one[["collection"]] for _, one in curves]))
    figure, panels = panels_of(len(collections), 2.6)
    marks: dict[str, Mark] = {}
    for panel, collection in zip(panels, collections, strict=True):
        for label, table in curves:
            here = table[table["collection"] == collection]
            if "seed" in here.columns and len(here):
                here = here[here["seed"] == here["seed"].min()]
            for representation, mine in here.groupby("representation", sort=True):
                own = (
                    label
                    if label == str(representation)
                    else f"{label}, {model_name(str(representation))}"
                )
                mark = marks.setdefault(own, _MODEL_MARKS[len(marks) % len(_MODEL_MARKS)])
                curve = mine.sort_values("rank")
                panel.plot(
                    curve["rank"], curve["frequency"], color=mark.colour, ls=mark.line, lw=1.4
                )
        panel.set_xscale("log")
        panel.set_yscale("log")
        for axis in (panel.xaxis, panel.yaxis):
            # Plain numbers: the style takes no text for a formula.
            axis.set_major_formatter(lambda value, _: f"{value:,g}")
            axis.set_minor_formatter(NullFormatter())
        panel.set_title(clipped(collection, 36))
        panel.set_xlabel("rank of the feature")
    panels[0].set_ylabel("df / N")
    plain = {label: Mark(mark.colour, "", mark.line) for label, mark in marks.items()}
    legend(figure, handles(plain, {}))
    return Drawing(
        name,
        figure,
        "Document frequency by rank",
        "The share of documents that have a feature, features ordered by it, both axes"
        " logarithmic: words follow a falling line (Zipf). The slopes that are told are those of"
        " the least-squares line through ln(df / N) and ln(rank) of all features that occur,"
        " without their sign. The first seed of a model stands for all.",
        f"Rank-frequency curves of {plural(len(marks), 'kind')} of features on"
        f" {plural(len(collections), 'collection')}.",
    )


@mpl.rc_context(SETTINGS)
def training(table: pd.DataFrame) -> Drawing | None:
    """How error and dead features went in training, a line per dictionary."""
    if len(table) == 0:
        return None
    marks = model_marks(table["model"].astype(str))
    figure, panels = panels_of(2, 2.6, columns=2, share_y=False)
    for panel, column, label in zip(
        panels, ("validation_fvu", "dead"), ("error on validation passages", "dead features"),
        strict=True,
    ):  # fmt: skip
        for (model, _), mine in table.groupby(["model", "seed"], sort=True):
            mark = marks[str(model)]
            curve = mine.dropna(subset=[column]).sort_values("states")
            panel.plot(
                curve["states"], curve[column], mark.marker, color=mark.colour, ls=mark.line,
                lw=1.1, ms=3.5,
            )  # fmt: skip
        panel.set_xlabel("token states seen")
        panel.set_ylabel(label)
        panel.set_ylim(bottom=0)
        panel.locator_params(nbins=5)
        panel.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    named = {name: model_name(name) for name in marks}
    legend(figure, handles(marks, named))
    return Drawing(
        "training",
        figure,
        "Training of the dictionaries",
        "Left: the share of variance that the codes leave unexplained on passages held back. Right:"
        " features that fired for no state of late, which cost nothing and tell nothing. A line per"
        " model and seed.",
        "Two line plots: reconstruction error and dead features against the states seen.",
    )
