# Text in: documents, queries and judgements of every collection, checked once and kept as Parquet.


rule collection:
    input:
        corpus=lambda wildcards: corpus_to_borrow(wildcards.collection),
    output:
        directory(f"{RESULTS}/collections/{{collection}}"),
    log:
        f"{RESULTS}/logs/collection/{{collection}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/collection/{{collection}}.tsv"
    conda:
        "../../envs/collections.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=240,
    params:
        code=code_of("collection"),
        source=lambda wildcards: as_json(source_of(wildcards.collection)),
        borrow=lambda wildcards, input: (
            f"--corpus {input.corpus}" if input.corpus else ""
        ),
    message:
        "reading {wildcards.collection}"
    shell:
        "whencount stage collection --name {wildcards.collection} --source {params.source:q}"
        " {params.borrow} --out {output} 2>&1 | tee {log}"


rule fit_text:
    output:
        directory(f"{RESULTS}/fit/passages"),
    log:
        f"{RESULTS}/logs/fit_text.log",
    benchmark:
        f"{RESULTS}/benchmarks/fit_text.tsv"
    conda:
        "../../envs/collections.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=120,
    params:
        code=code_of("fit-text"),
        source=as_json(STUDY["fit"]["text"]),
        seed=STUDY["seed"],
    message:
        "choosing the passages that the bases are fitted on"
    shell:
        "whencount stage fit-text --source {params.source:q} --seed {params.seed}"
        " --out {output} 2>&1 | tee {log}"
