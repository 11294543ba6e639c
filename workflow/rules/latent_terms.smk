# The study of latent terms, from vectors to pages: a job is a model on a collection at a seed.

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
LEARNED = STUDY.get("learned_sparse", {})
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


def learned_documents(corpus):
    """{model.shard: folder} of the SPLADE-like vectors of a corpus."""
    return {
        f"{model}.{shard}": f"{RESULTS}/learned_sparse/vectors/{corpus}/{model}/documents.{shard}of{SHARDS[corpus]}"
        for model in LEARNED.get("models", {})
        for shard in range(SHARDS[corpus])
    }


def latent_memory(wildcards):
    # Weighed vectors and their index: about 24 bytes per stored weight of the whole corpus.
    return 8000 if SHARDS[CORPUS[wildcards.collection]] == 1 else 64000


if LATENT:

    rule latent_score:
        input:
            documents=lambda wildcards: latent_documents(
                CORPUS[wildcards.collection], wildcards.model, wildcards.seed
            ),
            queries=lambda wildcards: latent_queries(
                wildcards.collection, wildcards.model, wildcards.seed
            ),
            collection=f"{RESULTS}/collections/{{collection}}",
            references=lambda wildcards: list(
                latent_pseudo_labels(wildcards.collection).values()
            ),
        output:
            **{
                kind: f"{LATENT_RESULTS}/{kind}/{{model}}.{{collection}}.seed{{seed}}.parquet"
                for kind in LATENT_KINDS
            },
        log:
            f"{RESULTS}/logs/latent_score/{{model}}.{{collection}}.seed{{seed}}.log",
        benchmark:
            f"{RESULTS}/benchmarks/latent_score/{{model}}.{{collection}}.seed{{seed}}.tsv"
        wildcard_constraints:
            model="[a-z0-9][a-z0-9_-]*",
        conda:
            "../../envs/search.yaml"
        threads: 1
        resources:
            mem_mb=latent_memory,
            runtime=600,
        params:
            code=code_of("latent-score"),
            options=latent_options(),
            corpus=lambda wildcards: CORPUS[wildcards.collection],
            references=lambda wildcards: as_json(
                latent_pseudo_labels(wildcards.collection)
            ),
            limit=lambda wildcards: wants_recall(wildcards.collection),
            depth=STUDY["search"]["depth"],
            study_seed=STUDY["seed"],
        message:
            "scoring the latent terms of {wildcards.model} on {wildcards.collection}, seed {wildcards.seed}"
        shell:
            "whencount stage latent-score --model {wildcards.model}"
            " --collection-name {wildcards.collection} --corpus {params.corpus}"
            " --seed {wildcards.seed} --options {params.options:q}"
            " --references {params.references:q} --queries {input.queries}"
            " --collection {input.collection} --limit {params.limit} --depth {params.depth}"
            " --study-seed {params.study_seed} --threads {threads} --rows {output.rows}"
            " --per-query {output.per_query} --grid {output.grid} --tuned {output.tuned}"
            " --recall {output.recall} --pruning {output.pruning}"
            " --frequencies {output.frequencies} {input.documents} 2>&1 | tee {log}"

    rule latent_dense_documents:
        input:
            corpus=f"{RESULTS}/collections/{{corpus}}",
        output:
            directory(
                f"{LATENT_RESULTS}/dense/{{corpus}}/documents.{{shard}}of{{shards}}"
            ),
        log:
            f"{RESULTS}/logs/latent_dense/{{corpus}}.{{shard}}of{{shards}}.log",
        benchmark:
            f"{RESULTS}/benchmarks/latent_dense/{{corpus}}.{{shard}}of{{shards}}.tsv"
        conda:
            "../../envs/encode.yaml"
        threads: 2
        resources:
            mem_mb=16000,
            runtime=720,
            gpu=1,
        params:
            code=code_of("encode"),
            encoder=as_json(STUDY["encoder"]),
        message:
            "encoding {wildcards.corpus} for a dense ranking, shard {wildcards.shard} of {wildcards.shards}"
        shell:
            "whencount stage --cards {resources.gpu} encode --encoder {params.encoder:q}"
            " --collection {input.corpus} --side passage --representations '{{}}'"
            " --shard {wildcards.shard} --shards {wildcards.shards} --threads {threads}"
            " --out {output} 2>&1 | tee {log}"

    rule latent_dense_queries:
        input:
            collection=f"{RESULTS}/collections/{{collection}}",
        output:
            directory(f"{LATENT_RESULTS}/dense/{{collection}}/queries"),
        log:
            f"{RESULTS}/logs/latent_dense/{{collection}}.queries.log",
        benchmark:
            f"{RESULTS}/benchmarks/latent_dense/{{collection}}.queries.tsv"
        conda:
            "../../envs/encode.yaml"
        threads: 2
        resources:
            mem_mb=16000,
            runtime=120,
            gpu=1,
        params:
            code=code_of("encode"),
            encoder=as_json(STUDY["encoder"]),
        message:
            "encoding the queries of {wildcards.collection} for a dense ranking"
        shell:
            "whencount stage --cards {resources.gpu} encode --encoder {params.encoder:q}"
            " --collection {input.collection} --side query --representations '{{}}'"
            " --threads {threads} --out {output} 2>&1 | tee {log}"

    rule latent_beside:
        input:
            collection=f"{RESULTS}/collections/{{collection}}",
            dense_documents=lambda wildcards: dense_documents(wildcards.collection),
            dense_queries=lambda wildcards: dense_queries(wildcards.collection),
        output:
            **{
                name: f"{LATENT_RESULTS}/{table}/{{collection}}.parquet"
                for table, name in LATENT_BESIDE.items()
            },
        log:
            f"{RESULTS}/logs/latent_beside/{{collection}}.log",
        benchmark:
            f"{RESULTS}/benchmarks/latent_beside/{{collection}}.tsv"
        conda:
            "../../envs/search.yaml"
        threads: 1
        resources:
            mem_mb=16000,
            runtime=240,
        params:
            code=code_of("latent-beside"),
            options=latent_options(),
            limit=lambda wildcards: wants_recall(wildcards.collection),
            dense=lambda wildcards, input: " ".join(
                [
                    *[f"--dense-documents {path}" for path in input.dense_documents],
                    *[f"--dense-queries {input.dense_queries}"]
                    * bool(input.dense_queries),
                ]
            ),
            study_seed=STUDY["seed"],
        message:
            "measuring what stands beside the latent terms on {wildcards.collection}"
        shell:
            "whencount stage latent-beside --options {params.options:q}"
            " --collection {input.collection} {params.dense} --limit {params.limit}"
            " --study-seed {params.study_seed} --threads {threads} --words {output.words}"
            " --recall {output.recall} --frequencies {output.frequencies} 2>&1 | tee {log}"

    rule latent_collect:
        input:
            lambda wildcards: [
                f"{LATENT_RESULTS}/{wildcards.kind}/{name}.parquet"
                for name in (
                    LATENT_COLLECTIONS
                    if wildcards.kind in LATENT_OF_COLLECTIONS
                    else LATENT_NAMES
                )
            ],
        output:
            f"{LATENT_RESULTS}/{{kind}}.parquet",
        log:
            f"{RESULTS}/logs/latent_collect/{{kind}}.log",
        benchmark:
            f"{RESULTS}/benchmarks/latent_collect/{{kind}}.tsv"
        wildcard_constraints:
            kind="|".join((*LATENT_KINDS, *LATENT_OF_COLLECTIONS)),
        conda:
            "../../envs/statistics.yaml"
        threads: 1
        resources:
            mem_mb=4000,
            runtime=20,
        params:
            code=code_of("latent-collect"),
            jobs=as_json(LATENT_NAMES),
            collections=lambda wildcards: as_json(
                {
                    name: f"{LATENT_RESULTS}/{wildcards.kind}/{name}.parquet"
                    for name in LATENT_COLLECTIONS
                    if wildcards.kind in LATENT_OF_COLLECTIONS
                }
            ),
            parts=LATENT_RESULTS,
        message:
            "gathering the tables {wildcards.kind} of latent terms"
        shell:
            "whencount stage latent-collect --kind {wildcards.kind} --jobs {params.jobs:q}"
            " --parts {params.parts} --collections {params.collections:q} --out {output}"
            " 2>&1 | tee {log}"

    rule latent_compare:
        input:
            tuned=LATENT_TABLES["tuned"],
            words=LATENT_TABLES["words"],
        output:
            LATENT_TABLES["comparisons"],
        log:
            f"{RESULTS}/logs/latent_compare.log",
        benchmark:
            f"{RESULTS}/benchmarks/latent_compare.tsv"
        conda:
            "../../envs/statistics.yaml"
        threads: 1
        resources:
            mem_mb=4000,
            runtime=60,
        params:
            code=code_of("latent-compare"),
            draws=STUDY["statistics"]["draws"],
            study_seed=STUDY["seed"],
        message:
            "comparing tuned and untuned latent terms"
        shell:
            "whencount stage latent-compare --tuned {input.tuned} --words {input.words}"
            " --draws {params.draws} --study-seed {params.study_seed} --out {output}"
            " 2>&1 | tee {log}"
