# What the rules on the cost of indexes need: their jobs, what each reads, tables and targets.

ECONOMICS = STUDY.get("economics") or {}
ECONOMICS_RESULTS = f"{RESULTS}/economics"
ECONOMICS_ON = [
    name
    for name in COLLECTIONS
    if ECONOMICS and name in ECONOMICS.get("collections", [name])
]


def economics_job(
    kind, representation, collection, part, documents, queries, exponent=1.0
):
    """What one job reads: its name, the columns that name its rows, and its vectors."""
    keys = {
        "representation": representation,
        "kind": kind,
        "collection": collection,
        "corpus": CORPUS[collection],
    }
    return f"{representation}.{collection}", {
        "keys": keys,
        "part": part,
        "documents": documents,
        "queries": queries,
        "exponent": exponent,
    }


def economics_jobs():
    """{name: what it reads} of every representation of the study on every collection."""
    found = [
        economics_job(
            "external" if external_of(job.representation) else "basis",
            job.representation,
            job.collection,
            f"{job.representation}.seed{job.seed}",
            document_vectors(CORPUS[job.collection], job.representation),
            query_vectors(job.collection, job.representation),
        )
        for job in JOBS
        if job.seed == 0 and job.collection in ECONOMICS_ON
    ]
    for name in ECONOMICS_ON:
        words = f"{ECONOMICS_RESULTS}/words/{name}"
        found.append(
            economics_job(
                "words",
                "words",
                name,
                "words.seed0",
                [f"{words}/documents"],
                f"{words}/queries",
            )
        )
        if "dense" in STUDY["references"]:
            states = document_vectors(CORPUS[name]), query_vectors(name)
            found.append(economics_job("dense", "dense", name, "states.npy", *states))
    for model in LATENT.get("models", {}):
        seed = LATENT["seeds"][0]
        found += [
            economics_job(
                "latent_terms",
                f"{model}_latent",
                name,
                "",
                latent_documents(CORPUS[name], model, seed),
                latent_queries(name, model, seed),
                LATENT["phi"],
            )
            for name in ECONOMICS_ON
            if name in LATENT_COLLECTIONS
        ]
    for model in LEARNED.get("models", {}):
        folder = f"{RESULTS}/learned_sparse/vectors"
        found += [
            economics_job(
                "learned_sparse",
                f"{model}_learned",
                name,
                "",
                [
                    f"{folder}/{CORPUS[name]}/{model}/documents.{shard}of{SHARDS[CORPUS[name]]}"
                    for shard in range(SHARDS[CORPUS[name]])
                ],
                f"{folder}/{name}/{model}/queries",
            )
            for name in ECONOMICS_ON
            if name in LEARNED.get("collections", [name])
        ]
    for name in ECONOMICS_ON:
        # Of one folder: token vectors, their codes, and one vector per document.
        index = f"{LATE_RESULTS}/index/{name}"
        found += [
            economics_job(
                "late_interaction", f"late_{form}", name, part, [index], index
            )
            for form, part in LATE_FORMS.items()
            if name in LATE_ON
        ]
    return dict(found)


ECONOMICS_JOBS = economics_jobs() if ECONOMICS else {}


def economics_targets(wildcards):
    """Everything of the study of costs; a configuration without one is told so."""
    if not ECONOMICS_JOBS:
        raise WorkflowError(
            "the configuration has no study of costs, or no collection to run it on; add the key"
            " economics to a study of retrieval (docs/economics.md)"
        )
    return [
        *ECONOMICS_TABLES.values(),
        *[part for kind in ECONOMICS_PARTS.values() for part in economics_parts(kind)],
        page_of("economics"),
    ]


def economics_of(wildcards):
    """What the job of these wildcards reads; one that the study lacks is refused by name."""
    if wildcards.job not in ECONOMICS_JOBS:
        raise WorkflowError(
            f"the study of costs has no {wildcards.job!r}; it has {', '.join(ECONOMICS_JOBS)}"
        )
    return ECONOMICS_JOBS[wildcards.job]


def collection_of_economics(wildcards):
    return f"{RESULTS}/collections/{economics_of(wildcards)['keys']['collection']}"


def economics_on(collection):
    """The jobs of one collection."""
    return [
        job
        for job in ECONOMICS_JOBS.values()
        if job["keys"]["collection"] == collection
    ]


def economics_inputs(wildcards, side):
    """Folders of all jobs of a collection, each once."""
    found = {}
    for job in economics_on(wildcards.collection):
        folders = job[side] if side == "documents" else [job[side]]
        found |= dict.fromkeys(folders)
    return list(found)


def economics_parts(kind):
    """The tables that one of all is gathered from: a file per job, of times one per collection."""
    names = ECONOMICS_ON if kind == "times" else ECONOMICS_JOBS
    return [f"{ECONOMICS_RESULTS}/{kind}/{name}.parquet" for name in names]


def memory_of_economics(corpus):
    """An index lies on disk; what is held is a block of vectors and the numbers of documents."""
    return 8000 if SHARDS[corpus] == 1 else 24000


# The tables of all jobs, and the folders that their parts stand in.
ECONOMICS_PARTS = {"economics": "costs", "profiles": "profiles", "times": "times"}
ECONOMICS_TABLES = {
    part: f"{ECONOMICS_RESULTS}/{table}.parquet"
    for table, part in ECONOMICS_PARTS.items()
}
ECONOMICS_OPTIONS = as_json(
    {key: value for key, value in ECONOMICS.items() if key != "collections"}
)
