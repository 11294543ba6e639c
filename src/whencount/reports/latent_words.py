"""The answer of the study of latent terms in sentences: every word is chosen by the numbers."""

from __future__ import annotations

from whencount.reports.style import REFERENCE_NAMES, SWITCH_NAMES
from whencount.setting_summaries.latent_terms import ALPHA, KEPT, Compared, LatentAnswer
from whencount.wording import capital, joined, number, percent, plural, signed

SCORER_NAMES = {
    "inner": "inner product on latent terms",
    "bm25": "BM25 on latent terms",
    "words": REFERENCE_NAMES["bm25"],
    "dense": REFERENCE_NAMES["dense"],
}


def sentences(found: LatentAnswer) -> list[str]:
    """The answer as plain text: the run, BM25 against inner product, tuning, words, the rest."""
    return [
        _headline(found),
        _switches(found),
        *_compared(found),
        *_recall(found),
        *_pruning(found),
        *_slopes(found),
    ]


def _headline(found: LatentAnswer) -> str:
    models = joined([name.removesuffix("_latent") for name in found.representations])
    change = found.bm25 - found.inner
    verb = "is above" if change > 0 else "is below" if change < 0 else "equals"
    text = (
        f"On latent terms of {models}, BM25 {verb} the inner product: mean nDCG@10"
        f" {number(found.bm25)} against {number(found.inner)} ({signed(change)}), over"
        f" {plural(len(found.collections), 'collection')} and {plural(found.seeds, 'seed')}."
    )
    if found.seeds > 1:
        text += f" Over seeds BM25's quality varies by {number(found.seed_sd)} (mean deviation)."
    if found.best[0] not in ("111", "000"):
        text += f" The best of the eight on average is {found.best[0]} ({number(found.best[1])})."
    return text


def _switches(found: LatentAnswer) -> str:
    ordered = sorted(found.switches.items(), key=lambda one: -one[1].mean)
    parts = [f"{SWITCH_NAMES[switch]} {signed(signs.mean)}" for switch, signs in ordered]
    return f"Of that change the switches carry, as mean Shapley values: {joined(parts)}."


def _compared(found: LatentAnswer) -> list[str]:
    told = []
    for name, about in (
        ("bm25_over_inner_untuned", "Untuned, BM25 less inner product on the test queries"),
        ("bm25_over_inner_tuned", "Both tuned on development queries, the same difference"),
        ("tuned_over_untuned_bm25", "What tuning brings BM25"),
        ("tuned_over_untuned_inner", "What tuning brings the inner product"),
        ("tuned_over_words", "Tuned BM25 on latent terms less BM25 on the words of the text"),
    ):
        if name in found.compared:
            told.append(f"{about}: {_difference(found.compared[name])}")
    return told


def _difference(one: Compared) -> str:
    rows = one.differences.up + one.differences.down + one.differences.same
    return (
        f"{signed(one.differences.mean)} on average ({number(one.first)} against"
        f" {number(one.second)}); by more than chance explains (Holm, {ALPHA:g}) above 0 in"
        f" {one.above:,} and below 0 in {one.below:,} of {plural(rows, 'pair')} of model and"
        " collection."
    )


def _recall(found: LatentAnswer) -> list[str]:
    told = []
    for collection in sorted({name for name, _ in found.recall}):
        parts = [
            f"{SCORER_NAMES.get(scorer, scorer)} {percent(value)}"
            for (where, scorer), value in sorted(found.recall.items(), key=lambda one: -one[1])
            if where == collection
        ]
        told.append(f"Recall at {found.cutoff:,} on {collection}: {joined(parts)}.")
    return told


def _pruning(found: LatentAnswer) -> list[str]:
    told = []
    for collection, one in found.pruned.items():
        if one.threshold >= 1:
            told.append(
                f"On {collection} no saturated feature can be dropped: already the first threshold"
                f" takes more than {percent(1 - KEPT)} of BM25's quality."
            )
        else:
            told.append(
                f"On {collection} all features that more than {percent(one.threshold)} of the"
                f" documents have can be dropped while BM25 keeps {percent(KEPT)} of its quality:"
                f" {percent(one.features)} of the features and {percent(one.work)} of the posting"
                " work are left."
            )
    return told


def _slopes(found: LatentAnswer) -> list[str]:
    parts = []
    for collection in sorted({name for name, _ in found.slopes}):
        latent, words = (found.slopes.get((collection, kind)) for kind in ("latent", "words"))
        if latent is not None and words is not None:
            parts.append(f"{number(latent, 2)} against {number(words, 2)} on {collection}")
    if not parts:
        return []
    return [
        capital(
            f"slopes of document frequency by rank, latent terms against words: {joined(parts)}."
        )
    ]
