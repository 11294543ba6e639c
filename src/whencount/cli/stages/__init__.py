"""`whencount stage ...`: the steps that the workflow runs, one command per rule.

Each reads files, calls one library function, and writes its output whole or not at all.
"""

from __future__ import annotations

import click

from whencount.cli.lazy import LazyGroup

_HERE = "whencount.cli.stages"

STAGES = {
    "collection": (f"{_HERE}.vectors:collection", "Read and check a collection."),
    "fit-text": (f"{_HERE}.vectors:fit_text", "Choose the passages that bases are fitted on."),
    "fit-states": (f"{_HERE}.vectors:fit_states", "Encode the fit passages, keep their states."),
    "fit-basis": (f"{_HERE}.vectors:fit_basis", "Fit a basis and find its scale."),
    "encode": (f"{_HERE}.vectors:encode", "Encode a shard of texts as all representations."),
    "encode-external": (
        f"{_HERE}.vectors:encode_external",
        "Encode a shard of texts by a sparse encoder of others.",
    ),
    "bm25": (f"{_HERE}.rankings:bm25", "Rank a collection by text BM25."),
    "dense": (f"{_HERE}.rankings:dense", "Rank a collection by the encoder's pooled states."),
    "rrf": (f"{_HERE}.rankings:rrf", "Fuse the rankings of references."),
    "external-run": (
        f"{_HERE}.rankings:external_run",
        "Rank a collection by the inner product of external vectors.",
    ),
    "score": (f"{_HERE}.rankings:score", "Score one representation of one collection."),
    "collect": (f"{_HERE}.rankings:collect", "Gather the rows of all jobs in one table."),
    "significance": (f"{_HERE}.analysis:significance", "Bootstrap the reported rows."),
    "shares": (f"{_HERE}.analysis:shares", "Share the gain out among the three switches."),
    "reference-quality": (f"{_HERE}.analysis:reference_quality", "Measure the references."),
    "predictors": (f"{_HERE}.analysis:predictors", "Predict the targets from label-free columns."),
    "hypotheses": (f"{_HERE}.analysis:hypotheses", "Test registered hypotheses."),
    "freeze": (f"{_HERE}.transfer:freeze", "Freeze predictors before outcomes exist."),
    "transfer": (f"{_HERE}.transfer:transfer_test", "Put frozen predictors to the test."),
    "transfer-report": (f"{_HERE}.transfer:transfer_report", "Render the page of that test."),
    "setting-report": (f"{_HERE}.setting_reports:setting_report", "Render the page of a setting."),
    "kv-haystack": (f"{_HERE}.kv_pages:kv_haystack", "Read the prose that needles are hidden in."),
    "kv-pages": (f"{_HERE}.kv_pages:kv_pages", "Decode a task under all selectors of pages."),
    "kv-collect": (f"{_HERE}.kv_pages:kv_collect", "Gather the tables of the study of pages."),
    "expert-text": (f"{_HERE}.experts:expert_text", "Read documents and share them out in parts."),
    "expert-training": (f"{_HERE}.experts:expert_training", "Train a small OLMoE from scratch."),
    "expert-calibration": (
        f"{_HERE}.experts:expert_calibration",
        "Measure what routing shows before any outcome.",
    ),
    "expert-evaluation": (
        f"{_HERE}.experts:expert_evaluation",
        "Evaluate a model under every rule of routing.",
    ),
    "expert-collect": (f"{_HERE}.experts:expert_collect", "Gather the tables of expert routing."),
    "fusion-job": (f"{_HERE}.fusion:fusion_job", "Fuse two arms on one collection by every rule."),
    "fusion-collect": (f"{_HERE}.fusion:fusion_collect", "Gather the tables of the two arms."),
    "economics-words": (f"{_HERE}.economics:economics_words", "Count words as sparse vectors."),
    "economics-costs": (
        f"{_HERE}.economics:economics_costs",
        "Count, index and rank a representation.",
    ),
    "economics-times": (f"{_HERE}.economics:economics_times", "Time queries one by one."),
    "economics-collect": (f"{_HERE}.economics:economics_collect", "Gather the tables of costs."),
    "learned-train": (f"{_HERE}.learned_sparse:learned_train", "Train a small SPLADE model."),
    "learned-encode": (f"{_HERE}.learned_sparse:learned_encode", "Encode texts by a SPLADE model."),
    "learned-costs": (
        f"{_HERE}.learned_sparse:learned_costs",
        "Count what the vectors of SPLADE models cost.",
    ),
    "learned-collect": (f"{_HERE}.learned_sparse:learned_collect", "Gather their tables."),
    "late-job": (f"{_HERE}.late_interaction:late_job", "Rank a collection by late interaction."),
    "late-collect": (f"{_HERE}.late_interaction:late_collect", "Gather its tables."),
    "latent-train": (f"{_HERE}.latent_terms:latent_train", "Train dictionaries of latent terms."),
    "latent-training": (f"{_HERE}.latent_terms:latent_training", "Gather how they were trained."),
    "latent-encode": (f"{_HERE}.latent_terms:latent_encode", "Sum the codes of texts as terms."),
    "latent-score": (f"{_HERE}.latent_study:latent_score", "Score, tune and prune latent terms."),
    "latent-beside": (
        f"{_HERE}.latent_study:latent_beside",
        "Measure what stands beside latent terms: words, a dense ranking.",
    ),
    "latent-learned-frequencies": (
        f"{_HERE}.latent_study:latent_learned_frequencies",
        "Rank the features of SPLADE-like vectors by frequency.",
    ),
    "latent-collect": (f"{_HERE}.latent_study:latent_collect", "Gather tables of latent terms."),
    "latent-compare": (f"{_HERE}.latent_study:latent_compare", "Compare tuned and untuned."),
    "latent-reversal": (
        f"{_HERE}.latent_study:latent_reversal",
        "Compare BM25 with the inner product on both kinds of vectors.",
    ),
    "latent-features": (
        f"{_HERE}.latent_study:latent_features",
        "Find where each latent term is strongest.",
    ),
    "latent-browser": (
        f"{_HERE}.latent_study:latent_browser",
        "Write the page to read and label latent terms on.",
    ),
    "pages": (f"{_HERE}.pages:pages", "Write a page per representation and collection."),
    "moved": (f"{_HERE}.site:moved", "Rank again what moves most, list the documents."),
    "site": (f"{_HERE}.site:site", "Link every report and explore the rows on one page."),
    "report": (f"{_HERE}.pages:report", "Run a report notebook and render its page."),
}


@click.group(cls=LazyGroup, commands_at=STAGES)
@click.option(
    "--cards",
    type=click.IntRange(min=0),
    help="GPUs to hold until the step ends; 0 leaves the step the CPU.  [default: see all]",
)
def stage(cards: int | None) -> None:
    """Run one step of the workflow (the rules in workflow/rules call these)."""
    if cards is not None:
        from whencount.cards import claim

        claim(cards)
