"""The command line: thin, one file per command, each loaded only when it is called."""

from __future__ import annotations

import click

from whencount import __version__
from whencount.cli.lazy import LazyGroup
from whencount.interruption import heed_polite_kills, leave_if_asked

# Name: where the command is, and its line in `whencount --help`. Loading a command to list it would
# make help slow.
COMMANDS = {
    "score": ("whencount.cli.score:score", "Rank documents under each of the configurations."),
    "decompose": (
        "whencount.cli.decompose:decompose",
        "Tell what IDF, saturation and length normalisation each do for a collection.",
    ),
    "advise": (
        "whencount.cli.advise:advise",
        "Advise, without labels, whether an index should use collection statistics.",
    ),
    "compare": (
        "whencount.cli.compare:compare",
        "Compare runs pairwise: bootstrap, Holm, win/tie/loss per query.",
    ),
    "words": ("whencount.cli.words:words", "Make vectors of word counts of texts, to try out."),
    "bake": (
        "whencount.cli.bake:bake",
        "Fold a correction into weights, so that any engine ranks by it.",
    ),
    "analyse": (
        "whencount.cli.analyse:analyse",
        "Tell what a table of rows says: shares, hypotheses, predictors.",
    ),
    "register": (
        "whencount.cli.register:register",
        "Record a file of hypotheses before the rows it speaks of exist.",
    ),
    "freeze": (
        "whencount.cli.freeze:freeze",
        "Freeze predictors before the outcomes that they are asked for.",
    ),
    "collections": (
        "whencount.cli.collections:collections",
        "List the published and the built-in collections, and fetch one.",
    ),
    "verify": ("whencount.cli.verify:verify", "Check results against their manifests."),
    "explain": ("whencount.cli.explain:explain", "Tell what a page or a table was made from."),
    "export": ("whencount.cli.export:export", "Pack a study in one archive for publishing."),
    "import": ("whencount.cli.import_:import_", "Unpack a published study, with care."),
    "grid": ("whencount.cli.grid:grid", "Print rows, jobs and estimated cost of a study."),
    "cluster": ("whencount.cli.cluster:cluster", "Ask Slurm whether it would take a study."),
    "stage": ("whencount.cli.stages:stage", "Run one step of the study's workflow."),
}


@click.group(
    cls=LazyGroup,
    commands_at=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="whencount")
def main() -> None:
    """When do IDF, saturation and length normalisation help a sparse, non-negative scorer?

    Bring vectors as JSON lines, {"id": "d1", "vector": {"feature": weight, ...}}, and see.
    """
    heed_polite_kills()


@main.result_callback()
def _end(*_: object, **__: object) -> None:
    leave_if_asked()
