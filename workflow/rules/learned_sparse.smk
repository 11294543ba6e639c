# Learned sparse vectors: SPLADE models trained here or published, from passages to tables.


if LEARNED_MODELS:

    rule learned_train:
        input:
            f"{RESULTS}/fit/passages",
        output:
            directory(learned_model("{model}")),
        log:
            f"{RESULTS}/logs/learned_train/{{model}}.log",
        benchmark:
            f"{RESULTS}/benchmarks/learned_train/{{model}}.tsv"
        wildcard_constraints:
            model="|".join(learned_trained()) or "none",
        conda:
            "../../envs/encode.yaml"
        threads: 2
        resources:
            mem_mb=12000,
            runtime=720,
            gpu=1,
        params:
            code=code_of("learned-train"),
            options=lambda wildcards: as_json(
                LEARNED_MODELS[wildcards.model]["training"]
            ),
            seed=STUDY["seed"],
        message:
            "training the SPLADE model {wildcards.model}"
        shell:
            "whencount stage --cards {resources.gpu} learned-train --model {wildcards.model}"
            " --passages {input} --options {params.options:q} --seed {params.seed}"
            " --threads {threads} --out {output} 2>&1 | tee {log}"

    rule learned_encode_documents:
        input:
            corpus=f"{RESULTS}/collections/{{corpus}}",
            trained=lambda wildcards: learned_trained().get(wildcards.model, []),
        output:
            directory(
                f"{LEARNED_RESULTS}/vectors/{{corpus}}/{{model}}/documents.{{shard}}of{{shards}}"
            ),
        log:
            f"{RESULTS}/logs/learned_encode/{{model}}.{{corpus}}.{{shard}}of{{shards}}.log",
        benchmark:
            f"{RESULTS}/benchmarks/learned_encode/{{model}}.{{corpus}}.{{shard}}of{{shards}}.tsv"
        wildcard_constraints:
            model="|".join(LEARNED_MODELS),
        conda:
            "../../envs/encode.yaml"
        threads: 2
        resources:
            mem_mb=12000,
            runtime=720,
            gpu=1,
        params:
            code=code_of("learned-encode"),
            options=lambda wildcards: as_json(LEARNED_MODELS[wildcards.model]),
            trained=lambda wildcards, input: option("trained", input.trained),
        message:
            "encoding {wildcards.corpus} by {wildcards.model}, shard {wildcards.shard} of {wildcards.shards}"
        shell:
            "whencount stage --cards {resources.gpu} learned-encode --options {params.options:q}"
            " {params.trained} --collection {input.corpus} --side passage"
            " --shard {wildcards.shard} --shards {wildcards.shards} --threads {threads}"
            " --out {output} 2>&1 | tee {log}"

    rule learned_encode_queries:
        input:
            collection=f"{RESULTS}/collections/{{collection}}",
            trained=lambda wildcards: learned_trained().get(wildcards.model, []),
        output:
            directory(f"{LEARNED_RESULTS}/vectors/{{collection}}/{{model}}/queries"),
        log:
            f"{RESULTS}/logs/learned_encode/{{model}}.{{collection}}.queries.log",
        benchmark:
            f"{RESULTS}/benchmarks/learned_encode/{{model}}.{{collection}}.queries.tsv"
        wildcard_constraints:
            model="|".join(LEARNED_MODELS),
        conda:
            "../../envs/encode.yaml"
        threads: 2
        resources:
            mem_mb=12000,
            runtime=240,
            gpu=1,
        params:
            code=code_of("learned-encode"),
            options=lambda wildcards: as_json(LEARNED_MODELS[wildcards.model]),
            trained=lambda wildcards, input: option("trained", input.trained),
        message:
            "encoding the queries of {wildcards.collection} by {wildcards.model}"
        shell:
            "whencount stage --cards {resources.gpu} learned-encode --options {params.options:q}"
            " {params.trained} --collection {input.collection} --side query --threads {threads}"
            " --out {output} 2>&1 | tee {log}"

    rule learned_score:
        input:
            documents=lambda wildcards: learned_shards(
                CORPUS[wildcards.collection], wildcards.model
            ),
            queries=f"{LEARNED_RESULTS}/vectors/{{collection}}/{{model}}/queries",
            collection=f"{RESULTS}/collections/{{collection}}",
        output:
            rows=f"{LEARNED_RESULTS}/rows/{{model}}_external.{{collection}}.seed0.parquet",
            per_query=f"{LEARNED_RESULTS}/per_query/{{model}}_external.{{collection}}.seed0.parquet",
        log:
            f"{RESULTS}/logs/learned_score/{{model}}.{{collection}}.log",
        benchmark:
            f"{RESULTS}/benchmarks/learned_score/{{model}}.{{collection}}.tsv"
        wildcard_constraints:
            model="|".join(LEARNED_MODELS),
        conda:
            "../../envs/search.yaml"
        threads: 1
        resources:
            mem_mb=lambda wildcards: (
                8000 if SHARDS[CORPUS[wildcards.collection]] == 1 else 48000
            ),
            runtime=240,
        params:
            code=code_of("score"),
            cells=learned_cells(),
            corpus=lambda wildcards: CORPUS[wildcards.collection],
            depth=STUDY["search"]["depth"],
            study_seed=STUDY["seed"],
        message:
            "scoring {wildcards.model} on {wildcards.collection}"
        shell:
            "whencount stage score --representation {wildcards.model}_external --whole"
            " --collection-name {wildcards.collection} --seed 0 --corpus {params.corpus}"
            " --queries {input.queries} --collection {input.collection}"
            " --cells {params.cells:q} --depth {params.depth}"
            " --study-seed {params.study_seed} --threads {threads} --rows {output.rows}"
            " --per-query {output.per_query} {input.documents} 2>&1 | tee {log}"

    rule learned_costs:
        input:
            lambda wildcards: [
                folder
                for folders in learned_folders(wildcards.collection).values()
                for folder in folders
            ],
        output:
            f"{LEARNED_RESULTS}/costs/{{collection}}.parquet",
        log:
            f"{RESULTS}/logs/learned_costs/{{collection}}.log",
        benchmark:
            f"{RESULTS}/benchmarks/learned_costs/{{collection}}.tsv"
        conda:
            "../../envs/search.yaml"
        threads: 1
        resources:
            mem_mb=lambda wildcards: (
                8000 if SHARDS[CORPUS[wildcards.collection]] == 1 else 64000
            ),
            runtime=120,
        params:
            code=code_of("learned-costs"),
            vectors=lambda wildcards: as_json(learned_folders(wildcards.collection)),
            baseline=LEARNED["baseline"],
        message:
            "counting what learned sparse vectors cost on {wildcards.collection}"
        shell:
            "whencount stage learned-costs --vectors {params.vectors:q}"
            " --baseline {params.baseline} --collection-name {wildcards.collection}"
            " --out {output} 2>&1 | tee {log}"

    rule learned_collect:
        input:
            lambda wildcards: (
                [f"{LEARNED_RESULTS}/costs/{name}.parquet" for name in LEARNED_ON]
                if wildcards.kind == "costs"
                else [
                    f"{LEARNED_RESULTS}/{wildcards.kind}/{job}.parquet"
                    for job in LEARNED_JOBS
                ]
            ),
        output:
            f"{LEARNED_RESULTS}/{{kind}}.parquet",
        log:
            f"{RESULTS}/logs/learned_collect/{{kind}}.log",
        benchmark:
            f"{RESULTS}/benchmarks/learned_collect/{{kind}}.tsv"
        wildcard_constraints:
            kind="rows|per_query|costs",
        conda:
            "../../envs/statistics.yaml"
        threads: 1
        resources:
            mem_mb=4000,
            runtime=20,
        params:
            code=code_of("learned-collect"),
        message:
            "gathering the {wildcards.kind} of learned sparse vectors"
        shell:
            "whencount stage learned-collect --out {output} {input} 2>&1 | tee {log}"

    rule learned_training:
        input:
            list(learned_trained().values()),
        output:
            LEARNED_TABLES["training"],
        log:
            f"{RESULTS}/logs/learned_training.log",
        benchmark:
            f"{RESULTS}/benchmarks/learned_training.tsv"
        conda:
            "../../envs/statistics.yaml"
        threads: 1
        resources:
            mem_mb=2000,
            runtime=20,
        params:
            code=code_of("learned-collect"),
            trained=as_json(learned_trained()),
        message:
            "gathering how the models were trained"
        shell:
            "whencount stage learned-collect --trained {params.trained:q} --out {output}"
            " 2>&1 | tee {log}"

    rule learned_report:
        input:
            **LEARNED_TABLES,
            notebook=NOTEBOOKS / "learned_sparse.ipynb",
        output:
            page=report(
                f"{REPORTS}/learned_sparse.html",
                caption="../report/learned_sparse.rst",
                category="Learned sparse vectors",
            ),
            figures=directory(f"{RESULTS}/figures/learned_sparse"),
        log:
            f"{RESULTS}/logs/learned_report.log",
        benchmark:
            f"{RESULTS}/benchmarks/learned_report.tsv"
        conda:
            "../../envs/report.yaml"
        threads: 1
        resources:
            mem_mb=4000,
            runtime=30,
        params:
            code=code_of("setting-report", NOTEBOOKS / "learned_sparse.ipynb"),
            settings=learned_settings(),
            tables=as_json(LEARNED_TABLES),
        message:
            "drawing {output.page}"
        shell:
            "whencount stage setting-report --notebook {input.notebook}"
            " --settings {params.settings:q} --tables {params.tables:q}"
            " --figures {output.figures} --out {output.page} 2>&1 | tee {log}"
