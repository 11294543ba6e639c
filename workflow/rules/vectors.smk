# Vectors: the encoder reads a shard of a corpus once and every representation of it is written.


rule encode_documents:
    input:
        corpus=f"{RESULTS}/collections/{{corpus}}",
        bases=lambda wildcards: sorted(
            set(representations_of_corpus(wildcards.corpus).values())
        ),
    output:
        directory(f"{RESULTS}/vectors/{{corpus}}/documents.{{shard}}of{{shards}}"),
    log:
        f"{RESULTS}/logs/encode_documents/{{corpus}}.{{shard}}of{{shards}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/encode_documents/{{corpus}}.{{shard}}of{{shards}}.tsv"
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
        representations=lambda wildcards: as_json(
            representations_of_corpus(wildcards.corpus)
        ),
        maximum_stored=lambda wildcards: maximum_stored(wildcards.corpus),
    message:
        "encoding the documents of {wildcards.corpus}, shard {wildcards.shard} of {wildcards.shards}"
    shell:
        "whencount stage --cards {resources.gpu} encode --encoder {params.encoder:q}"
        " --collection {input.corpus}"
        " --side passage --representations {params.representations:q}"
        " --shard {wildcards.shard} --shards {wildcards.shards}"
        " --maximum-stored {params.maximum_stored} --threads {threads} --out {output} 2>&1 | tee {log}"


rule encode_queries:
    input:
        collection=f"{RESULTS}/collections/{{collection}}",
        bases=lambda wildcards: sorted(
            set(representations_of([wildcards.collection]).values())
        ),
    output:
        directory(f"{RESULTS}/vectors/{{collection}}/queries"),
    log:
        f"{RESULTS}/logs/encode_queries/{{collection}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/encode_queries/{{collection}}.tsv"
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
        representations=lambda wildcards: as_json(
            representations_of([wildcards.collection])
        ),
        maximum_stored=lambda wildcards: maximum_stored(wildcards.collection),
    message:
        "encoding the queries of {wildcards.collection}"
    shell:
        "whencount stage --cards {resources.gpu} encode --encoder {params.encoder:q}"
        " --collection {input.collection} --side query"
        " --representations {params.representations:q} --maximum-stored {params.maximum_stored}"
        " --threads {threads} --out {output} 2>&1 | tee {log}"


rule encode_external_documents:
    input:
        corpus=f"{RESULTS}/collections/{{corpus}}",
    output:
        directory(
            f"{RESULTS}/vectors/{{corpus}}/{{external}}/documents.{{shard}}of{{shards}}"
        ),
    log:
        f"{RESULTS}/logs/encode_external/{{external}}.{{corpus}}.{{shard}}of{{shards}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/encode_external/{{external}}.{{corpus}}.{{shard}}of{{shards}}.tsv"
    conda:
        "../../envs/encode.yaml"
    threads: 2
    resources:
        mem_mb=16000,
        runtime=720,
        gpu=1,
    params:
        code=code_of("encode-external"),
        encoder=lambda wildcards: as_json(EXTERNAL[wildcards.external]),
        maximum_stored=lambda wildcards: maximum_stored(wildcards.corpus),
    message:
        "encoding the documents of {wildcards.corpus} by {wildcards.external}, shard {wildcards.shard} of {wildcards.shards}"
    shell:
        "whencount stage --cards {resources.gpu} encode-external --encoder {params.encoder:q}"
        " --collection {input.corpus} --side passage"
        " --representation {wildcards.external}_external"
        " --shard {wildcards.shard} --shards {wildcards.shards}"
        " --maximum-stored {params.maximum_stored} --threads {threads} --out {output} 2>&1 | tee {log}"


rule encode_external_queries:
    input:
        collection=f"{RESULTS}/collections/{{collection}}",
    output:
        directory(f"{RESULTS}/vectors/{{collection}}/{{external}}/queries"),
    log:
        f"{RESULTS}/logs/encode_external/{{external}}.{{collection}}.queries.log",
    benchmark:
        f"{RESULTS}/benchmarks/encode_external/{{external}}.{{collection}}.queries.tsv"
    conda:
        "../../envs/encode.yaml"
    threads: 2
    resources:
        mem_mb=16000,
        runtime=120,
        gpu=1,
    params:
        code=code_of("encode-external"),
        encoder=lambda wildcards: as_json(EXTERNAL[wildcards.external]),
        maximum_stored=lambda wildcards: maximum_stored(wildcards.collection),
    message:
        "encoding the queries of {wildcards.collection} by {wildcards.external}"
    shell:
        "whencount stage --cards {resources.gpu} encode-external --encoder {params.encoder:q}"
        " --collection {input.collection} --side query"
        " --representation {wildcards.external}_external"
        " --maximum-stored {params.maximum_stored} --threads {threads} --out {output} 2>&1 | tee {log}"
