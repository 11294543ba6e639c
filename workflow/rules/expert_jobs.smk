# What the rules of expert routing need: jobs, paths and options.

EXPERT_STUDY = STUDY.get("experts", {})
EXPERT_RESULTS = f"{RESULTS}/experts"
EXPERT_KINDS = ("rows", "per_document", "baselines")
EXPERT_TABLES = [
    f"{EXPERT_RESULTS}/{kind}.parquet"
    for kind in (*EXPERT_KINDS, "routing", "training")
]
EXPERT_MODELS = EXPERT_STUDY.get("models", {})
EVALUATIONS = EXPERT_STUDY.get("evaluations", {})
ACTIVE = EXPERT_STUDY.get("active", [])
TRAINED = [
    name for name, model in EXPERT_MODELS.items() if model["source"] == "trained"
]
EXPERT_JOBS = [
    (model, evaluation, active)
    for model in EXPERT_MODELS
    for evaluation in EVALUATIONS
    for active in ACTIVE
]


def experts_targets(wildcards):
    """Everything of the study of experts; a configuration without one is told so."""
    if not EXPERT_STUDY:
        raise WorkflowError(
            "the configuration has no study of experts; add the key experts (docs/experts.md)"
        )
    return [*EXPERT_TABLES, page_of("experts")]


def part_of_experts(key, name):
    """The options of a text, a model or an evaluation; one that the study lacks is refused."""
    if name not in EXPERT_STUDY[key]:
        raise WorkflowError(
            f"experts.{key} has no {name!r}; it has {', '.join(EXPERT_STUDY[key])}"
        )
    return EXPERT_STUDY[key][name]


def compared_rules():
    """What is the same in every job of the study of experts."""
    keys = ("variants", "comparisons", "preserved_share", "k1", "b")
    return as_json({key: EXPERT_STUDY[key] for key in keys})


def text_of(name):
    """The table of a text."""
    return f"{EXPERT_RESULTS}/text.{name}.parquet"


def trained_folder(model):
    """The folder of a model that the study trains; nothing for any other."""
    return f"{EXPERT_RESULTS}/model.{model}" if model in TRAINED else []


def evaluated_text(evaluation):
    """The table of the text that an evaluation reads, where it reads one."""
    options = part_of_experts("evaluations", evaluation)
    return text_of(options["text"]) if options["source"] == "text" else []


def expert_cards(model):
    """A model too large for one card is spread over several; a trained one needs none."""
    return 0 if model in TRAINED else EXPERT_MODELS[model].get("cards", 1)


def about_text(model):
    """One phrase about what a model was trained on."""
    text = EXPERT_STUDY["texts"][EXPERT_MODELS[model]["text"]]
    if text["source"] == "packages":
        return "documentation of the packages " + ", ".join(text["packages"])
    return text.get("path") or text["source"]
