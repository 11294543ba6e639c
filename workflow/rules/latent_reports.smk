# The pages of the study of latent terms: its report, the browser of features, the reversal.


if LATENT:

    rule latent_features:
        input:
            documents=latent_documents(
                CORPUS[LATENT["browser"]["collection"]],
                LATENT["browser"]["model"],
                LATENT["browser"]["seed"],
            ),
            queries=latent_queries(
                LATENT["browser"]["collection"],
                LATENT["browser"]["model"],
                LATENT["browser"]["seed"],
            ),
            corpus=f"{RESULTS}/collections/{CORPUS[LATENT['browser']['collection']]}",
            collection=f"{RESULTS}/collections/{LATENT['browser']['collection']}",
            dictionaries=latent_dictionaries(LATENT["browser"]["model"]),
        output:
            features=f"{LATENT_RESULTS}/features.parquet",
            examples=f"{LATENT_RESULTS}/feature_examples.parquet",
        log:
            f"{RESULTS}/logs/latent_features.log",
        benchmark:
            f"{RESULTS}/benchmarks/latent_features.tsv"
        conda:
            "../../envs/encode.yaml"
        threads: 2
        resources:
            mem_mb=16000,
            runtime=240,
            gpu=1,
        params:
            code=code_of("latent-features"),
            encoder=as_json(latent_encoder(LATENT["browser"]["model"])),
            options=as_json({"phi": LATENT["phi"], "browser": LATENT["browser"]}),
        message:
            "finding the passages and tokens in which features are strongest"
        shell:
            "whencount stage --cards {resources.gpu} latent-features --options {params.options:q}"
            " --encoder {params.encoder:q} --dictionaries {input.dictionaries}"
            " --queries {input.queries} --corpus {input.corpus}"
            " --collection {input.collection} --threads {threads} --features {output.features}"
            " --examples {output.examples} {input.documents} 2>&1 | tee {log}"

    rule latent_browser:
        input:
            features=f"{LATENT_RESULTS}/features.parquet",
            examples=f"{LATENT_RESULTS}/feature_examples.parquet",
        output:
            report(
                f"{REPORTS}/features.html",
                caption="../report/features.rst",
                category="Latent terms",
            ),
        log:
            f"{RESULTS}/logs/latent_browser.log",
        benchmark:
            f"{RESULTS}/benchmarks/latent_browser.tsv"
        conda:
            "../../envs/report.yaml"
        threads: 1
        resources:
            mem_mb=4000,
            runtime=20,
        params:
            code=code_of("latent-browser"),
            settings=as_json(
                {
                    "study": STUDY["study"],
                    **{
                        key: LATENT["browser"][key]
                        for key in ("model", "collection", "seed")
                    },
                }
            ),
        message:
            "writing {output}"
        shell:
            "whencount stage latent-browser --settings {params.settings:q}"
            " --features {input.features} --examples {input.examples} --out {output}"
            " 2>&1 | tee {log}"

    rule latent_report:
        input:
            **LATENT_TABLES,
            notebook=NOTEBOOKS / "latent_terms.ipynb",
        output:
            page=report(
                f"{REPORTS}/latent_terms.html",
                caption="../report/latent_terms.rst",
                category="Latent terms",
            ),
            figures=directory(f"{RESULTS}/figures/latent_terms"),
        log:
            f"{RESULTS}/logs/latent_report.log",
        benchmark:
            f"{RESULTS}/benchmarks/latent_report.tsv"
        conda:
            "../../envs/report.yaml"
        threads: 1
        resources:
            mem_mb=6000,
            runtime=30,
        params:
            code=code_of("setting-report", NOTEBOOKS / "latent_terms.ipynb"),
            settings=latent_settings(),
            tables=as_json(LATENT_TABLES),
        message:
            "drawing {output.page}"
        shell:
            "whencount stage setting-report --notebook {input.notebook}"
            " --settings {params.settings:q} --tables {params.tables:q}"
            " --figures {output.figures} --out {output.page} 2>&1 | tee {log}"

    rule reversal_report:
        input:
            **REVERSAL_TABLES,
            notebook=NOTEBOOKS / "reversal.ipynb",
        output:
            page=report(
                f"{REPORTS}/reversal.html",
                caption="../report/reversal.rst",
                category="Latent terms",
            ),
            figures=directory(f"{RESULTS}/figures/reversal"),
        log:
            f"{RESULTS}/logs/reversal_report.log",
        benchmark:
            f"{RESULTS}/benchmarks/reversal_report.tsv"
        conda:
            "../../envs/report.yaml"
        threads: 1
        resources:
            mem_mb=4000,
            runtime=30,
        params:
            code=code_of("setting-report", NOTEBOOKS / "reversal.ipynb"),
            settings=latent_settings(),
            tables=as_json(REVERSAL_TABLES),
        message:
            "drawing {output.page}"
        shell:
            "whencount stage setting-report --notebook {input.notebook}"
            " --settings {params.settings:q} --tables {params.tables:q}"
            " --figures {output.figures} --out {output.page} 2>&1 | tee {log}"

    rule latent_reversal:
        input:
            latent=LATENT_TABLES["per_query"],
            learned=f"{RESULTS}/learned_sparse/per_query.parquet" if LEARNED else [],
        output:
            REVERSAL_TABLES["reversal"],
        log:
            f"{RESULTS}/logs/latent_reversal.log",
        benchmark:
            f"{RESULTS}/benchmarks/latent_reversal.tsv"
        conda:
            "../../envs/statistics.yaml"
        threads: 1
        resources:
            mem_mb=4000,
            runtime=60,
        params:
            code=code_of("latent-reversal"),
            learned=lambda wildcards, input: option("learned", input.learned),
            draws=STUDY["statistics"]["draws"],
            study_seed=STUDY["seed"],
        message:
            "comparing BM25 with the inner product on both kinds of vectors"
        shell:
            "whencount stage latent-reversal --latent {input.latent} {params.learned}"
            " --draws {params.draws} --study-seed {params.study_seed} --out {output}"
            " 2>&1 | tee {log}"


if LATENT and LEARNED:

    rule latent_learned_frequencies:
        input:
            lambda wildcards: list(
                learned_documents(CORPUS[wildcards.collection]).values()
            ),
        output:
            f"{LATENT_RESULTS}/learned_frequencies/{{collection}}.parquet",
        log:
            f"{RESULTS}/logs/latent_learned_frequencies/{{collection}}.log",
        benchmark:
            f"{RESULTS}/benchmarks/latent_learned_frequencies/{{collection}}.tsv"
        conda:
            "../../envs/search.yaml"
        threads: 1
        resources:
            mem_mb=8000,
            runtime=60,
        params:
            code=code_of("latent-learned-frequencies"),
            vectors=lambda wildcards: as_json(
                learned_documents(CORPUS[wildcards.collection])
            ),
        message:
            "ranking SPLADE-like features on {wildcards.collection} by frequency"
        shell:
            "whencount stage latent-learned-frequencies --vectors {params.vectors:q}"
            " --out {output} 2>&1 | tee {log}"
