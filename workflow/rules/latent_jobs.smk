# What the rules of the study of latent terms need: its jobs, tables, folders and options.

from whencount.latent_config import is_limit

LATENT = STUDY.get("latent_terms", {})
LATENT_RESULTS = f"{RESULTS}/latent_terms"
LATENT_KINDS = (
    "rows",
    "per_query",
    "grid",
    "tuned",
    "recall",
    "pruning",
    "frequencies",
)
# What stands beside the jobs of a collection: table, and the option of the command that writes it.
LATENT_BESIDE = {
    "words": "words",
    "reference_recall": "recall",
    "reference_frequencies": "frequencies",
}
LATENT_COLLECTIONS = LATENT.get("collections", [])
LATENT_OF_COLLECTIONS = (*LATENT_BESIDE, "learned_frequencies")
LATENT_NAMES = [
    f"{model}.{collection}.seed{seed}"
    for model in LATENT.get("models", {})
    for collection in LATENT_COLLECTIONS
    for seed in LATENT.get("seeds", [])
]
LATENT_TABLES = {
    name: f"{LATENT_RESULTS}/{name}.parquet"
    for name in (*LATENT_KINDS, *LATENT_BESIDE, "comparisons", "training")
}
REVERSAL_TABLES = {
    "reversal": f"{LATENT_RESULTS}/reversal.parquet",
    "frequencies": LATENT_TABLES["frequencies"],
    "reference_frequencies": LATENT_TABLES["reference_frequencies"],
    **(
        {"learned_frequencies": f"{LATENT_RESULTS}/learned_frequencies.parquet"}
        if LEARNED
        else {}
    ),
}


def needs_latent_terms():
    if not LATENT:
        raise WorkflowError(
            "the configuration has no study of latent terms; add the key latent_terms"
            " (docs/latent-terms.md)"
        )


def latent_targets(wildcards):
    """Everything of the study of latent terms; a configuration without one is told so."""
    needs_latent_terms()
    return [
        *LATENT_TABLES.values(),
        # By name, so that a lost one is made again although what was made from it is there.
        *[
            f"{LATENT_RESULTS}/{kind}/{name}.parquet"
            for kind in LATENT_KINDS
            for name in LATENT_NAMES
        ],
        *[
            f"{LATENT_RESULTS}/{kind}/{name}.parquet"
            for kind in LATENT_BESIDE
            for name in LATENT_COLLECTIONS
        ],
        f"{LATENT_RESULTS}/features.parquet",
        f"{LATENT_RESULTS}/feature_examples.parquet",
        f"{REPORTS}/features.html",
        page_of("latent_terms"),
    ]


def reversal_targets(wildcards):
    """The comparison with SPLADE-like vectors, where the study has them."""
    needs_latent_terms()
    return [*REVERSAL_TABLES.values(), page_of("reversal")]


def latent_documents(corpus, model, seed):
    """The folders of a corpus's summed codes, one per shard, in the order of the corpus."""
    return [
        f"{LATENT_RESULTS}/vectors/{corpus}/{model}.seed{seed}/documents.{shard}of{SHARDS[corpus]}"
        for shard in range(SHARDS[corpus])
    ]


def latent_queries(collection, model, seed):
    return f"{LATENT_RESULTS}/vectors/{collection}/{model}.seed{seed}/queries"


def latent_options():
    """What of the study a job depends on."""
    keys = ("budget", "phi", "k1", "b", "grid", "development", "recall", "pruning")
    return as_json({key: LATENT[key] for key in keys})


def wants_recall(collection):
    return is_limit(STUDY["collections"][collection], collection)


def latent_pseudo_labels(collection):
    """Text BM25 alone: the dense ranking would need every basis of the study."""
    found = pseudo_labels(collection)
    return {"bm25": found["bm25"]} if "bm25" in found else {}


def dense_documents(collection):
    """Folders of pooled states, where recall is shown beside that of a dense ranking."""
    if not wants_recall(collection):
        return []
    corpus = CORPUS[collection]
    return [
        f"{LATENT_RESULTS}/dense/{corpus}/documents.{shard}of{SHARDS[corpus]}"
        for shard in range(SHARDS[corpus])
    ]


def dense_queries(collection):
    if not wants_recall(collection):
        return []
    return f"{LATENT_RESULTS}/dense/{collection}/queries"


def latent_memory(wildcards):
    # Weighed vectors and their index: about 24 bytes per stored weight of the whole corpus.
    return 8000 if SHARDS[CORPUS[wildcards.collection]] == 1 else 64000


LATENT_SEEDS = ",".join(map(str, LATENT.get("seeds", [])))


def latent_encoder(model):
    return LATENT["models"][model].get("encoder", STUDY["encoder"])


def latent_model(model):
    """How a model's dictionaries are made, without its backbone."""
    options = LATENT["models"][model]
    return {key: value for key, value in options.items() if key != "encoder"}


def latent_dictionaries(model):
    return f"{LATENT_RESULTS}/dictionaries/{model}"


def latent_settings():
    """What a page tells of the study; not what is of one machine alone."""
    alone = ("device", "precision", "path", "batch_tokens")
    models = {
        name: {
            key: (
                {one: told for one, told in value.items() if one not in alone}
                if key == "encoder"
                else value
            )
            for key, value in model.items()
        }
        for name, model in LATENT["models"].items()
    }
    return as_json(
        {
            "study": STUDY["study"],
            "setting": "latent_terms",
            "settings": {**LATENT, "models": models},
        }
    )
