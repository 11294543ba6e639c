# What the rules of the study of late interaction need: its jobs, tables and options.

LATE = STUDY.get("late_interaction") or {}
LATE_RESULTS = f"{RESULTS}/late_interaction"
LATE_ON = [
    name for name in COLLECTIONS if LATE and name in LATE.get("collections", [name])
]
# What the study of costs times: token vectors and codes, kept only where there is one.
LATE_INDEX = (
    {"index": directory(f"{LATE_RESULTS}/index/{{collection}}")}
    if STUDY.get("economics")
    else {}
)
LATE_FORMS = {
    "exact": "vectors.npy",
    "2bit": "packed2.npy",
    "1bit": "packed1.npy",
    "one_vector": "means.npy",
}
LATE_TABLES = {
    name: f"{LATE_RESULTS}/{name}.parquet"
    for name in ("rows", "per_query", "funnel", "codes")
}
LATE_SHOWN = {name: path for name, path in LATE_TABLES.items() if name != "per_query"}


def late_targets(wildcards):
    """Everything of the study; a configuration without one is told so."""
    if not LATE_ON:
        raise WorkflowError(
            "the configuration has no study of late interaction, or no collection to run it on;"
            " add the key late_interaction to a study of retrieval (docs/late-interaction.md)"
        )
    return [
        *LATE_TABLES.values(),
        *[f"{LATE_RESULTS}/jobs/{name}" for name in LATE_ON],
        page_of("late_interaction"),
    ]


def late_encoder():
    return LATE.get("encoder", STUDY["encoder"])


def late_options():
    keys = (
        "queries",
        "places",
        "augmented",
        "depth",
        "sample",
        "centroids",
        "funnel",
    )
    return as_json({key: LATE[key] for key in keys})


def late_settings():
    """What a page tells of the study; not what is of one machine alone."""
    alone = ("device", "precision", "path", "batch_tokens")
    told = {
        key: (
            {one: value[one] for one in value if one not in alone}
            if key == "encoder"
            else value
        )
        for key, value in LATE.items()
    }
    return as_json(
        {"study": STUDY["study"], "setting": "late_interaction", "settings": told}
    )
