# Bases: encode the fit passages once, then fit every basis on their states.


rule fit_states:
    input:
        passages=f"{RESULTS}/fit/passages",
    output:
        directory(f"{RESULTS}/fit/states"),
    log:
        f"{RESULTS}/logs/fit_states.log",
    benchmark:
        f"{RESULTS}/benchmarks/fit_states.tsv"
    conda:
        "../../envs/encode.yaml"
    threads: 2
    resources:
        mem_mb=16000,
        runtime=240,
        gpu=1,
    params:
        code=code_of("fit-states"),
        encoder=as_json(STUDY["encoder"]),
        options=as_json(
            {key: value for key, value in STUDY["fit"].items() if key != "text"}
        ),
        seed=STUDY["seed"],
    message:
        "encoding the fit passages"
    shell:
        "whencount stage --cards {resources.gpu} fit-states --encoder {params.encoder:q}"
        " --passages {input.passages}"
        " --options {params.options:q} --seed {params.seed} --threads {threads}"
        " --out {output} 2>&1 | tee {log}"


rule fit_basis:
    input:
        states=f"{RESULTS}/fit/states",
    output:
        directory(f"{RESULTS}/bases/{{basis}}_{{granularity}}.seed{{seed}}"),
    log:
        f"{RESULTS}/logs/fit_basis/{{basis}}_{{granularity}}.seed{{seed}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/fit_basis/{{basis}}_{{granularity}}.seed{{seed}}.tsv"
    conda:
        "../../envs/encode.yaml"
    threads: 2
    resources:
        mem_mb=16000,
        runtime=240,
        gpu=lambda wildcards: int(wildcards.basis == "sae"),
    params:
        code=code_of("fit-basis"),
        options=lambda wildcards: as_json(STUDY["bases"][wildcards.basis]),
    message:
        "fitting {wildcards.basis} on {wildcards.granularity} states, seed {wildcards.seed}"
    shell:
        "whencount stage --cards {resources.gpu} fit-basis --states {input.states}"
        " --representation {wildcards.basis}_{wildcards.granularity}"
        " --options {params.options:q} --seed {wildcards.seed} --threads {threads}"
        " --out {output} 2>&1 | tee {log}"


rule share_dictionary:
    input:
        states=f"{RESULTS}/fit/states",
        dictionary=f"{RESULTS}/bases/{{basis}}_token.seed{{seed}}",
    output:
        directory(f"{RESULTS}/bases/{{basis}}_shared_{{granularity}}.seed{{seed}}"),
    log:
        f"{RESULTS}/logs/share_dictionary/{{basis}}_{{granularity}}.seed{{seed}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/share_dictionary/{{basis}}_{{granularity}}.seed{{seed}}.tsv"
    conda:
        "../../envs/encode.yaml"
    threads: 2
    resources:
        mem_mb=16000,
        runtime=60,
    params:
        code=code_of("fit-basis"),
        options=lambda wildcards: as_json(STUDY["bases"][wildcards.basis]),
    message:
        "scaling the token dictionary of {wildcards.basis} for {wildcards.granularity} vectors"
    shell:
        "whencount stage --cards 0 fit-basis --states {input.states}"
        " --representation {wildcards.basis}_shared_{wildcards.granularity}"
        " --dictionary {input.dictionary} --options {params.options:q}"
        " --seed {wildcards.seed} --threads {threads} --out {output} 2>&1 | tee {log}"
