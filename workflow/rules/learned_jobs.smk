# What the rules of the study of learned sparse vectors need: jobs, tables, folders and options.

LEARNED = STUDY.get("learned_sparse") or {}
LEARNED_RESULTS = f"{RESULTS}/learned_sparse"
LEARNED_TABLES = {
    name: f"{LEARNED_RESULTS}/{name}.parquet"
    for name in ("rows", "per_query", "costs", "training")
}
LEARNED_MODELS = LEARNED.get("models", {})
LEARNED_ON = LEARNED.get("collections", [])
LEARNED_JOBS = [
    f"{model}_external.{collection}.seed0"
    for model in LEARNED_MODELS
    for collection in LEARNED_ON
]


def learned_targets(wildcards):
    """Everything of the study; a configuration without one is told so."""
    if not LEARNED_MODELS:
        raise WorkflowError(
            "the configuration has no study of learned sparse vectors; add the key learned_sparse"
            " (docs/learned-sparse.md)"
        )
    return [
        *LEARNED_TABLES.values(),
        *[
            f"{LEARNED_RESULTS}/{kind}/{job}.parquet"
            for kind in ("rows", "per_query")
            for job in LEARNED_JOBS
        ],
        page_of("learned_sparse"),
    ]


def learned_model(model):
    return f"{LEARNED_RESULTS}/models/{model}"


def learned_trained():
    """{model: its folder} of those that are trained here."""
    return {
        name: learned_model(name)
        for name, options in LEARNED_MODELS.items()
        if "training" in options
    }


def learned_shards(corpus, model):
    """The folders of a corpus's vectors, one per shard, in the order of the corpus."""
    return [
        f"{LEARNED_RESULTS}/vectors/{corpus}/{model}/documents.{shard}of{SHARDS[corpus]}"
        for shard in range(SHARDS[corpus])
    ]


def learned_queries(collection, model):
    return f"{LEARNED_RESULTS}/vectors/{collection}/{model}/queries"


def learned_documents(corpus):
    """{model.shard: folder} of the vectors of a corpus by all models."""
    return {
        f"{model}.{shard}": folder
        for model in LEARNED_MODELS
        for shard, folder in enumerate(learned_shards(corpus, model))
    }


def learned_folders(collection):
    """{model: its queries, then its documents} on a collection."""
    return {
        model: [
            learned_queries(collection, model),
            *learned_shards(CORPUS[collection], model),
        ]
        for model in LEARNED_MODELS
    }


def learned_cells():
    return as_json(
        [[budget, LEARNED["k1"], LEARNED["b"], ""] for budget in LEARNED["budgets"]]
    )


def learned_settings():
    """What a page tells of the study."""
    return as_json(
        {
            "study": STUDY["study"],
            "setting": "learned_sparse",
            "settings": {key: LEARNED[key] for key in sorted(LEARNED)},
        }
    )
