# References: rankings by text BM25 and by the dense encoder, to stand the rows beside.


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
        depth=STUDY["search"]["depth"],
    message:
        "ranking {wildcards.collection} by the dense encoder"
    shell:
        "whencount stage dense --queries {input.queries}"
        " --collection {input.collection} --depth {params.depth}"
        " --threads {threads} --out {output} {input.documents} 2>&1 | tee {log}"
