# Setting B: the scorer chooses pages of the key-value cache. One job per model x task x context decodes
# every example under all selectors, configurations and budgets.

if PAGE_STUDY:

    rule pages_haystack:
        input:
            collection=collection_of_haystack(),
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
            haystack=lambda wildcards: haystack_of(wildcards.task),
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
        threads: 1
        resources:
            mem_mb=16000,
            runtime=720,
            gpu=1,
        params:
            code=code_of("kv-pages"),
            model=lambda wildcards: page_model(wildcards.model),
            study=page_options(),
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
            parts=lambda wildcards, output: str(Path(output.rows).parent),
        message:
            f"gathering the tables of pages{pages_not_run()}"
        shell:
            "whencount stage kv-collect --jobs {params.jobs:q} --without {params.without:q}"
            " --parts {params.parts} --rows {output.rows} --per-example {output.per_example}"
            " --baselines {output.baselines} --page-statistics {output.page_statistics}"
            " --selected {output.selected} --unavailable {output.unavailable} 2>&1 | tee {log}"
