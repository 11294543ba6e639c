"""Options that several commands share, and how they become library values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from whencount.decomposition import Scorer
    from whencount.scoring import Configuration
    from whencount.vector_files import VectorFiles

Command = TypeVar("Command", bound=Callable[..., Any])
FILE = click.Path(path_type=Path)
COUNT = click.IntRange(min=1, max=2**31 - 1)

_VECTORS = 'JSON lines {"id": ..., "vector": {"feature": weight}}; .gz too.'
_OPTIONS = [
    click.option("--documents", type=FILE, required=True, metavar="FILE", help=_VECTORS),
    click.option("--queries", type=FILE, required=True, metavar="FILE", help="The same layout."),
    click.option(
        "--out",
        type=FILE,
        required=True,
        metavar="DIR",
        help="Folder to write to; other files in it stay as they are.",
    ),
    click.option(
        "--k1", type=float, default=1.2, show_default=True, help="Saturation, at least 0."
    ),
    click.option(
        "--b", type=float, default=0.75, show_default=True, help="Length, between 0 and 1."
    ),
    click.option(
        "--query-budget",
        type=COUNT,
        metavar="N",
        help="Keep the N largest weights of each query.  [default: all]",
    ),
    click.option(
        "--document-budget",
        type=COUNT,
        metavar="N",
        help="Keep the N largest weights of each document.  [default: all]",
    ),
    click.option(
        "--depth",
        type=COUNT,
        default=100,
        show_default=True,
        metavar="N",
        help="Documents per query, at most.",
    ),
    click.option(
        "--configurations",
        default="all",
        show_default=True,
        metavar="LIST",
        help="Which runs: bits for IDF, saturation and length, as in 000,011,111.",
    ),
    click.option("--threads", type=COUNT, metavar="N", help="Of the search.  [default: all]"),
]


def scoring_options(command: Command) -> Command:
    """Add the options of every command that scores vectors."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def format_option(help_text: str, **settings: Any) -> Callable[[Command], Command]:
    """Add `--format trec|parquet` as the parameter `file_format`."""
    return click.option(
        "--format",
        "file_format",
        type=click.Choice(["trec", "parquet"]),
        help=help_text,
        **settings,
    )


def parse_configurations(text: str) -> tuple[Configuration, ...]:
    """Read `all` or a list such as `000,111`; one named twice counts once.

    Raises:
        InputError: a name is not three bits.
    """
    from whencount.scoring import CONFIGURATIONS, Configuration

    if text.strip() == "all":
        return CONFIGURATIONS
    return tuple(dict.fromkeys(Configuration.parse(bits.strip()) for bits in text.split(",")))


def scorer_from(options: dict[str, Any]) -> Scorer:
    """The scorer that the shared options describe.

    Raises:
        InputError: k1 or b is out of range.
    """
    from whencount.decomposition import Scorer
    from whencount.scoring import Parameters

    return Scorer(
        Parameters(options["k1"], options["b"]),
        options["query_budget"],
        options["document_budget"],
        options["depth"],
        options["threads"],
    )


def read_inputs(options: dict[str, Any]) -> VectorFiles:
    """Read `--documents` and `--queries`, and say how many queries have no feature.

    Raises:
        InputError: as `whencount.vector_files.read_vectors`.
    """
    from whencount.vector_files import read_vectors

    files = read_vectors(options["documents"], options["queries"])
    without = int((files.queries.row_sizes() == 0).sum())
    if without:
        warn(f"{without} of {len(files.queries)} queries have no feature; their rankings are empty")
    return files


def warn(sentence: str) -> None:
    """Print a warning to standard error."""
    click.echo(f"Warning: {sentence}", err=True)
