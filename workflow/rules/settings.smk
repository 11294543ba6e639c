# What the rules of the settings beside retrieval need: their jobs, tables and pages.

import shlex

PAGE_STUDY = STUDY.get("pages", {})
PAGE_RESULTS = f"{RESULTS}/pages"
PAGE_KINDS = ("rows", "per_example", "baselines", "page_statistics", "selected")
# Tasks whose data is absent: no job, a line in a table, a word when the study runs.
PAGES_WITHOUT = []
if PAGE_STUDY:
    from whencount import ruler

    PAGES_WITHOUT = ruler.unavailable(
        PAGE_STUDY["tasks"], PAGE_STUDY["haystack"], PAGE_STUDY["questions"]
    )
PAGE_JOBS = [
    (model, task, context)
    for model in PAGE_STUDY.get("models", {})
    for task in PAGE_STUDY["tasks"]
    for context in PAGE_STUDY["contexts"]
    if task not in [one.task for one in PAGES_WITHOUT]
]
PAGE_NAMES = [f"{model}.{task}.{context}" for model, task, context in PAGE_JOBS]


def pages_targets(wildcards):
    """Everything of the study of pages; a configuration without one is told so."""
    if not PAGE_STUDY:
        raise WorkflowError(
            "the configuration has no study of pages; add the key pages (docs/pages.md)"
        )
    if not PAGE_JOBS:
        told = [f"{one.task}: {one.reason}; {one.remedy}" for one in PAGES_WITHOUT]
        raise WorkflowError("pages: every task lacks its data\n" + "\n".join(told))
    return [
        *[f"{PAGE_RESULTS}/{kind}.parquet" for kind in (*PAGE_KINDS, "unavailable")],
        # By name, so that a lost one is made again although what was made from it is there.
        *[
            f"{PAGE_RESULTS}/{kind}/{name}.parquet"
            for kind in PAGE_KINDS
            for name in PAGE_NAMES
        ],
        page_of("pages"),
    ]


# A study of other settings alone has no table and no page of retrieval.
if not JOBS:
    TABLES, PAGES = [], []
FIRST_PAGE = (
    f"{REPORTS}/{'index' if JOBS else 'pages' if PAGE_STUDY else 'experts'}.html"
)


def alone(wildcards):
    """What `study` and `report` make beyond retrieval: the settings, where there is only them."""
    if JOBS:
        return []
    return [
        *(pages_targets(wildcards) if PAGE_STUDY else []),
        *(experts_targets(wildcards) if STUDY.get("experts") else []),
    ]


def pages_not_run():
    """A word on tasks whose data is absent, for the message of a rule."""
    told = [
        f"; NOT RUN: {one.task}, {one.reason} ({one.remedy})" for one in PAGES_WITHOUT
    ]
    # A brace in a path would be taken for a wildcard.
    return "".join(told).replace("{", "{{").replace("}", "}}")


def collection_of_haystack():
    """The prepared collection that prose comes from, where the study has it."""
    name = PAGE_STUDY["haystack"].get("name")
    return f"{RESULTS}/collections/{name}" if name in STUDY["collections"] else []


def haystack_of(task):
    """The table of prose, for a task that needs it."""
    wanted = "prose" in ruler.TASKS[task].needs
    return f"{PAGE_RESULTS}/haystack.parquet" if wanted else []


def questions_of(task):
    """The file of questions, for a task that needs one."""
    wanted = "questions" in ruler.TASKS[task].needs
    return PAGE_STUDY["questions"][task]["path"] if wanted else []


def page_model(name):
    """The options of a model; a job of one that the study lacks is refused by name."""
    if name not in PAGE_STUDY["models"]:
        raise WorkflowError(
            f"pages.models has no {name!r}; it has {', '.join(PAGE_STUDY['models'])}"
        )
    return as_json(PAGE_STUDY["models"][name])


def page_options():
    """What is the same in every job of the study of pages."""
    lists = ("models", "tasks", "contexts", "haystack", "questions")
    return as_json(
        {key: value for key, value in PAGE_STUDY.items() if key not in lists}
    )


def option(name, value):
    """`--name value`, or nothing where there is no such input."""
    return f"--{name} {shlex.quote(str(value))}" if value else ""


def page_of(setting):
    """The page of a setting, for the target that makes its tables."""
    return f"{REPORTS}/{setting}.html"


def setting_parameters(setting):
    """What the page tells of a study; not what is of one machine alone."""
    models = {
        name: {
            key: value
            for key, value in model.items()
            if key not in ("device", "precision", "path")
        }
        for name, model in STUDY[setting]["models"].items()
    }
    return as_json(
        {
            "study": STUDY["study"],
            "setting": setting,
            "settings": {**STUDY[setting], "models": models},
        }
    )
