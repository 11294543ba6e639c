# The pages of the other settings, KV pages and experts: as the report of the study, each drawn by a
# notebook from the tables of its setting and rendered to one self-contained page.

SETTING_TABLES = {
    setting: {name: f"{RESULTS}/{setting}/{name}.parquet" for name in names}
    for setting, names in {
        "pages": (
            "rows",
            "per_example",
            "baselines",
            "selected",
            "page_statistics",
            "unavailable",
        ),
        "experts": ("rows", "per_document", "baselines", "routing", "training"),
    }.items()
    if STUDY.get(setting)
}


if "pages" in SETTING_TABLES:

    rule pages_report:
        input:
            **SETTING_TABLES["pages"],
            notebook=NOTEBOOKS / "pages.ipynb",
        output:
            page=report(
                f"{REPORTS}/pages.html",
                caption="../report/pages.rst",
                category="KV pages",
            ),
            figures=directory(f"{RESULTS}/figures/pages"),
        log:
            f"{RESULTS}/logs/pages_report.log",
        benchmark:
            f"{RESULTS}/benchmarks/pages_report.tsv"
        conda:
            "../../envs/report.yaml"
        threads: 1
        resources:
            mem_mb=6000,
            runtime=30,
        params:
            code=code_of("setting-report", NOTEBOOKS / "pages.ipynb"),
            settings=setting_parameters("pages"),
            tables=as_json(SETTING_TABLES["pages"]),
        message:
            "drawing {output.page}"
        shell:
            "whencount stage setting-report --notebook {input.notebook}"
            " --settings {params.settings:q} --tables {params.tables:q}"
            " --figures {output.figures} --out {output.page} 2>&1 | tee {log}"


if "experts" in SETTING_TABLES:

    rule experts_report:
        input:
            **SETTING_TABLES["experts"],
            notebook=NOTEBOOKS / "experts.ipynb",
        output:
            page=report(
                f"{REPORTS}/experts.html",
                caption="../report/experts.rst",
                category="Experts",
            ),
            figures=directory(f"{RESULTS}/figures/experts"),
        log:
            f"{RESULTS}/logs/experts_report.log",
        benchmark:
            f"{RESULTS}/benchmarks/experts_report.tsv"
        conda:
            "../../envs/report.yaml"
        threads: 1
        resources:
            mem_mb=6000,
            runtime=30,
        params:
            code=code_of("setting-report", NOTEBOOKS / "experts.ipynb"),
            settings=setting_parameters("experts"),
            tables=as_json(SETTING_TABLES["experts"]),
        message:
            "drawing {output.page}"
        shell:
            "whencount stage setting-report --notebook {input.notebook}"
            " --settings {params.settings:q} --tables {params.tables:q}"
            " --figures {output.figures} --out {output.page} 2>&1 | tee {log}"
