"""The YAML files of tasks of the standard harness, looked through before the harness reads them.

A task can bring code in three ways: a function named in YAML, a metric that is a script, and a
template that reaches into Python. The first two are refused here, in every file that a task
includes too; `safe_templates` takes the third away.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from whencount.errors import InputError

_PLAIN = "tag:yaml.org,2002:"


def refuse_code(folder: Path) -> None:
    """Refuse a folder of tasks whose files, or files that these include, bring code.

    Raises:
        InputError: there is no YAML file, one cannot be read, or one calls a Python function or
            names a metric that the harness does not have itself.
    """
    waiting = sorted([*folder.rglob("*.yaml"), *folder.rglob("*.yml")])
    if not waiting:
        raise InputError(f"{folder} has no YAML file of a task; check the path")
    seen: set[Path] = set()
    while waiting:
        file = waiting.pop().resolve()
        if file in seen:
            continue
        seen.add(file)
        content = _content(file)
        for metric in _metrics(content):
            if metric not in _known_metrics():
                raise InputError(
                    f"{file} asks for the metric {metric!r}, which the harness does not have"
                    " itself, and no code of a task is run; choose another"
                )
        included = content.get("include", []) if isinstance(content, dict) else []
        names = included if isinstance(included, list) else [included]
        waiting += [file.parent / str(name) for name in names]


def _content(file: Path) -> Any:
    """What a file holds, without tags of its own."""
    try:
        data = file.read_bytes()
        # By the tags that the reader understands: a tag can be spelt in many ways.
        for event in yaml.parse(data, Loader=yaml.SafeLoader):
            tag = getattr(event, "tag", None)
            if tag is not None and tag != "!" and not tag.startswith(_PLAIN):
                raise InputError(
                    f"{file} calls Python code ({tag}), and no code of a task is run; write the"
                    " task with templates alone"
                )
        return yaml.safe_load(data)
    except OSError as error:
        raise InputError(f"{file} cannot be read ({error.strerror}); check the path") from error
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{file} is not valid YAML ({reason}); correct it") from error


def _metrics(content: Any) -> Iterator[str]:
    """Every value of a key `metric`, however deep."""
    if isinstance(content, dict):
        for key, value in content.items():
            if key == "metric":
                yield str(value)
            else:
                yield from _metrics(value)
    elif isinstance(content, list):
        for value in content:
            yield from _metrics(value)


def _known_metrics() -> set[str]:
    import lm_eval.api.metrics  # noqa: F401
    from lm_eval.api.registry import metric_registry

    return set(metric_registry.keys())


@contextmanager
def safe_templates() -> Iterator[None]:
    """Let the harness render templates in the sandbox of Jinja within a `with` block."""
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    from lm_eval import utils

    harness: Any = utils
    plain = harness.env
    sandbox = ImmutableSandboxedEnvironment(
        loader=plain.loader,
        undefined=plain.undefined,
        keep_trailing_newline=plain.keep_trailing_newline,
    )
    sandbox.filters.update(plain.filters)
    harness.env = sandbox
    try:
        yield
    finally:
        harness.env = plain
