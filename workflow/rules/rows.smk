# Rows: one job per representation x collection x seed writes all its budgets and (k1, b) cells.


rule score:
    input:
        documents=lambda wildcards: document_vectors(
            CORPUS[wildcards.collection], wildcards.representation
        ),
        queries=lambda wildcards: query_vectors(
            wildcards.collection, wildcards.representation
        ),
        collection=f"{RESULTS}/collections/{{collection}}",
        references=lambda wildcards: list(pseudo_labels(wildcards.collection).values()),
    output:
        rows=f"{RESULTS}/rows/{{representation}}.{{collection}}.seed{{seed}}.parquet",
        per_query=f"{RESULTS}/per_query/{{representation}}.{{collection}}.seed{{seed}}.parquet",
    log:
        f"{RESULTS}/logs/score/{{representation}}.{{collection}}.seed{{seed}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/score/{{representation}}.{{collection}}.seed{{seed}}.tsv"
    group:
        lambda wildcards: group_of_scores(wildcards.collection)
    conda:
        "../../envs/search.yaml"
    threads: 1
    resources:
        # Capped vectors and their index: about 16 bytes per stored weight of the whole corpus.
        mem_mb=lambda wildcards: (
            8000 if SHARDS[CORPUS[wildcards.collection]] == 1 else 48000
        ),
        runtime=240,
    params:
        code=code_of("score"),
        cells=cells_of,
        corpus=lambda wildcards: CORPUS[wildcards.collection],
        references=lambda wildcards: as_json(pseudo_labels(wildcards.collection)),
        depth=STUDY["search"]["depth"],
        study_seed=STUDY["seed"],
    message:
        "scoring {wildcards.representation} on {wildcards.collection}, seed {wildcards.seed}"
    shell:
        "whencount stage score --representation {wildcards.representation}"
        " --collection-name {wildcards.collection} --seed {wildcards.seed}"
        " --corpus {params.corpus} --queries {input.queries}"
        " --references {params.references:q}"
        " --collection {input.collection} --cells {params.cells:q}"
        " --depth {params.depth} --study-seed {params.study_seed} --threads {threads}"
        " --rows {output.rows} --per-query {output.per_query} {input.documents} 2>&1 | tee {log}"


rule collect:
    input:
        [f"{RESULTS}/rows/{job.name}.parquet" for job in JOBS],
    output:
        f"{RESULTS}/rows.parquet",
    log:
        f"{RESULTS}/logs/collect.log",
    benchmark:
        f"{RESULTS}/benchmarks/collect.tsv"
    conda:
        "../../envs/statistics.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        code=code_of("collect"),
        grid=as_json(
            {
                "bases": sorted(STUDY["bases"]),
                "granularities": STUDY["granularities"],
                "shared": STUDY["shared"],
                "external": {name: {} for name in EXTERNAL},
                "collections": sorted(STUDY["collections"]),
                "families": STUDY["families"],
            }
        ),
    message:
        "gathering the rows"
    shell:
        "whencount stage collect --grid {params.grid:q} --out {output} {input} 2>&1 | tee {log}"
