# The report: a notebook that draws from the tables, run and rendered to one self-contained page.


rule retrieval_report:
    input:
        notebook=Path(workflow.basedir) / "workflow" / "notebooks" / "retrieval.ipynb",
        rows=f"{RESULTS}/rows.parquet",
        significance=f"{RESULTS}/significance.parquet",
        shares=f"{RESULTS}/shares.parquet",
        references=f"{RESULTS}/references.parquet",
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
        settings=as_json(
            {
                "study": STUDY["study"],
                "family": STUDY["statistics"]["family"],
                "alpha": STUDY["statistics"]["alpha"],
                "draws": STUDY["statistics"]["draws"],
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
        ),
    message:
        "drawing {output.page}"
    shell:
        "whencount stage report --notebook {input.notebook} --settings {params.settings:q}"
        " --rows {input.rows} --significance {input.significance} --shares {input.shares}"
        " --references {input.references} --figures {output.figures}"
        " --out {output.page} 2>&1 | tee {log}"
