"""`whencount grid`: what a configuration stands for and will take, before anyone starts it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whencount.cli.options import FILE
from whencount.errors import InputError

if TYPE_CHECKING:
    from whencount.estimates import Estimate
    from whencount.sizes import Size

_SCHEMA = Path("workflow") / "schemas" / "config.schema.yaml"
_NOT_COUNTED = (
    "Not counted: downloads (`whencount collections` tells their size), reading text, fitting other"
    " bases, references, statistics and pages."
)


@click.command(
    epilog="""\b
Examples:
  whencount grid
  whencount grid configs/full.yaml
  whencount grid my.yaml --gpu-tokens-per-second 60000 --json"""
)
@click.argument("config", type=FILE, default=Path("config.yaml"), metavar="[CONFIG]")
@click.option(
    "--gpu-tokens-per-second",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    help="How fast the encoder reads on your GPU, in place of the assumption.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def grid(config: Path, gpu_tokens_per_second: float | None, as_json: bool) -> None:
    """Print the rows, jobs and estimated cost of a configuration (by default config.yaml).

    Nothing is run, downloaded or written. Estimates are good for the choice of machines, within a
    factor of two or three; the rates they rest on are printed below them.
    """
    if gpu_tokens_per_second is not None and not math.isfinite(gpu_tokens_per_second):
        raise InputError(
            f"--gpu-tokens-per-second is {gpu_tokens_per_second}; give a number above 0"
        )
    from whencount.config import load
    from whencount.estimates import estimate
    from whencount.rates import RATES
    from whencount.sizes import collection_sizes

    workflow = _workflow()
    study = load(config, workflow / "schemas" / _SCHEMA.name)
    if not study["families"]:
        raise InputError(
            f"{config} has no rows of retrieval to count; `snakemake --dry-run study --configfile"
            f" {config}` lists the jobs of its other settings"
        )
    families, union, reported = _rows(study)
    jobs = _jobs(study, workflow)
    sizes = collection_sizes(study)
    found = estimate(study, sizes, gpu_tokens_per_second)
    if as_json:
        about = {
            "study": study["study"],
            "rows": {"families": families, "union": union, "reported_collections": reported},
            "jobs": jobs,
            "collections": {name: asdict(sizes[name]) for name in study["collections"]},
            "estimate": asdict(found),
            "gpu_tokens_per_second": gpu_tokens_per_second,
            "rates": {name: asdict(rate) for name, rate in RATES.items()},
        }
        click.echo(json.dumps(about, indent=1, ensure_ascii=False))
        return
    click.echo(f"{config}: the study {study['study']}\n")
    _print_rows(families, union, reported)
    _print_jobs(jobs)
    _print_collections({name: sizes[name] for name in study["collections"]})
    _print_estimate(found, cpu_only=study["encoder"].get("device") == "cpu")
    _print_rates(gpu_tokens_per_second)


def _workflow() -> Path:
    """The folder `workflow` of the working directory, else of the repository of this package."""
    places = [Path(), Path(__file__).parents[3]]
    for place in places:
        if (place / _SCHEMA).is_file():
            return place / "workflow"
    raise InputError(
        f"{_SCHEMA} is not here; start this command in the repository, where Snakefile stands"
    )


def _rows(study: Mapping[str, Any]) -> tuple[dict[str, int], int, int]:
    """Rows per family, in their union, and of it on the collections that statistics report."""
    from whencount.grid import expand

    families = dict.fromkeys(study["families"], 0)
    union = reported = 0
    on = study["statistics"].get("collections", list(study["collections"]))
    for job, cells in expand(study).items():
        union += len(cells)
        reported += len(cells) * (job.collection in on)
        for members in cells.values():
            for family in members:
                families[family] += 1
    return families, union, reported


def _jobs(study: Mapping[str, Any], workflow: Path) -> dict[str, dict[str, int]]:
    """Jobs per kind of work and rule; the rules of analysis and report have one each."""
    from whencount.grid import expand, rule_jobs

    text = "".join(
        (workflow / "rules" / f"{name}.smk").read_text(encoding="utf-8")
        for name in ("analysis", "report")
        if (workflow / "rules" / f"{name}.smk").is_file()
    )
    names = ["collect", *re.findall(r"^ *rule (\w+):", text, re.MULTILINE)]
    collections = len({job.collection for job in expand(study)})
    # Without rows there is nothing to explore, and `study` makes no site.
    site = {"site": {"moved": collections, "site": 1}} if collections else {}
    return rule_jobs(study) | site | {"analysis": dict.fromkeys(names, 1)}


def _print_rows(families: Mapping[str, int], union: int, reported: int) -> None:
    lines = [[name, f"{number:,}"] for name, number in families.items()]
    more = "" if reported == union else f"{reported:,} on the collections that statistics report"
    lines.append(["all, each once", f"{union:,}", more])
    _print_table("rows", lines, right={1})


def _print_jobs(jobs: Mapping[str, Mapping[str, int]]) -> None:
    lines = [
        [
            kind,
            f"{sum(rules.values()):,}",
            ", ".join(
                rule if number == 1 else f"{number} {rule}" for rule, number in rules.items()
            ),
        ]
        for kind, rules in jobs.items()
    ]
    _print_table("jobs", lines, right={1})


def _print_collections(sizes: Mapping[str, Size]) -> None:
    def shown(number: float | None) -> str:
        return "unknown" if number is None else f"{number:,.0f}"

    lines = [["", "documents", "tokens each", "queries", "tokens each", "size"]]
    lines += [
        [
            name,
            *map(shown, (size.documents, size.document_tokens, size.queries, size.query_tokens)),
            size.origin,
        ]
        for name, size in sizes.items()
    ]
    _print_table("collections", lines, right={1, 2, 3, 4})


def _print_estimate(found: Estimate, cpu_only: bool) -> None:
    from whencount.collections.fetching import size_in_words

    def hours(gpu: float, cpu: float) -> str:
        if cpu_only:
            return f"{_hours(cpu)} CPU-hours"
        return f"{_hours(gpu)} GPU-hours, or {_hours(cpu)} CPU-hours without a GPU"

    lines = [
        ["documents", f"{found.documents:,}, each corpus once"],
        ["queries", f"{found.queries:,}"],
        ["tokens to encode", f"{found.tokens + found.external_tokens:,.0f}"],
        ["encoding", hours(found.encoding_gpu_hours, found.encoding_cpu_hours)],
    ]
    if found.sae_cpu_hours:
        lines.append(["training SAEs", hours(found.sae_gpu_hours, found.sae_cpu_hours)])
    lines += [
        ["scoring", f"{_hours(found.scoring_cpu_hours)} CPU-hours"],
        ["disk: vectors", size_in_words(round(found.vector_bytes))],
        ["disk: dense states", size_in_words(round(found.state_bytes))],
        ["disk: tables per query", size_in_words(round(found.per_query_bytes))],
        ["disk: runs", size_in_words(round(found.run_bytes))],
    ]
    _print_table("estimates", lines)
    if found.unknown:
        click.echo(
            f"  Without {', '.join(found.unknown)}: nothing here tells how large"
            f" {'it is' if len(found.unknown) == 1 else 'they are'}.\n"
        )


def _print_rates(gpu_tokens_per_second: float | None) -> None:
    from whencount.rates import RATES

    lines = []
    for name, rate in RATES.items():
        value, source = rate.value, rate.source
        if name == "gpu_tokens":
            source += "; --gpu-tokens-per-second replaces it"
            if gpu_tokens_per_second is not None:
                value, source = gpu_tokens_per_second, "given, for the encoder of this study"
        lines.append((_rate(value, rate.unit), f"{rate.what} ({source})"))
    formatter = click.HelpFormatter(width=100)
    with formatter.section("rates behind the estimates"):
        formatter.write_dl(lines, col_max=44)
    click.echo(f"{formatter.getvalue()}\n{click.wrap_text(_NOT_COUNTED, width=100)}")


def _rate(value: float, unit: str) -> str:
    """`112 CPU-microseconds per state` for 0.000112 CPU-seconds."""
    if unit.startswith("CPU-seconds"):
        for prefix, size in (("nano", 1e-9), ("micro", 1e-6)):
            if value < 999 * size:
                return f"{value / size:.4g} {unit.replace('-', f'-{prefix}', 1)}"
    return f"{value:,.10g} {unit}"


def _print_table(title: str, lines: Sequence[Sequence[str]], right: Collection[int] = ()) -> None:
    columns = max(map(len, lines))
    widths = [max(len(line[at]) for line in lines if at < len(line)) for at in range(columns)]
    click.echo(title)
    for line in lines:
        cells = [
            cell.rjust(widths[at]) if at in right else cell.ljust(widths[at])
            for at, cell in enumerate(line)
        ]
        click.echo(f"  {'  '.join(cells)}".rstrip())
    click.echo()


def _hours(hours: float) -> str:
    """Two digits that matter: `0.18`, `6.8`, `690`."""
    if hours >= 100:
        return f"{float(f'{hours:.2g}'):,.0f}"
    return "under 0.01" if hours < 0.01 else f"{hours:.2g}"
