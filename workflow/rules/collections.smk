# Text in: documents, queries and judgements of every collection, checked once and kept as Parquet.


rule documents:
    output:
        directory(f"{RESULTS}/corpora/{{corpus}}"),
    log:
        f"{RESULTS}/logs/documents/{{corpus}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/documents/{{corpus}}.tsv"
    conda:
        "../../envs/search.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=240,
    params:
        source=lambda wildcards: as_json(source_of(wildcards.corpus)),
    message:
        "reading the documents of {wildcards.corpus}"
    shell:
        "whencount stage documents --name {wildcards.corpus} --source {params.source:q}"
        " --out {output} 2> {log}"


rule topics:
    input:
        corpus=lambda wildcards: f"{RESULTS}/corpora/{CORPUS[wildcards.collection]}",
    output:
        directory(f"{RESULTS}/collections/{{collection}}"),
    log:
        f"{RESULTS}/logs/topics/{{collection}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/topics/{{collection}}.tsv"
    conda:
        "../../envs/search.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=60,
    params:
        source=lambda wildcards: as_json(source_of(wildcards.collection)),
    message:
        "reading the queries and judgements of {wildcards.collection}"
    shell:
        "whencount stage topics --name {wildcards.collection} --source {params.source:q}"
        " --corpus {input.corpus} --out {output} 2> {log}"


rule fit_text:
    output:
        f"{RESULTS}/fit/passages.parquet",
    log:
        f"{RESULTS}/logs/fit_text.log",
    benchmark:
        f"{RESULTS}/benchmarks/fit_text.tsv"
    conda:
        "../../envs/search.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=120,
    params:
        source=as_json(STUDY["fit"]["text"]),
        seed=STUDY["seed"],
    message:
        "choosing the passages that the bases are fitted on"
    shell:
        "whencount stage fit-text --source {params.source:q} --seed {params.seed}"
        " --out {output} 2> {log}"
