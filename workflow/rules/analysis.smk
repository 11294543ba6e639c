# Analysis: tables in, tables out.


rule significance:
    input:
        rows=f"{RESULTS}/rows.parquet",
        per_query=[f"{RESULTS}/per_query/{job.name}.parquet" for job in JOBS],
    output:
        f"{RESULTS}/significance.parquet",
    log:
        f"{RESULTS}/logs/significance.log",
    benchmark:
        f"{RESULTS}/benchmarks/significance.tsv"
    conda:
        "../../envs/statistics.yaml"
    threads: 1
    resources:
        mem_mb=8000,
        runtime=60,
    params:
        code=code_of("significance"),
        options=as_json({**STUDY["statistics"], "seed": STUDY["seed"]}),
    message:
        "bootstrapping the gains of the {STUDY[statistics][family]} family"
    shell:
        "whencount stage significance --rows {input.rows} --options {params.options:q}"
        " --out {output} {input.per_query} 2>&1 | tee {log}"


rule shares:
    input:
        rows=f"{RESULTS}/rows.parquet",
    output:
        f"{RESULTS}/shares.parquet",
    log:
        f"{RESULTS}/logs/shares.log",
    benchmark:
        f"{RESULTS}/benchmarks/shares.tsv"
    conda:
        "../../envs/statistics.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        code=code_of("shares"),
        options=as_json({**STUDY["statistics"], "seed": STUDY["seed"]}),
    message:
        "sharing the gain out among the three switches"
    shell:
        "whencount stage shares --rows {input.rows} --options {params.options:q}"
        " --out {output} 2>&1 | tee {log}"


rule reference_quality:
    input:
        runs=[
            f"{RESULTS}/references/{reference}.{collection}.parquet"
            for reference in REFERENCES
            for collection in COLLECTIONS
        ],
        collections=[
            f"{RESULTS}/collections/{collection}" for collection in COLLECTIONS
        ],
    output:
        f"{RESULTS}/references.parquet",
    log:
        f"{RESULTS}/logs/reference_quality.log",
    benchmark:
        f"{RESULTS}/benchmarks/reference_quality.tsv"
    conda:
        "../../envs/search.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        code=code_of("reference-quality"),
        collections=as_json(
            {
                collection: f"{RESULTS}/collections/{collection}"
                for collection in COLLECTIONS
            }
        ),
    message:
        "measuring the references"
    shell:
        "whencount stage reference-quality --collections {params.collections:q}"
        " --out {output} {input.runs} 2>&1 | tee {log}"


rule predictors:
    input:
        rows=f"{RESULTS}/rows.parquet",
    output:
        predictors=f"{RESULTS}/predictors.parquet",
        predictions=f"{RESULTS}/predictions.parquet",
        decisions=f"{RESULTS}/decisions.parquet",
        left_out=f"{RESULTS}/left_out.parquet",
        notes=f"{RESULTS}/prediction_notes.json",
    log:
        f"{RESULTS}/logs/predictors.log",
    benchmark:
        f"{RESULTS}/benchmarks/predictors.tsv"
    conda:
        "../../envs/statistics.yaml"
    threads: 2
    resources:
        mem_mb=4000,
        runtime=120,
    params:
        code=code_of("predictors"),
        options=as_json({**STUDY["statistics"], "seed": STUDY["seed"]}),
    message:
        "predicting from what an index shows without labels"
    shell:
        "whencount stage predictors --rows {input.rows} --options {params.options:q}"
        " --predictors {output.predictors} --predictions {output.predictions}"
        " --decisions {output.decisions} --left-out {output.left_out} --notes {output.notes} --threads {threads}"
        " 2>&1 | tee {log}"


if HYPOTHESES:

    rule hypotheses:
        input:
            rows=f"{RESULTS}/rows.parquet",
            files=HYPOTHESES,
            registrations=[
                record
                for path in HYPOTHESES
                if (record := registration_of(path)).exists()
            ],
        output:
            f"{RESULTS}/hypotheses.parquet",
        log:
            f"{RESULTS}/logs/hypotheses.log",
        benchmark:
            f"{RESULTS}/benchmarks/hypotheses.tsv"
        conda:
            "../../envs/statistics.yaml"
        threads: 1
        resources:
            mem_mb=2000,
            runtime=30,
        params:
            code=code_of("hypotheses"),
            options=as_json({**STUDY["statistics"], "seed": STUDY["seed"]}),
        message:
            "testing the registered hypotheses"
        shell:
            "whencount stage hypotheses --rows {input.rows} --options {params.options:q}"
            " --out {output} {input.files} 2>&1 | tee {log}"
