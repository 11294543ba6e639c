# Late interaction: texts as sets of token vectors, a job per collection.

if LATE_ON:

    rule late_job:
        input:
            collection=f"{RESULTS}/collections/{{collection}}",
            corpus=lambda wildcards: f"{RESULTS}/collections/{CORPUS[wildcards.collection]}",
        output:
            **LATE_INDEX,
            tables=directory(f"{LATE_RESULTS}/jobs/{{collection}}"),
        log:
            f"{RESULTS}/logs/late_job/{{collection}}.log",
        benchmark:
            f"{RESULTS}/benchmarks/late_job/{{collection}}.tsv"
        conda:
            "../../envs/encode.yaml"
        threads: 2
        resources:
            mem_mb=lambda wildcards: (
                12000 if SHARDS[CORPUS[wildcards.collection]] == 1 else 64000
            ),
            runtime=1440,
            gpu=1,
        params:
            code=code_of("late-job"),
            encoder=as_json(late_encoder()),
            options=late_options(),
            seed=STUDY["seed"],
            index=lambda wildcards, output: option("index", output.get("index")),
        message:
            "late interaction on {wildcards.collection}"
        shell:
            "whencount stage --cards {resources.gpu} late-job --encoder {params.encoder:q}"
            " --options {params.options:q} --collection {input.collection}"
            " --corpus {input.corpus} --seed {params.seed} --threads {threads}"
            " {params.index} --out {output.tables} 2>&1 | tee {log}"

    rule late_collect:
        input:
            [f"{LATE_RESULTS}/jobs/{name}" for name in LATE_ON],
        output:
            f"{LATE_RESULTS}/{{table}}.parquet",
        log:
            f"{RESULTS}/logs/late_collect/{{table}}.log",
        benchmark:
            f"{RESULTS}/benchmarks/late_collect/{{table}}.tsv"
        wildcard_constraints:
            table="|".join(LATE_TABLES),
        conda:
            "../../envs/statistics.yaml"
        threads: 1
        resources:
            mem_mb=2000,
            runtime=20,
        params:
            code=code_of("late-collect"),
        message:
            "gathering the {wildcards.table} of late interaction"
        shell:
            "whencount stage late-collect --table {wildcards.table} --out {output} {input}"
            " 2>&1 | tee {log}"

    rule late_report:
        input:
            **LATE_SHOWN,
            notebook=NOTEBOOKS / "late_interaction.ipynb",
        output:
            page=report(
                f"{REPORTS}/late_interaction.html",
                caption="../report/late_interaction.rst",
                category="Late interaction",
            ),
            figures=directory(f"{RESULTS}/figures/late_interaction"),
        log:
            f"{RESULTS}/logs/late_report.log",
        benchmark:
            f"{RESULTS}/benchmarks/late_report.tsv"
        conda:
            "../../envs/report.yaml"
        threads: 1
        resources:
            mem_mb=4000,
            runtime=30,
        params:
            code=code_of("setting-report", NOTEBOOKS / "late_interaction.ipynb"),
            settings=late_settings(),
            tables=as_json(LATE_SHOWN),
        message:
            "drawing {output.page}"
        shell:
            "whencount stage setting-report --notebook {input.notebook}"
            " --settings {params.settings:q} --tables {params.tables:q}"
            " --figures {output.figures} --out {output.page} 2>&1 | tee {log}"
