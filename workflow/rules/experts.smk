# Setting C: the scorer chooses the experts of a mixture-of-experts model. A small model is trained where
# one is asked for; routing is measured once per model and number of experts, before any outcome; one
# job per model x evaluation x number of experts measures every rule.

if EXPERT_STUDY:

    rule expert_text:
        output:
            f"{EXPERT_RESULTS}/text.{{text}}.parquet",
        log:
            f"{RESULTS}/logs/expert_text/{{text}}.log",
        benchmark:
            f"{RESULTS}/benchmarks/expert_text/{{text}}.tsv"
        wildcard_constraints:
            text="[a-z0-9][a-z0-9_-]*",
        conda:
            "../../envs/collections.yaml"
        threads: 1
        resources:
            mem_mb=4000,
            runtime=60,
        params:
            code=code_of("expert-text"),
            source=lambda wildcards: as_json(part_of_experts("texts", wildcards.text)),
            seed=STUDY["seed"],
        message:
            "reading the text {wildcards.text}"
        shell:
            "whencount stage expert-text --name {wildcards.text} --source {params.source:q}"
            " --seed {params.seed} --out {output} 2>&1 | tee {log}"

    rule expert_training:
        input:
            text=lambda wildcards: text_of(EXPERT_MODELS[wildcards.model]["text"]),
        output:
            directory(f"{EXPERT_RESULTS}/model.{{model}}"),
        log:
            f"{RESULTS}/logs/expert_training/{{model}}.log",
        benchmark:
            f"{RESULTS}/benchmarks/expert_training/{{model}}.tsv"
        wildcard_constraints:
            model="|".join(TRAINED) or "none",
        conda:
            "../../envs/transformers.yaml"
        threads: 2
        resources:
            mem_mb=4000,
            runtime=120,
        params:
            code=code_of("expert-training"),
            model=lambda wildcards: as_json(part_of_experts("models", wildcards.model)),
            about=lambda wildcards: about_text(wildcards.model),
            seed=STUDY["seed"],
        message:
            "training {wildcards.model}, a small mixture of experts, from scratch"
        shell:
            "whencount stage --cards 0 expert-training --name {wildcards.model}"
            " --model {params.model:q} --text {input.text} --about {params.about:q}"
            " --seed {params.seed} --threads {threads} --out {output} 2>&1 | tee {log}"

    rule expert_calibration:
        input:
            text=text_of(EXPERT_STUDY["calibration"]["text"]),
            folder=lambda wildcards: trained_folder(wildcards.model),
        output:
            directory(f"{EXPERT_RESULTS}/calibration.{{model}}.{{active}}"),
        log:
            f"{RESULTS}/logs/expert_calibration/{{model}}.{{active}}.log",
        benchmark:
            f"{RESULTS}/benchmarks/expert_calibration/{{model}}.{{active}}.tsv"
        wildcard_constraints:
            model="[a-z0-9][a-z0-9_-]*",
            active="[0-9]+",
        conda:
            "../../envs/transformers.yaml"
        threads: 2
        resources:
            mem_mb=24000,
            runtime=720,
            gpu=lambda wildcards: expert_cards(wildcards.model),
        params:
            code=code_of("expert-calibration"),
            model=lambda wildcards: as_json(part_of_experts("models", wildcards.model)),
            calibration=as_json(EXPERT_STUDY["calibration"]),
            study=compared_rules(),
            seed=STUDY["seed"],
            folder=lambda wildcards, input: option("folder", input.folder),
        message:
            "measuring the routing of {wildcards.model}, {wildcards.active} experts per token"
        shell:
            "whencount stage --cards {resources.gpu} expert-calibration --name {wildcards.model}"
            " --model {params.model:q} {params.folder} --text {input.text}"
            " --calibration {params.calibration:q} --study {params.study:q}"
            " --active {wildcards.active} --seed {params.seed} --threads {threads}"
            " --out {output} 2>&1 | tee {log}"

    rule expert_evaluation:
        input:
            frozen=FROZEN,
            calibration=f"{EXPERT_RESULTS}/calibration.{{model}}.{{active}}",
            folder=lambda wildcards: trained_folder(wildcards.model),
            text=lambda wildcards: evaluated_text(wildcards.evaluation),
        output:
            **{
                kind: f"{EXPERT_RESULTS}/{kind}/{{model}}.{{evaluation}}.{{active}}.parquet"
                for kind in EXPERT_KINDS
            },
        log:
            f"{RESULTS}/logs/expert_evaluation/{{model}}.{{evaluation}}.{{active}}.log",
        benchmark:
            f"{RESULTS}/benchmarks/expert_evaluation/{{model}}.{{evaluation}}.{{active}}.tsv"
        wildcard_constraints:
            model="[a-z0-9][a-z0-9_-]*",
            evaluation="[a-z0-9][a-z0-9_-]*",
            active="[0-9]+",
        conda:
            "../../envs/transformers.yaml"
        threads: 1
        resources:
            mem_mb=24000,
            runtime=1440,
            gpu=lambda wildcards: expert_cards(wildcards.model),
        params:
            code=code_of("expert-evaluation"),
            model=lambda wildcards: as_json(part_of_experts("models", wildcards.model)),
            evaluation=lambda wildcards: as_json(
                part_of_experts("evaluations", wildcards.evaluation)
            ),
            study=compared_rules(),
            seed=STUDY["seed"],
            folder=lambda wildcards, input: option("folder", input.folder),
            text=lambda wildcards, input: option("text", input.text),
            frozen=lambda wildcards, input: option("frozen", input.frozen),
        message:
            "evaluating {wildcards.model} on {wildcards.evaluation} under every rule, {wildcards.active} experts per token"
        shell:
            "whencount stage --cards {resources.gpu} expert-evaluation --name {wildcards.model}"
            " --model {params.model:q} {params.folder} --evaluation-name {wildcards.evaluation}"
            " --evaluation {params.evaluation:q} {params.text} --calibration {input.calibration}"
            " --study {params.study:q} --active {wildcards.active} {params.frozen}"
            " --seed {params.seed} --threads {threads} --rows {output.rows}"
            " --per-document {output.per_document} --baselines {output.baselines}"
            " 2>&1 | tee {log}"

    rule expert_collection:
        input:
            **{
                kind: [
                    f"{EXPERT_RESULTS}/{kind}/{model}.{evaluation}.{active}.parquet"
                    for model, evaluation, active in EXPERT_JOBS
                ]
                for kind in EXPERT_KINDS
            },
            calibrations=[
                f"{EXPERT_RESULTS}/calibration.{model}.{active}"
                for model in EXPERT_MODELS
                for active in ACTIVE
            ],
            trained=[trained_folder(model) for model in TRAINED],
        output:
            **{
                kind: f"{EXPERT_RESULTS}/{kind}.parquet"
                for kind in (*EXPERT_KINDS, "routing", "training")
            },
        log:
            f"{RESULTS}/logs/expert_collection.log",
        benchmark:
            f"{RESULTS}/benchmarks/expert_collection.tsv"
        conda:
            "../../envs/transformers.yaml"
        threads: 1
        resources:
            mem_mb=4000,
            runtime=20,
        params:
            code=code_of("expert-collect"),
            jobs=as_json(EXPERT_JOBS),
            trained=as_json(TRAINED),
            parts=lambda wildcards, output: Path(output.rows).parent.as_posix(),
        message:
            "gathering the tables of expert routing"
        shell:
            "whencount stage expert-collect --jobs {params.jobs:q} --trained {params.trained:q}"
            " --parts {params.parts} --rows {output.rows} --per-document {output.per_document}"
            " --baselines {output.baselines} --routing {output.routing}"
            " --training {output.training} 2>&1 | tee {log}"
