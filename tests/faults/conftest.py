"""The undisturbed run that every broken one is compared with, and a summary of what was broken."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from broken_study import Done, Study, assert_same

_LINES: list[str] = []


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Done]:
    """The reference, and how a second run with the same end went."""
    study = Study(tmp_path_factory.mktemp("reference") / "study")
    done = study.run()
    assert done.status == 0, done.output
    # Loops are compiled once per place of the package, which took a third of that run.
    again = Study(tmp_path_factory.mktemp("again") / "study")
    done = again.run()
    assert done.status == 0, done.output
    assert_same(again, study)
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
        spent = os.times()
        seconds = spent.user + spent.system + spent.children_user + spent.children_system
        terminalreporter.line(
            f"CPU time {seconds / 60:.0f} minutes, that of killed processes left out"
        )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # They take an hour, so they run only where they are asked for.
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.faults)
            if "faults" not in config.option.markexpr:
                item.add_marker(pytest.mark.skip(reason="by name only: make test-faults"))
