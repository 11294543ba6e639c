"""A group of commands that loads one when it is called, and tells bad input in one sentence."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click

from whencount.errors import InputError


class Fault(click.ClickException):
    """Bad input: printed as `Error: sentence`, exit status 2."""

    exit_code = 2


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called.

    Args:
        commands_at: name of each command to where it is (`module:attribute`) and its line in the
            help, so that help loads none.
    """

    def __init__(
        self, *args: Any, commands_at: Mapping[str, tuple[str, str]] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.commands_at = dict(commands_at or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands_at)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands_at:
            return None
        module, attribute = self.commands_at[cmd_name][0].split(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self.commands_at.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except InputError as error:
            raise Fault(str(error)) from error
