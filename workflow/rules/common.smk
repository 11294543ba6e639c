# The checked configuration, its grid, the paths, and what input functions need.

import json
from pathlib import Path

from snakemake.exceptions import WorkflowError

from whencount import config as configuration
from whencount import grid, naming
from whencount.environment import put_own_commands_first
from whencount.errors import InputError
from whencount.provenance import stage_hash

put_own_commands_first()

try:
    STUDY = configuration.validate(
        config, Path(workflow.basedir) / "workflow" / "schemas" / "config.schema.yaml"
    )
except InputError as error:
    # Several files, and what --config says, are one configuration.
    read = ", ".join(dict.fromkeys(map(str, workflow.configfiles)))
    raise WorkflowError(f"{read}: {error}") from None

RESULTS = STUDY["results"]
REPORTS = STUDY["reports"]
JOBS = grid.expand(STUDY)
COLLECTIONS = sorted({job.collection for job in JOBS})
CORPUS = {name: STUDY["collections"][name].get("corpus", name) for name in COLLECTIONS}
SHARDS = {name: STUDY["collections"][name]["shards"] for name in set(CORPUS.values())}
EXTERNAL = STUDY["external"]
REFERENCES = sorted([*STUDY["references"], *EXTERNAL])
# Those whose top ten stand in for relevance labels.
PSEUDO = [name for name in ("bm25", "dense", "rrf") if name in STUDY["references"]]
# Files of hypotheses: those of the working directory, else those of the repository.
HYPOTHESES = [
    Path(name) if Path(name).is_file() else Path(workflow.basedir) / name
    for name in STUDY["hypotheses"]
]
# Predictors are frozen before any corrected outcome of another setting is computed: what computes
# such outcomes takes this as an input. Nothing is frozen where no transfer is tested.
TRANSFER = STUDY["transfer"]
TRANSFER_SETTINGS = TRANSFER.get("settings", []) if TRANSFER else []
FROZEN = [f"{RESULTS}/transfer/frozen.json"] if TRANSFER else []
TRANSFER_TABLES = [
    f"{RESULTS}/transfer.parquet",
    f"{RESULTS}/transfer_predictions.parquet",
]
TABLES = [
    *[
        f"{RESULTS}/{name}.parquet"
        for name in (
            "rows",
            "significance",
            "shares",
            "references",
            "predictors",
            "predictions",
            "decisions",
            "left_out",
            *(["hypotheses"] if HYPOTHESES else []),
        )
    ],
    *[f"{RESULTS}/rows/{job.name}.parquet" for job in JOBS],
    *[f"{RESULTS}/per_query/{job.name}.parquet" for job in JOBS],
    *[
        f"{RESULTS}/references/{name}.{on}.parquet"
        for name in REFERENCES
        for on in COLLECTIONS
    ],
]
PAGES = [
    f"{REPORTS}/retrieval.html",
    *([f"{REPORTS}/hypotheses.html"] if HYPOTHESES else []),
    f"{REPORTS}/representations",
    f"{REPORTS}/collections",
]


wildcard_constraints:
    basis="[a-z0-9]+",
    collection="[a-z0-9][a-z0-9_-]*",
    corpus="[a-z0-9][a-z0-9_-]*",
    granularity="pooled|token",
    external="[a-z][a-z0-9]*",
    representation="[a-z0-9_]+_(pooled|token|external)",
    seed="[0-9]+",
    shard="[0-9]+",
    shards="[0-9]+",


# Relative in the study's own folder, so that a folder that moved draws no page again.
NOTEBOOKS = (
    Path("" if Path(workflow.basedir) == Path.cwd() else workflow.basedir)
    / "workflow"
    / "notebooks"
)


def code_of(stage, notebook=None):
    """The hash of the code that a step runs, so that a changed library is a changed param."""
    return stage_hash(stage, notebook)


def as_json(value):
    """One compact, stable line, so that a changed option is a changed param of its rule."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def registration_of(hypotheses):
    """Where `whencount register` puts the record of a file of hypotheses."""
    return hypotheses.with_name(f"{hypotheses.stem}.registration.json")


def source_of(name):
    """The options that say where a collection comes from, without those of the workflow."""
    options = STUDY["collections"][name]
    return {
        key: value
        for key, value in options.items()
        if key not in ("corpus", "shards", "maximum_stored")
    }


def corpus_to_borrow(collection):
    """The collection whose documents this one shares, if it does."""
    corpus = CORPUS[collection]
    return [] if corpus == collection else f"{RESULTS}/collections/{corpus}"


def external_of(representation):
    """`splade` of `splade_external`; None for a representation that a basis makes."""
    name, granularity = representation.rsplit("_", 1)
    return name if granularity == "external" else None


def representations_of(collections):
    """{name.seedN: path of the fitted basis} for every representation that the collections use."""
    found = {}
    for job in JOBS:
        if job.collection in collections and external_of(job.representation) is None:
            name = f"{job.representation}.seed{job.seed}"
            found[name] = f"{RESULTS}/bases/{name}"
    return found


def representations_of_corpus(corpus):
    return representations_of([name for name in COLLECTIONS if CORPUS[name] == corpus])


def vectors_folder(name, representation):
    external = external_of(representation) if representation else None
    parts = [RESULTS, "vectors", name, *([external] if external else [])]
    return "/".join(parts)


def document_vectors(corpus, representation=None):
    """The folders of a corpus's vectors, one per shard, in the order of the corpus."""
    shards = SHARDS[corpus]
    return [
        f"{vectors_folder(corpus, representation)}/documents.{shard}of{shards}"
        for shard in range(shards)
    ]


def query_vectors(collection, representation=None):
    return f"{vectors_folder(collection, representation)}/queries"


def pseudo_labels(collection):
    """{reference: its run} of the references whose top ten stand in for labels."""
    return {
        name: f"{RESULTS}/references/{name}.{collection}.parquet" for name in PSEUDO
    }


def maximum_stored(name):
    return STUDY["collections"][name].get("maximum_stored", 0)


def cells_of(wildcards):
    job = naming.Job(
        wildcards.representation, wildcards.collection, int(wildcards.seed)
    )
    if job not in JOBS:
        raise WorkflowError(
            f"the configuration has no row of {job.name}; add it to a family of {STUDY['study']!r}"
        )
    return as_json([[cell.budget, cell.k1, cell.b, cell.control] for cell in JOBS[job]])


def transfer_targets(wildcards):
    """Everything of the transfer test; a configuration without one is told so."""
    try:
        configuration.check_transfer(STUDY)
    except InputError as error:
        raise WorkflowError(str(error)) from None
    settings = {"pages": pages_targets, "experts": experts_targets}
    return [
        *FROZEN,
        *TRANSFER_TABLES,
        *[path for name in TRANSFER_SETTINGS for path in settings[name](wildcards)],
        f"{REPORTS}/transfer.html",
    ]
