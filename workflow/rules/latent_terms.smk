# The study of latent terms, from vectors to pages: a job is a model on a collection at a seed.

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
            parts=lambda wildcards, output: str(Path(output[0]).parent),
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
