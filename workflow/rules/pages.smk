# Setting B: the scorer chooses pages of the key-value cache. One job per model x task x context decodes
# every example under all selectors, configurations and budgets.

PAGE_STUDY = STUDY.get("pages", {})
PAGE_RESULTS = f"{RESULTS}/pages"
PAGE_KINDS = ("rows", "per_example", "baselines", "page_statistics", "selected")
PAGE_TABLES = [
    f"{PAGE_RESULTS}/{kind}.parquet" for kind in (*PAGE_KINDS, "unavailable")
]


def pages_targets(wildcards):
    """Everything of the study of pages; a configuration without one is told so."""
    if not PAGE_STUDY:
        raise WorkflowError(
            "the configuration has no study of pages; add the key pages (docs/pages.md)"
        )
    return [*PAGE_TABLES, f"{REPORTS}/pages.html"]


if PAGE_STUDY:
    from whencount import ruler

    # Tasks whose data is absent: no job, a line in a table, a word when the study starts.
    PAGES_WITHOUT = ruler.unavailable(
        PAGE_STUDY["tasks"], PAGE_STUDY["haystack"], PAGE_STUDY["questions"]
    )
    PAGE_JOBS = [
        (model, task, context)
        for model in PAGE_STUDY["models"]
        for task in PAGE_STUDY["tasks"]
        for context in PAGE_STUDY["contexts"]
        if task not in [one.task for one in PAGES_WITHOUT]
    ]
    PAGE_NAMES = [f"{model}.{task}.{context}" for model, task, context in PAGE_JOBS]
    if not PAGE_JOBS:
        raise WorkflowError(
            "pages: every task lacks its data: "
            + "; ".join(
                f"{one.task}: {one.reason}, {one.remedy}" for one in PAGES_WITHOUT
            )
        )

    def needs_of(task):
        return ruler.TASKS[task].needs

    def page_haystack_of(wildcards):
        return (
            f"{PAGE_RESULTS}/haystack.parquet"
            if "prose" in needs_of(wildcards.task)
            else []
        )

    def questions_of(task):
        return (
            PAGE_STUDY["questions"][task]["path"]
            if "questions" in needs_of(task)
            else []
        )

    def option(name, value):
        """`--name value`, or nothing where there is no such input."""
        return f"--{name} {value}" if value else ""

    rule pages_haystack:
        input:
            # A collection of the study is read where it stands prepared.
            collection=(
                f"{RESULTS}/collections/{PAGE_STUDY['haystack']['name']}"
                if PAGE_STUDY["haystack"].get("name") in STUDY["collections"]
                else []
            ),
        output:
            f"{PAGE_RESULTS}/haystack.parquet",
        log:
            f"{RESULTS}/logs/pages_haystack.log",
        benchmark:
            f"{RESULTS}/benchmarks/pages_haystack.tsv"
        conda:
            "../../envs/collections.yaml"
        threads: 1
        resources:
            mem_mb=4000,
            runtime=60,
        params:
            code=code_of("kv-haystack"),
            haystack=as_json(PAGE_STUDY["haystack"]),
            seed=STUDY["seed"],
            collection=lambda wildcards, input: option("collection", input.collection),
        message:
            "reading the prose that needles are hidden in"
        shell:
            "whencount stage kv-haystack --haystack {params.haystack:q} {params.collection}"
            " --seed {params.seed} --out {output} 2>&1 | tee {log}"

    rule pages_evaluation:
        input:
            frozen=FROZEN,
            haystack=page_haystack_of,
            questions=lambda wildcards: questions_of(wildcards.task),
        output:
            **{
                kind: f"{PAGE_RESULTS}/{kind}/{{model}}.{{task}}.{{length}}.parquet"
                for kind in PAGE_KINDS
            },
        log:
            f"{RESULTS}/logs/pages_evaluation/{{model}}.{{task}}.{{length}}.log",
        benchmark:
            f"{RESULTS}/benchmarks/pages_evaluation/{{model}}.{{task}}.{{length}}.tsv"
        wildcard_constraints:
            model="[a-z0-9][a-z0-9_-]*",
            task="[a-z0-9_]+",
            length="[0-9]+",
        conda:
            "../../envs/transformers.yaml"
        threads: 2
        resources:
            mem_mb=16000,
            runtime=720,
            gpu=1,
        params:
            code=code_of("kv-pages"),
            model=lambda wildcards: as_json(PAGE_STUDY["models"][wildcards.model]),
            study=as_json(
                {
                    key: value
                    for key, value in PAGE_STUDY.items()
                    if key
                    not in ("models", "tasks", "contexts", "haystack", "questions")
                }
            ),
            seed=STUDY["seed"],
            frozen=lambda wildcards, input: option("frozen", input.frozen),
            haystack=lambda wildcards, input: option("haystack", input.haystack),
            questions=lambda wildcards, input: option("questions", input.questions),
        message:
            "decoding {wildcards.task} at {wildcards.length} tokens by {wildcards.model}"
        shell:
            "whencount stage --cards {resources.gpu} kv-pages --name {wildcards.model}"
            " --model {params.model:q} --task {wildcards.task} --context {wildcards.length}"
            " --study {params.study:q} --seed {params.seed} --threads {threads} {params.frozen}"
            " {params.haystack} {params.questions} --rows {output.rows}"
            " --per-example {output.per_example} --baselines {output.baselines}"
            " --page-statistics {output.page_statistics} --selected {output.selected}"
            " 2>&1 | tee {log}"

    rule pages_collection:
        input:
            **{
                kind: [f"{PAGE_RESULTS}/{kind}/{name}.parquet" for name in PAGE_NAMES]
                for kind in PAGE_KINDS
            },
        output:
            **{kind: f"{PAGE_RESULTS}/{kind}.parquet" for kind in PAGE_KINDS},
            unavailable=f"{PAGE_RESULTS}/unavailable.parquet",
        log:
            f"{RESULTS}/logs/pages_collection.log",
        benchmark:
            f"{RESULTS}/benchmarks/pages_collection.tsv"
        conda:
            "../../envs/statistics.yaml"
        threads: 1
        resources:
            mem_mb=4000,
            runtime=20,
        params:
            code=code_of("kv-collect"),
            jobs=as_json(PAGE_JOBS),
            without=as_json(
                [[one.task, one.reason, one.remedy] for one in PAGES_WITHOUT]
            ),
            parts=PAGE_RESULTS,
        message:
            "gathering the tables of pages"
            + "".join(
                f"; NOT RUN: {one.task}, {one.reason} ({one.remedy})"
                for one in PAGES_WITHOUT
            )
        shell:
            "whencount stage kv-collect --jobs {params.jobs:q} --without {params.without:q}"
            " --parts {params.parts} --rows {output.rows} --per-example {output.per_example}"
            " --baselines {output.baselines} --page-statistics {output.page_statistics}"
            " --selected {output.selected} --unavailable {output.unavailable} 2>&1 | tee {log}"
