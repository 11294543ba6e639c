# The site: every report linked, and an explorer of rows with the documents that move.

if JOBS:

    rule moved:
        input:
            vectors=moved_vectors,
            per_query=moved_per_query,
            collection=f"{RESULTS}/collections/{{collection}}",
        output:
            f"{RESULTS}/moved/{{collection}}.parquet",
        log:
            f"{RESULTS}/logs/moved/{{collection}}.log",
        benchmark:
            f"{RESULTS}/benchmarks/moved/{{collection}}.tsv"
        conda:
            "../../envs/search.yaml"
        threads: 1
        resources:
            mem_mb=8000,
            runtime=120,
        params:
            code=code_of("moved"),
            sources=lambda wildcards: as_json(moved_sources(wildcards.collection)),
            seed=STUDY["seed"],
        message:
            "ranking again what moves most on {wildcards.collection}"
        shell:
            "whencount stage moved --collection-name {wildcards.collection}"
            " --collection {input.collection} --sources {params.sources:q}"
            " --study-seed {params.seed} --threads {threads} --out {output} 2>&1 | tee {log}"


rule site:
    input:
        **site_tables(),
    output:
        page=report(
            f"{REPORTS}/index.html",
            caption="../report/site.rst",
            category="Site",
        ),
        texts=f"{REPORTS}/index.texts.js",
    log:
        f"{RESULTS}/logs/site.log",
    benchmark:
        f"{RESULTS}/benchmarks/site.tsv"
    conda:
        "../../envs/report.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        code=code_of("site"),
        settings=as_json(
            {"study": STUDY["study"], "family": STUDY["statistics"]["family"]}
        ),
        options=site_options,
        beside=pages_beside,
        reports=lambda wildcards, output: str(Path(output.page).parent),
    message:
        "linking the reports and drawing the explorer of rows, {output.page}"
    shell:
        "whencount stage site --settings {params.settings:q} {params.options}"
        " --reports {params.reports:q} --texts {output.texts} --out {output.page}"
        " 2>&1 | tee {log}"
