"""A long step that is killed goes on from its last part, and writes the same bytes."""

from __future__ import annotations

import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from broken_study import ROOT, Study, environment

from whencount.files import sweep

SEED = 20261130
RANDOM_KILLS = 2
STEPS = {
    "encode": "results/vectors/limit/documents.0of1",
    "fit-states": "results/fit/states",
    "fit-basis": "results/bases/sae_token.seed0",
    "score": "results/rows/sae_token.limit.seed0.parquet",
}
# The second output of scoring.
FURTHER = {"score": ["results/per_query/sae_token.limit.seed0.parquet"]}


@pytest.fixture(scope="module")
def study(reference: Study, tmp_path_factory: pytest.TempPathFactory) -> Study:
    return reference.copy(tmp_path_factory.mktemp("stages") / "study")


class Step:
    """One step as the workflow calls it, run alone."""

    def __init__(self, study: Study, target: str, further: list[str]) -> None:
        self.folder = study.folder
        self.outputs = [study.folder / target, *(study.folder / one for one in further)]
        shown = study.run_text(f"snakemake --cores 1 -n -p --force {target}").output
        # Steps before it are shown too, where an earlier test has made their outputs again.
        writes = rf"--(?:out|rows) {re.escape(target)} "
        line = re.search(rf"whencount (stage .*{writes}.*) 2>&1", shown.replace("2>&1", " 2>&1"))
        assert line is not None, shown
        self.arguments = shlex.split(line[1])

    def start(self, when: str, number: int) -> subprocess.Popen[str]:
        command = [sys.executable, str(ROOT / "tests" / "faults" / "dying.py"), when, str(number)]
        return subprocess.Popen(
            [*command, *self.arguments],
            cwd=self.folder,
            env=environment(),
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )

    def run(self, when: str = "never", number: int = 0) -> tuple[int, str]:
        process = self.start(when, number)
        _, said = process.communicate(timeout=600)
        return process.returncode, said

    def contents(self) -> dict[str, bytes]:
        files = [
            path
            for output in self.outputs
            for path in ([output] if output.is_file() else sorted(output.rglob("*")))
        ]
        # Snakemake's own note of the time of a folder is no output of the step.
        kept = [path for path in files if path.is_file() and not path.name.startswith(".")]
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in kept}

    def hidden(self) -> list[str]:
        """Temporaries and parts beside the outputs."""
        return sorted(
            path.name
            for output in self.outputs
            for path in output.parent.glob(".*")
            if re.search(r"\.(partial|[a-z0-9_]{8})$", path.name)
        )

    def swept(self) -> None:
        """What the next run of the workflow does after a kill."""
        names = [output.name for output in self.outputs]
        for output, name in zip(self.outputs, names, strict=True):
            manifest, checked = f"{name}.manifest.json", f".{name}.checked.json"
            sweep([output, output.with_name(manifest), output.with_name(checked)])


@pytest.fixture(params=STEPS)
def step(request: pytest.FixtureRequest, study: Study) -> Step:
    return Step(study, STEPS[request.param], FURTHER.get(request.param, []))


def test_a_step_killed_at_every_rename_and_at_random_moments_ends_with_the_same_bytes(
    step: Step, note: list[str]
) -> None:
    status, said = step.run()
    assert status == 0, said
    began = time.monotonic()
    status, said = step.run()
    seconds = time.monotonic() - began
    assert status == 0, said
    undisturbed = step.contents()
    found = re.search(r"renames: (\d+)", said)
    assert found is not None
    renames = int(found[1])
    assert renames >= 3

    # Killed after one rename, then after two of the rest, and so on to the end.
    runs, resumed = 0, 0
    while (ended := step.run("after", runs + 1))[0] == -signal.SIGKILL:
        runs += 1
        resumed += "going on with" in ended[1]
        assert runs <= renames
    status, said = ended
    assert status == 0, said
    assert step.contents() == undisturbed
    assert resumed >= 1

    # Killed right before and right after a rename, each time from the start.
    draw = random.Random(f"{SEED} {step.outputs[0].name}")
    numbers = sorted({draw.randint(1, renames), renames})
    for number in numbers:
        for when in ("before", "after"):
            forget(step)
            assert step.run(when, number)[0] == -signal.SIGKILL
            status, said = step.run()
            assert status == 0, said
            assert step.contents() == undisturbed

    # Killed at any moment.
    killed = 0
    for number in range(RANDOM_KILLS):
        forget(step)
        process = step.start("never", 0)
        time.sleep(seconds * (number + draw.random()) / RANDOM_KILLS)
        process.kill()
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
        status, said = step.run()
        assert status == 0, said
        assert step.contents() == undisturbed
    left = len(step.hidden())
    step.swept()
    assert step.hidden() == []
    note.append(
        f"step {step.arguments[1] if step.arguments[1][0] != '-' else step.arguments[3]}:"
        f" {renames} renames; killed {runs} times in a row, {2 * len(numbers)} times around a"
        f" rename, {killed} times at random; {left} leftovers swept"
    )


def forget(step: Step) -> None:
    """Let the next run begin from nothing."""
    for output in step.outputs:
        shutil.rmtree(output.parent / f".{output.name}.partial", ignore_errors=True)


def test_leftovers_of_kills_do_not_add_up(study: Study, tmp_path: Path) -> None:
    step = Step(study, STEPS["score"], FURTHER["score"])
    counts = []
    for _ in range(3):
        assert step.run("before", 4)[0] == -signal.SIGKILL
        time.sleep(11)
        counts.append(len(step.hidden()))
    assert counts[2] <= counts[0]
