"""The grid of a study: which rows there are, and which job computes them (study, section 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from whencount.config import representation_names
from whencount.naming import RANDOM_BASES, Cell, Job, Representation


def expand(config: Mapping[str, Any]) -> dict[Job, dict[Cell, list[str]]]:
    """Every job of the study and its cells, each with the families that ask for it.

    A cell that two families share stands once. Random bases alone take seeds above 0. A family has
    shared dictionaries and external representations only where it lists them.
    `config` is a validated configuration (`whencount.config.validate`).
    """
    parsed = map(Representation.parse, representation_names(config))
    default = [one.name for one in parsed if not (one.shared or one.external)]
    jobs: dict[Job, dict[Cell, list[str]]] = {}
    for family, spec in config["families"].items():
        cells = [
            Cell(budget, float(k1), float(b), "" if control == "none" else control)
            for budget in spec["budgets"]
            for k1 in spec["k1"]
            for b in spec["b"]
            for control in spec.get("controls", ["none"])
        ]
        for representation in spec.get("representations", default):
            random = Representation.parse(representation).basis in RANDOM_BASES
            for collection in spec.get("collections", config["collections"]):
                for seed in spec.get("seeds", [0]):
                    if seed and not random:
                        continue
                    job = jobs.setdefault(Job(representation, collection, seed), {})
                    for cell in cells:
                        job.setdefault(cell, []).append(family)
    return {job: dict(sorted(jobs[job].items())) for job in sorted(jobs)}


def rule_jobs(config: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """How many jobs each rule of the workflow has up to the rows and the references.

    Returns:
        Kind of work (collections, fits, encoding, scoring, references) to rule to number of jobs;
        rules without a job are left out. `config` is as for `expand`, with its `references`.
    """
    jobs = expand(config)
    representations = {job: Representation.parse(job.representation) for job in jobs}
    shares = {
        (one.basis, one.granularity, job.seed) for job, one in representations.items() if one.shared
    }
    fits = {
        (one.basis, one.granularity, job.seed)
        for job, one in representations.items()
        if not (one.shared or one.external)
    } | {(basis, "token", seed) for basis, _, seed in shares}
    collections = {job.collection for job in jobs}
    corpora = {corpus_of(config, name) for name in collections}
    shards = sum(int(config["collections"][name].get("shards", 1)) for name in corpora)
    external, references = len(config.get("external", {})), config.get("references", {})
    # States are those of the encoder that bases see, and what the dense reference ranks by.
    encoded = bool(fits) or "dense" in references
    counts = {
        "collections": {"collection": len(collections | corpora)},
        "fits": {
            "fit_text": int(bool(fits)),
            "fit_states": int(bool(fits)),
            "fit_basis": len(fits),
            "share_dictionary": len(shares),
        },
        "encoding": {
            "encode_documents": shards * encoded,
            "encode_queries": len(collections) * encoded,
            "encode_external_documents": shards * external,
            "encode_external_queries": len(collections) * external,
        },
        "scoring": {"score": len(jobs)},
        "references": {
            **{name: len(collections) for name in ("bm25", "dense", "rrf") if name in references},
            "external_run": len(collections) * external,
        },
    }
    return {
        kind: {rule: number for rule, number in rules.items() if number}
        for kind, rules in counts.items()
    }


def corpus_of(config: Mapping[str, Any], collection: str) -> str:
    """The collection whose documents this one has: its own name unless it shares another's."""
    corpus: str = config["collections"][collection].get("corpus", collection)
    return corpus
