# Latent terms from passages to vectors: a backbone reads a text once for the dictionaries of all seeds.

if LATENT:

    rule latent_train:
        input:
            f"{RESULTS}/fit/passages",
        output:
            directory(latent_dictionaries("{model}")),
        log:
            f"{RESULTS}/logs/latent_train/{{model}}.log",
        benchmark:
            f"{RESULTS}/benchmarks/latent_train/{{model}}.tsv"
        wildcard_constraints:
            model="[a-z0-9][a-z0-9_-]*",
        conda:
            "../../envs/encode.yaml"
        threads: 2
        resources:
            mem_mb=16000,
            runtime=1440,
            gpu=1,
        params:
            code=code_of("latent-train"),
            encoder=lambda wildcards: as_json(latent_encoder(wildcards.model)),
            options=lambda wildcards: as_json(latent_model(wildcards.model)),
            seeds=LATENT_SEEDS,
            seed=STUDY["seed"],
        message:
            "training the dictionaries of {wildcards.model}"
        shell:
            "whencount stage --cards {resources.gpu} latent-train --model {wildcards.model}"
            " --encoder {params.encoder:q} --passages {input} --options {params.options:q}"
            " --seeds {params.seeds} --seed {params.seed} --threads {threads} --out {output}"
            " 2>&1 | tee {log}"

    rule latent_training:
        input:
            [latent_dictionaries(model) for model in LATENT["models"]],
        output:
            f"{LATENT_RESULTS}/training.parquet",
        log:
            f"{RESULTS}/logs/latent_training.log",
        benchmark:
            f"{RESULTS}/benchmarks/latent_training.tsv"
        conda:
            "../../envs/statistics.yaml"
        threads: 1
        resources:
            mem_mb=2000,
            runtime=20,
        params:
            code=code_of("latent-training"),
            models=as_json(
                {model: latent_dictionaries(model) for model in LATENT["models"]}
            ),
        message:
            "gathering how the dictionaries were trained"
        shell:
            "whencount stage latent-training --models {params.models:q} --out {output}"
            " 2>&1 | tee {log}"

    rule latent_encode_documents:
        input:
            corpus=f"{RESULTS}/collections/{{corpus}}",
            dictionaries=latent_dictionaries("{model}"),
        output:
            [
                directory(
                    f"{LATENT_RESULTS}/vectors/{{corpus}}/{{model}}.seed{seed}/documents.{{shard}}of{{shards}}"
                )
                for seed in LATENT["seeds"]
            ],
        log:
            f"{RESULTS}/logs/latent_encode/{{model}}.{{corpus}}.{{shard}}of{{shards}}.log",
        benchmark:
            f"{RESULTS}/benchmarks/latent_encode/{{model}}.{{corpus}}.{{shard}}of{{shards}}.tsv"
        wildcard_constraints:
            model="[a-z0-9][a-z0-9_-]*",
        conda:
            "../../envs/encode.yaml"
        threads: 2
        resources:
            mem_mb=16000,
            runtime=720,
            gpu=1,
        params:
            code=code_of("latent-encode"),
            encoder=lambda wildcards: as_json(latent_encoder(wildcards.model)),
            maximum_stored=lambda wildcards: maximum_stored(wildcards.corpus),
            seeds=LATENT_SEEDS,
        message:
            "encoding {wildcards.corpus} as latent terms of {wildcards.model}, shard {wildcards.shard} of {wildcards.shards}"
        shell:
            "whencount stage --cards {resources.gpu} latent-encode --encoder {params.encoder:q}"
            " --collection {input.corpus} --side passage --dictionaries {input.dictionaries}"
            " --seeds {params.seeds} --shard {wildcards.shard} --shards {wildcards.shards}"
            " --maximum-stored {params.maximum_stored} --threads {threads} {output}"
            " 2>&1 | tee {log}"

    rule latent_encode_queries:
        input:
            collection=f"{RESULTS}/collections/{{collection}}",
            dictionaries=latent_dictionaries("{model}"),
        output:
            [
                directory(
                    f"{LATENT_RESULTS}/vectors/{{collection}}/{{model}}.seed{seed}/queries"
                )
                for seed in LATENT["seeds"]
            ],
        log:
            f"{RESULTS}/logs/latent_encode/{{model}}.{{collection}}.queries.log",
        benchmark:
            f"{RESULTS}/benchmarks/latent_encode/{{model}}.{{collection}}.queries.tsv"
        wildcard_constraints:
            model="[a-z0-9][a-z0-9_-]*",
        conda:
            "../../envs/encode.yaml"
        threads: 2
        resources:
            mem_mb=16000,
            runtime=120,
            gpu=1,
        params:
            code=code_of("latent-encode"),
            encoder=lambda wildcards: as_json(latent_encoder(wildcards.model)),
            seeds=LATENT_SEEDS,
        message:
            "encoding the queries of {wildcards.collection} as latent terms of {wildcards.model}"
        shell:
            "whencount stage --cards {resources.gpu} latent-encode --encoder {params.encoder:q}"
            " --collection {input.collection} --side query --dictionaries {input.dictionaries}"
            " --seeds {params.seeds} --threads {threads} {output} 2>&1 | tee {log}"
