# References: rankings by text BM25, by the dense encoder, by the fusion of the two and by sparse
# encoders of others. They stand beside the rows, and their top ten stand in for labels.


rule bm25:
    input:
        collection=f"{RESULTS}/collections/{{collection}}",
    output:
        f"{RESULTS}/references/bm25.{{collection}}.parquet",
    log:
        f"{RESULTS}/logs/bm25/{{collection}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/bm25/{{collection}}.tsv"
    conda:
        "../../envs/search.yaml"
    threads: 2
    resources:
        mem_mb=16000,
        runtime=240,
    params:
        code=code_of("bm25"),
        k1=STUDY["references"].get("bm25", {}).get("k1", 1.2),
        b=STUDY["references"].get("bm25", {}).get("b", 0.75),
        depth=STUDY["search"]["depth"],
    message:
        "ranking {wildcards.collection} by text BM25"
    shell:
        "whencount stage bm25 --collection {input.collection}"
        " --k1 {params.k1} --b {params.b} --depth {params.depth} --threads {threads}"
        " --out {output} 2>&1 | tee {log}"


rule dense:
    input:
        documents=lambda wildcards: document_vectors(CORPUS[wildcards.collection]),
        queries=f"{RESULTS}/vectors/{{collection}}/queries",
        collection=f"{RESULTS}/collections/{{collection}}",
    output:
        f"{RESULTS}/references/dense.{{collection}}.parquet",
    log:
        f"{RESULTS}/logs/dense/{{collection}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/dense/{{collection}}.tsv"
    conda:
        "../../envs/search.yaml"
    threads: 2
    resources:
        mem_mb=16000,
        runtime=120,
    params:
        code=code_of("dense"),
        depth=STUDY["search"]["depth"],
    message:
        "ranking {wildcards.collection} by the dense encoder"
    shell:
        "whencount stage dense --queries {input.queries}"
        " --collection {input.collection} --depth {params.depth}"
        " --threads {threads} --out {output} {input.documents} 2>&1 | tee {log}"


rule rrf:
    input:
        runs=[
            f"{RESULTS}/references/{name}.{{collection}}.parquet"
            for name in ("bm25", "dense")
        ],
        collection=f"{RESULTS}/collections/{{collection}}",
    output:
        f"{RESULTS}/references/rrf.{{collection}}.parquet",
    log:
        f"{RESULTS}/logs/rrf/{{collection}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/rrf/{{collection}}.tsv"
    conda:
        "../../envs/search.yaml"
    threads: 1
    resources:
        mem_mb=8000,
        runtime=60,
    params:
        code=code_of("rrf"),
        k=STUDY["references"].get("rrf", {}).get("k", 60),
        depth=STUDY["references"].get("rrf", {}).get("depth", 100),
    message:
        "fusing text BM25 and the dense ranking of {wildcards.collection}"
    shell:
        "whencount stage rrf --collection {input.collection} --k {params.k}"
        " --depth {params.depth} --out {output}"
        " {input.runs} 2>&1 | tee {log}"


if EXTERNAL:

    rule external_run:
        input:
            documents=lambda wildcards: document_vectors(
                CORPUS[wildcards.collection], f"{wildcards.external}_external"
            ),
            queries=lambda wildcards: query_vectors(
                wildcards.collection, f"{wildcards.external}_external"
            ),
            collection=f"{RESULTS}/collections/{{collection}}",
        output:
            f"{RESULTS}/references/{{external}}.{{collection}}.parquet",
        log:
            f"{RESULTS}/logs/external_run/{{external}}.{{collection}}.log",
        benchmark:
            f"{RESULTS}/benchmarks/external_run/{{external}}.{{collection}}.tsv"
        wildcard_constraints:
            external="|".join(EXTERNAL),
        conda:
            "../../envs/search.yaml"
        threads: 1
        resources:
            mem_mb=lambda wildcards: (
                8000 if SHARDS[CORPUS[wildcards.collection]] == 1 else 48000
            ),
            runtime=240,
        params:
            code=code_of("external-run"),
            depth=STUDY["search"]["depth"],
        message:
            "ranking {wildcards.collection} by the inner product of {wildcards.external}"
        shell:
            "whencount stage external-run --representation {wildcards.external}_external"
            " --queries {input.queries} --collection {input.collection}"
            " --depth {params.depth} --threads {threads} --out {output}"
            " {input.documents} 2>&1 | tee {log}"
