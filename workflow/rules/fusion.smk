# Two arms: a dense and a lexical ranking of the same rows made one, a job per dense arm and collection.

if FUSION_JOBS:

    rule fusion_job:
        input:
            documents=lambda wildcards: document_vectors(CORPUS[wildcards.collection]),
            queries=f"{RESULTS}/vectors/{{collection}}/queries",
            collection=f"{RESULTS}/collections/{{collection}}",
            lexical=f"{RESULTS}/references/bm25.{{collection}}.parquet",
            dense=f"{RESULTS}/references/dense.{{collection}}.parquet",
            foreign=lambda wildcards: [
                f"{RESULTS}/collections/{name}"
                for name in foreign_of(wildcards.collection)
            ],
            foreign_queries=lambda wildcards: [
                f"{RESULTS}/vectors/{name}/queries"
                for name in foreign_of(wildcards.collection)
            ],
        output:
            directory(f"{FUSION_RESULTS}/jobs/{{arm}}.{{collection}}"),
        log:
            f"{RESULTS}/logs/fusion_job/{{arm}}.{{collection}}.log",
        benchmark:
            f"{RESULTS}/benchmarks/fusion_job/{{arm}}.{{collection}}.tsv"
        wildcard_constraints:
            arm="|".join(FUSION["dense_arms"]),
        conda:
            "../../envs/search.yaml"
        threads: 1
        resources:
            mem_mb=lambda wildcards: (
                8000 if SHARDS[CORPUS[wildcards.collection]] == 1 else 48000
            ),
            runtime=240,
        params:
            code=code_of("fusion-job"),
            arm=lambda wildcards: as_json(FUSION["dense_arms"][wildcards.arm]),
            options=as_json(
                {
                    name: FUSION[name]
                    for name in ("depth", "floor", "queries", "documents")
                }
            ),
            foreign=lambda wildcards, input: " ".join(
                f"--foreign-collection {shlex.quote(str(one))}"
                f" --foreign-queries {shlex.quote(str(vectors))}"
                for one, vectors in zip(input.foreign, input.foreign_queries)
            ),
            k1=STUDY["references"].get("bm25", {}).get("k1", 1.2),
            b=STUDY["references"].get("bm25", {}).get("b", 0.75),
            seed=STUDY["seed"],
        message:
            "fusing two arms on {wildcards.collection}, the dense one being {wildcards.arm}"
        shell:
            "whencount stage fusion-job --collection {input.collection}"
            " --queries {input.queries} {params.foreign} --lexical-run {input.lexical}"
            " --dense-run {input.dense} --arm {params.arm:q} --options {params.options:q}"
            " --k1 {params.k1} --b {params.b} --seed {params.seed} --threads {threads}"
            " --out {output} {input.documents} 2>&1 | tee {log}"

    rule fusion_collection:
        input:
            [f"{FUSION_RESULTS}/jobs/{arm}.{on}" for arm, on in FUSION_JOBS],
        output:
            **{name: f"{FUSION_RESULTS}/{name}.parquet" for name in FUSION_TABLES},
        log:
            f"{RESULTS}/logs/fusion_collection.log",
        benchmark:
            f"{RESULTS}/benchmarks/fusion_collection.tsv"
        conda:
            "../../envs/search.yaml"
        threads: 1
        resources:
            mem_mb=4000,
            runtime=30,
        params:
            code=code_of("fusion-collect"),
            jobs=as_json(FUSION_JOBS),
            parts=lambda wildcards, output: str(Path(output.rules).parent / "jobs"),
            outputs=lambda wildcards, output: " ".join(
                f"--{name.replace('_', '-')} {shlex.quote(output[name])}"
                for name in FUSION_TABLES
            ),
            draws=FUSION["draws"],
            seed=STUDY["seed"],
        message:
            "testing the rules and holding the claims against them"
        shell:
            "whencount stage fusion-collect --jobs {params.jobs:q} --parts {params.parts}"
            " --draws {params.draws} --seed {params.seed} {params.outputs} 2>&1 | tee {log}"

    rule fusion_report:
        input:
            **{
                name: f"{FUSION_RESULTS}/{name}.parquet"
                for name in FUSION_TABLES
                if name != "per_query"
            },
            notebook=NOTEBOOKS / "fusion.ipynb",
        output:
            page=report(
                f"{REPORTS}/fusion.html",
                caption="../report/fusion.rst",
                category="Two arms",
            ),
            figures=directory(f"{RESULTS}/figures/fusion"),
        log:
            f"{RESULTS}/logs/fusion_report.log",
        benchmark:
            f"{RESULTS}/benchmarks/fusion_report.tsv"
        conda:
            "../../envs/report.yaml"
        threads: 1
        resources:
            mem_mb=6000,
            runtime=30,
        params:
            code=code_of("setting-report", NOTEBOOKS / "fusion.ipynb"),
            settings=as_json(
                {"study": STUDY["study"], "setting": "fusion", "settings": FUSION}
            ),
            tables=as_json(
                {
                    name: f"{FUSION_RESULTS}/{name}.parquet"
                    for name in FUSION_TABLES
                    if name != "per_query"
                }
            ),
        message:
            "drawing {output.page}"
        shell:
            "whencount stage setting-report --notebook {input.notebook}"
            " --settings {params.settings:q} --tables {params.tables:q}"
            " --figures {output.figures} --out {output.page} 2>&1 | tee {log}"
