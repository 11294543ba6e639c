"""A small real study in a folder of its own that can be run, killed, damaged and compared."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).parents[2]
CONFIG = Path(__file__).with_name("small.yaml")
# What a person has after cloning, as far as a study reads it.
CLONED = ("Snakefile", "Makefile", "workflow", "envs", "requirements.lock", "pyproject.toml")
LIMIT_SECONDS = 1800
_NOT_ARTEFACTS = ("logs", "benchmarks")
# What a whole study has too: hashes of inputs that were checked, the times of Snakemake's folders.
_HIDDEN = (".checked.json", ".snakemake_timestamp")


@dataclass(frozen=True)
class Done:
    """A command that ended: exit status, what it printed, seconds."""

    status: int
    output: str
    seconds: float


class Study:
    """A clone with the small configuration as its default one."""

    def __init__(self, folder: Path, *, results: Path | None = None) -> None:
        """Make the clone in `folder`; `results`, another disk say, is linked to where given."""
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        for name in CLONED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, folder / name, dirs_exist_ok=True)
            else:
                shutil.copy(ROOT / name, folder / name)
        shutil.copy(CONFIG, folder / "config.yaml")
        (folder / ".venv").mkdir(exist_ok=True)
        with suppress(FileExistsError):
            (folder / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
        # The environment stands already, so that `make` leaves it alone.
        (folder / ".venv" / ".ready").touch()
        if results is not None:
            (folder / "results").symlink_to(results)

    @property
    def results(self) -> Path:
        return self.folder / "results"

    def copy(self, folder: Path) -> Study:
        """The same study, with everything that stands in it, elsewhere; times are kept."""
        shutil.copytree(self.folder, folder, symlinks=True)
        return Study(folder)

    def start(self, *command: str, prefix: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        """Start a command (`make study` where none is given) in a process group of its own."""
        words = command or ("make", "study", "CORES=2")
        output = (self.folder / "output.log").open("a")
        with output:
            return subprocess.Popen(
                [*prefix, *words],
                cwd=self.folder,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )

    def run(self, *command: str, prefix: tuple[str, ...] = ()) -> Done:
        """Run a command to its end (`make study` where none is given)."""
        log = self.folder / "output.log"
        before = log.stat().st_size if log.exists() else 0
        began = time.monotonic()
        process = self.start(*command, prefix=prefix)
        try:
            status = process.wait(LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            kill_tree(process)
            raise
        seconds = time.monotonic() - began
        return Done(status, log.read_bytes()[before:].decode("utf-8", "replace"), seconds)

    def run_text(self, line: str) -> Done:
        """Run a line as a person types it, with the environment's commands found by name."""
        return self.run("bash", "-c", line)

    def verify(self) -> list[dict[str, Any]]:
        """What `whencount verify` finds, over results and pages as far as they exist."""
        there = [name for name in ("results", "reports") if (self.folder / name).is_dir()]
        if not there:
            return []
        done = subprocess.run(
            [Path(sys.executable).parent / "whencount", "verify", *there, "--json"],
            cwd=self.folder,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if "no artefact is there" in done.stderr:
            return []
        assert done.returncode in (0, 1), done.stderr
        findings: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
        return findings

    def contents(self) -> dict[str, str]:
        """SHA-256 of every file that stands under a final name, logs and times apart."""
        return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in self._files()}

    def manifests(self) -> dict[str, tuple[str, str, str]]:
        """Of every manifest what must repeat: content, configuration, code."""
        found = {}
        for root in (self.results, self.folder / "reports"):
            for path in root.rglob("*.manifest.json"):
                one = json.loads(path.read_bytes())
                kept = (one["digest"], one["configuration_hash"], one["source"])
                found[path.relative_to(root).as_posix()] = kept
        return found

    def leftovers(self) -> list[str]:
        """Hidden files and folders that a finished study does not have."""
        return sorted(
            path.relative_to(self.folder).as_posix()
            for root in (self.results, self.folder / "reports")
            for path in root.rglob(".*")
            if not path.name.endswith(_HIDDEN)
        )

    def _files(self) -> Iterator[tuple[str, Path]]:
        for root in (self.results, self.folder / "reports"):
            for path in sorted(root.rglob("*")):
                parts = path.relative_to(root).parts
                hidden = any(part.startswith(".") for part in parts)
                if not path.is_file() or hidden or parts[0] in _NOT_ARTEFACTS:
                    continue
                if not path.name.endswith(".manifest.json"):
                    yield f"{root.name}/{'/'.join(parts)}", path


def environment() -> dict[str, str]:
    """This process's, with the commands beside this Python first."""
    own = str(Path(sys.executable).parent)
    return os.environ | {"PATH": os.pathsep.join([own, os.environ.get("PATH", os.defpath)])}


def tree_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """A process and everything that it started."""
    try:
        top = psutil.Process(process.pid)
        return [top, *top.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def stages_in(processes: list[psutil.Process]) -> list[str]:
    """The steps that run among processes."""
    found = set()
    for one in processes:
        with suppress(psutil.Error):
            words = one.cmdline()
            if "stage" in words[:4] and any("whencount" in word for word in words[:3]):
                rest = words[words.index("stage") + 1 :]
                # The one option that stands before the name of the step has a number.
                found.add(next(word for word in rest if word[0].isalpha()))
    return sorted(found)


def kill_tree(process: subprocess.Popen[str]) -> None:
    """SIGKILL to a process and all that it started, as if the machine had died."""
    processes = tree_of(process)
    # Held first, so that none starts another between the look and the kill.
    for one in processes:
        with suppress(psutil.Error):
            one.suspend()
    for one in {*processes, *tree_of(process)}:
        with suppress(psutil.Error):
            one.kill()
    process.wait(60)
    psutil.wait_procs(processes, timeout=60)


def assert_same(study: Study, reference: Study) -> None:
    """A study ended exactly as the reference did, and nothing is left over."""
    expected, found = reference.contents(), study.contents()
    differing = {name for name in expected | found if expected.get(name) != found.get(name)}
    assert not differing, f"other bytes: {sorted(differing)}"
    recorded, now = reference.manifests(), study.manifests()
    differing = {name for name in recorded | now if recorded.get(name) != now.get(name)}
    assert not differing, f"other manifests: {sorted(differing)}"
    assert not study.leftovers(), f"left over: {study.leftovers()}"
    assert not (findings := study.verify()), f"whencount verify: {findings}"


def assert_nothing_half(study: Study, reference: Study) -> None:
    """Whatever has a final name is whole; folders have all of their files."""
    expected, found = reference.contents(), study.contents()
    for name, digest in found.items():
        assert digest == expected.get(name), name
    assert not [one for one in study.verify() if one["problem"] != "manifest missing"]
