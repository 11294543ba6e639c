"""The undisturbed run that every broken one is compared with, and a summary of what was broken."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from broken_study import Done, Study

_LINES: list[str] = []


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Done]:
    """The reference and how it went."""
    import os

    if "REF" in os.environ:
        study = object.__new__(Study)
        study.folder = Path(os.environ["REF"])
        return study, Done(0, "", 100)
    study = Study(tmp_path_factory.mktemp("reference") / "study")
    done = study.run()
    assert done.status == 0, done.output
    return study, done


@pytest.fixture(scope="session")
def reference(undisturbed: tuple[Study, Done]) -> Study:
    """The study after one run that nothing disturbed."""
    return undisturbed[0]


@pytest.fixture
def note() -> Iterator[list[str]]:
    """Lines for the summary at the end."""
    lines: list[str] = []
    yield lines
    _LINES.extend(lines)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _LINES:
        terminalreporter.section("what was broken")
        for line in _LINES:
            terminalreporter.line(line)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # They take an hour, so they run only where they are asked for.
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.faults)
            if "faults" not in config.option.markexpr:
                item.add_marker(pytest.mark.skip(reason="by name only: make test-faults"))
