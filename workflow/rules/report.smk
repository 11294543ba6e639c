# The reports: notebooks that draw from the tables, each run and rendered to one self-contained page;
# and a page per representation and per collection, drawn from the same tables in one process.

REPORT_TABLES = {
    name: f"{RESULTS}/{name}.parquet"
    for name in (
        "rows",
        "significance",
        "shares",
        "references",
        "predictors",
        "predictions",
        "decisions",
        *(["hypotheses"] if STUDY["hypotheses"] else []),
    )
}
REPORT_SETTINGS = {
    "study": STUDY["study"],
    "family": STUDY["statistics"]["family"],
    "alpha": STUDY["statistics"]["alpha"],
    "draws": STUDY["statistics"]["draws"],
    "hypothesis_files": [str(path) for path in HYPOTHESES],
    "settings": {
        "seed": STUDY["seed"],
        "encoder": {
            key: value
            for key, value in STUDY["encoder"].items()
            if key not in ("batch_tokens", "device", "precision")
        },
        "fit": STUDY["fit"]["text"],
        "bases": STUDY["bases"],
    },
}
TABLE_OPTIONS = " ".join(f"--{name} {{input.{name}}}" for name in REPORT_TABLES)


rule retrieval_report:
    input:
        **REPORT_TABLES,
        notebook=NOTEBOOKS / "retrieval.ipynb",
        hypothesis_files=HYPOTHESES,
    output:
        page=report(
            f"{REPORTS}/retrieval.html",
            caption="../report/retrieval.rst",
            category="Retrieval",
        ),
        figures=directory(f"{RESULTS}/figures/retrieval"),
    log:
        f"{RESULTS}/logs/retrieval_report.log",
    benchmark:
        f"{RESULTS}/benchmarks/retrieval_report.tsv"
    conda:
        "../../envs/report.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        code=code_of("report", NOTEBOOKS / "retrieval.ipynb"),
        settings=as_json(REPORT_SETTINGS),
    message:
        "drawing {output.page}"
    shell:
        "whencount stage report --notebook {input.notebook} --settings {params.settings:q}"
        f" {TABLE_OPTIONS}"
        " --figures {output.figures} --out {output.page} 2>&1 | tee {log}"


rule hypotheses_report:
    input:
        **REPORT_TABLES,
        notebook=NOTEBOOKS / "hypotheses.ipynb",
        hypothesis_files=HYPOTHESES,
    output:
        page=report(
            f"{REPORTS}/hypotheses.html",
            caption="../report/hypotheses.rst",
            category="Hypotheses",
        ),
        figures=directory(f"{RESULTS}/figures/hypotheses"),
    log:
        f"{RESULTS}/logs/hypotheses_report.log",
    benchmark:
        f"{RESULTS}/benchmarks/hypotheses_report.tsv"
    conda:
        "../../envs/report.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        code=code_of("report", NOTEBOOKS / "hypotheses.ipynb"),
        settings=as_json(REPORT_SETTINGS),
    message:
        "drawing {output.page}"
    shell:
        "whencount stage report --notebook {input.notebook} --settings {params.settings:q}"
        f" {TABLE_OPTIONS}"
        " --figures {output.figures} --out {output.page} 2>&1 | tee {log}"


rule part_pages:
    input:
        **REPORT_TABLES,
    output:
        representations=directory(f"{REPORTS}/representations"),
        collections=directory(f"{REPORTS}/collections"),
    log:
        f"{RESULTS}/logs/part_pages.log",
    benchmark:
        f"{RESULTS}/benchmarks/part_pages.tsv"
    conda:
        "../../envs/report.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        code=code_of("pages"),
        settings=as_json(REPORT_SETTINGS),
    message:
        "drawing a page per representation and per collection"
    shell:
        "whencount stage pages --settings {params.settings:q}"
        f" {TABLE_OPTIONS}"
        " --representations {output.representations} --collections {output.collections}"
        " 2>&1 | tee {log}"
