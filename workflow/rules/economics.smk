# What an index costs: for every representation and collection a job that counts, indexes and ranks;
# for every collection one that times queries and takes all cores, so that nothing runs beside it.

if ECONOMICS_JOBS:

    rule economics_words:
        input:
            collection=f"{RESULTS}/collections/{{collection}}",
        output:
            documents=directory(f"{ECONOMICS_RESULTS}/words/{{collection}}/documents"),
            queries=directory(f"{ECONOMICS_RESULTS}/words/{{collection}}/queries"),
        log:
            f"{RESULTS}/logs/economics_words/{{collection}}.log",
        benchmark:
            f"{RESULTS}/benchmarks/economics_words/{{collection}}.tsv"
        conda:
            "../../envs/search.yaml"
        threads: 1
        resources:
            mem_mb=16000,
            runtime=120,
        params:
            code=code_of("economics-words"),
        message:
            "counting the words of {wildcards.collection}"
        shell:
            "whencount stage economics-words --collection {input.collection} --part words.seed0"
            " --documents {output.documents} --queries {output.queries} 2>&1 | tee {log}"

    rule economics_costs:
        input:
            documents=lambda wildcards: economics_of(wildcards)["documents"],
            queries=lambda wildcards: economics_of(wildcards)["queries"],
            collection=collection_of_economics,
        output:
            costs=f"{ECONOMICS_RESULTS}/costs/{{job}}.parquet",
            profiles=f"{ECONOMICS_RESULTS}/profiles/{{job}}.parquet",
        log:
            f"{RESULTS}/logs/economics_costs/{{job}}.log",
        benchmark:
            f"{RESULTS}/benchmarks/economics_costs/{{job}}.tsv"
        conda:
            "../../envs/search.yaml"
        threads: 1
        resources:
            mem_mb=lambda wildcards: memory_of_economics(
                economics_of(wildcards)["keys"]["corpus"]
            ),
            runtime=240,
        params:
            code=code_of("economics-costs"),
            columns=lambda wildcards: as_json(economics_of(wildcards)["keys"]),
            part=lambda wildcards: economics_of(wildcards)["part"],
            exponent=lambda wildcards: economics_of(wildcards)["exponent"],
            study=ECONOMICS_OPTIONS,
        message:
            "counting what {wildcards.job} costs"
        shell:
            "whencount stage economics-costs --keys {params.columns:q} --part {params.part:q}"
            " --exponent {params.exponent}"
            " --queries {input.queries} --collection {input.collection} --study {params.study:q}"
            " --threads {threads} --costs {output.costs} --profiles {output.profiles}"
            " {input.documents} 2>&1 | tee {log}"

    rule economics_times:
        input:
            documents=lambda wildcards: economics_inputs(wildcards, "documents"),
            queries=lambda wildcards: economics_inputs(wildcards, "queries"),
            collection=f"{RESULTS}/collections/{{collection}}",
        output:
            f"{ECONOMICS_RESULTS}/times/{{collection}}.parquet",
        log:
            f"{RESULTS}/logs/economics_times/{{collection}}.log",
        benchmark:
            f"{RESULTS}/benchmarks/economics_times/{{collection}}.tsv"
        conda:
            "../../envs/search.yaml"
        # All cores of this machine, of which the search uses `economics.threads`.
        threads: workflow.cores or ECONOMICS["threads"]
        resources:
            mem_mb=lambda wildcards: memory_of_economics(CORPUS[wildcards.collection]),
            runtime=720,
        params:
            code=code_of("economics-times"),
            jobs=lambda wildcards: as_json(economics_on(wildcards.collection)),
            study=ECONOMICS_OPTIONS,
        message:
            "timing queries of {wildcards.collection}, one representation after the other"
        shell:
            "whencount stage economics-times --jobs {params.jobs:q}"
            " --collection {input.collection} --study {params.study:q} --out {output}"
            " 2>&1 | tee {log}"

    rule economics_collect:
        input:
            lambda wildcards: economics_parts(ECONOMICS_PARTS[wildcards.table]),
        output:
            f"{ECONOMICS_RESULTS}/{{table}}.parquet",
        log:
            f"{RESULTS}/logs/economics_collect/{{table}}.log",
        benchmark:
            f"{RESULTS}/benchmarks/economics_collect/{{table}}.tsv"
        wildcard_constraints:
            table="|".join(ECONOMICS_PARTS),
        conda:
            "../../envs/statistics.yaml"
        threads: 1
        resources:
            mem_mb=4000,
            runtime=20,
        params:
            code=code_of("economics-collect"),
        message:
            "gathering {wildcards.table}"
        shell:
            "whencount stage economics-collect --out {output} {input} 2>&1 | tee {log}"

    rule economics_report:
        input:
            **ECONOMICS_TABLES,
            notebook=NOTEBOOKS / "economics.ipynb",
        output:
            page=report(
                f"{REPORTS}/economics.html",
                caption="../report/economics.rst",
                category="Economics",
            ),
            figures=directory(f"{RESULTS}/figures/economics"),
        log:
            f"{RESULTS}/logs/economics_report.log",
        benchmark:
            f"{RESULTS}/benchmarks/economics_report.tsv"
        conda:
            "../../envs/report.yaml"
        threads: 1
        resources:
            mem_mb=4000,
            runtime=30,
        params:
            code=code_of("setting-report", NOTEBOOKS / "economics.ipynb"),
            settings=as_json(
                {
                    "study": STUDY["study"],
                    "setting": "economics",
                    "settings": ECONOMICS,
                }
            ),
            tables=as_json(ECONOMICS_TABLES),
        message:
            "drawing {output.page}"
        shell:
            "whencount stage setting-report --notebook {input.notebook}"
            " --settings {params.settings:q} --tables {params.tables:q}"
            " --figures {output.figures} --out {output.page} 2>&1 | tee {log}"
