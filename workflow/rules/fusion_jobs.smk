# What the rules of the study of two arms need: its jobs, tables and the queries of its nulls.

from whencount.fusion_config import check_fusion

FUSION = STUDY.get("fusion") or {}
FUSION_RESULTS = f"{RESULTS}/fusion"
FUSION_TABLES = (
    "rules",
    "decisions",
    "claims",
    "per_query",
    "events",
    "reversals",
    "nulls",
    "drift",
    "checks",
)
FUSION_ON = [
    name for name in COLLECTIONS if FUSION and name in FUSION.get("collections", [name])
]
FUSION_JOBS = [(arm, on) for arm in FUSION.get("dense_arms", {}) for on in FUSION_ON]


def fusion_targets(wildcards):
    """Everything of the study of two arms; a configuration without one is told so."""
    try:
        check_fusion(STUDY)
    except InputError as error:
        raise WorkflowError(str(error)) from None
    if not FUSION_JOBS:
        raise WorkflowError(
            "the configuration has no study of two arms, or no collection to run it on; add the key"
            " fusion to a study of retrieval (docs/fusion.md)"
        )
    return [
        *[f"{FUSION_RESULTS}/{name}.parquet" for name in FUSION_TABLES],
        *[f"{FUSION_RESULTS}/jobs/{arm}.{on}" for arm, on in FUSION_JOBS],
        page_of("fusion"),
    ]


def foreign_of(collection):
    """Other collections on other corpora, whose queries nothing here answers."""
    return [name for name in FUSION_ON if CORPUS[name] != CORPUS[collection]]
