# Transfer: predictors fitted in retrieval are frozen, then the other settings are computed, then the
# predictors are put to the test on them. What computes a corrected outcome takes FROZEN as an input.

if TRANSFER:

    rule freeze:
        input:
            rows=f"{RESULTS}/rows.parquet",
        output:
            # Not removed before it is made again: its time is that of the freeze.
            frozen=update(FROZEN[0]),
        log:
            f"{RESULTS}/logs/freeze.log",
        benchmark:
            f"{RESULTS}/benchmarks/freeze.tsv"
        conda:
            "../../envs/statistics.yaml"
        threads: 1
        resources:
            mem_mb=4000,
            runtime=20,
        params:
            code=code_of("freeze"),
            options=as_json(configuration.freeze_options(STUDY)),
            outcomes=as_json(
                {setting: f"{RESULTS}/{setting}" for setting in TRANSFER_SETTINGS}
            ),
        message:
            "freezing predictors before the outcomes that they are asked for"
        shell:
            "whencount stage freeze --rows {input.rows} --options {params.options:q}"
            " --outcomes {params.outcomes:q} --out {output.frozen} 2>&1 | tee {log}"

    rule transfer_test:
        input:
            **{
                setting: f"{RESULTS}/{setting}/rows.parquet"
                for setting in TRANSFER_SETTINGS
            },
            frozen=FROZEN[0],
        output:
            table=TRANSFER_TABLES[0],
            predictions=TRANSFER_TABLES[1],
        log:
            f"{RESULTS}/logs/transfer_test.log",
        benchmark:
            f"{RESULTS}/benchmarks/transfer_test.tsv"
        conda:
            "../../envs/statistics.yaml"
        threads: 1
        resources:
            mem_mb=4000,
            runtime=20,
        params:
            code=code_of("transfer"),
        message:
            "asking frozen predictors for other settings"
        shell:
            "whencount stage transfer --frozen {input.frozen}"
            + "".join(f" --{name} {{input.{name}}}" for name in TRANSFER_SETTINGS)
            + " --predictions {output.predictions} --out {output.table} 2>&1 | tee {log}"

    rule transfer_report:
        input:
            frozen=FROZEN[0],
            table=TRANSFER_TABLES[0],
            predictions=TRANSFER_TABLES[1],
            notebook=NOTEBOOKS / "transfer.ipynb",
        output:
            page=report(
                f"{REPORTS}/transfer.html",
                caption="../report/transfer.rst",
                category="Transfer",
            ),
            figures=directory(f"{RESULTS}/figures/transfer"),
        log:
            f"{RESULTS}/logs/transfer_report.log",
        benchmark:
            f"{RESULTS}/benchmarks/transfer_report.tsv"
        conda:
            "../../envs/report.yaml"
        threads: 1
        resources:
            mem_mb=4000,
            runtime=30,
        params:
            code=code_of("transfer-report", NOTEBOOKS / "transfer.ipynb"),
            settings=as_json({"study": STUDY["study"]}),
        message:
            "drawing {output.page}"
        shell:
            "whencount stage transfer-report --notebook {input.notebook}"
            " --settings {params.settings:q} --frozen {input.frozen} --transfer {input.table}"
            " --predictions {input.predictions} --figures {output.figures} --out {output.page}"
            " 2>&1 | tee {log}"
