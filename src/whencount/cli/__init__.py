"""The command line: thin, one file per command, each loaded only when it is called."""

from __future__ import annotations

import importlib
import signal
import sys
from typing import Any

import click

from whencount import __version__
from whencount.errors import InputError

# Name: where the command is, and its line in `whencount --help`. Loading a command to list it would
# make help slow.
COMMANDS = {
    "score": ("whencount.cli.score:score", "Rank documents under each of the configurations."),
    "decompose": (
        "whencount.cli.decompose:decompose",
        "Tell what IDF, saturation and length normalisation each do for a collection.",
    ),
    "stage": ("whencount.cli.stage:stage", "Run one step of the study's workflow."),
}


class Fault(click.ClickException):
    """Bad input: printed as `Error: sentence`, exit status 2."""

    exit_code = 2


class LazyGroup(click.Group):
    """A group that imports a command when it is called, and tells bad input in one sentence."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name][0].split(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except InputError as error:
            raise Fault(str(error)) from error


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="whencount")
def main() -> None:
    """When do IDF, saturation and length normalisation help a sparse, non-negative scorer?

    Bring vectors as JSON lines, {"id": "d1", "vector": {"feature": weight, ...}}, and see.
    """
    # A polite kill unwinds like Ctrl-C, so that half-written files are taken away.
    signal.signal(signal.SIGTERM, _leave)


def _leave(number: int, _: object) -> None:
    sys.exit(128 + number)
