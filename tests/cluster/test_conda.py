"""The conda environments, without conda: a stand-in over rattler and a channel of what is here.

What it proves: a real solver accepts every file and finds one consistent set; Snakemake's
`--sdm conda` makes the environment, runs its post-deploy script, activates it and runs the rule in
it; the rule needs nothing that its environment does not name. What it does not: that conda-forge
has these versions, or that its builds compute the same as the wheels that the lock installs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from channel import stand_in

import whencount

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = sorted(path.stem for path in (ROOT / "envs").glob("*.yaml"))

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(
        find_spec("rattler") is None,
        reason="py-rattler is not installed; requirements.lock has it",
    ),
]


@pytest.fixture(scope="module")
def conda(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a `conda` command."""
    folder = tmp_path_factory.mktemp("conda")
    build = [sys.executable, str(Path(__file__).with_name("channel.py")), str(folder / "channel")]
    subprocess.run(build, check=True)
    return stand_in(folder / "base", folder / "channel")


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_solver_accepts_the_environment_and_its_pins_are_what_is_installed(
    conda: Path, tmp_path: Path, name: str
) -> None:
    prefix = tmp_path / name
    command = [str(conda / "conda"), "env", "create", "--prefix", str(prefix)]
    subprocess.run([*command, "--file", str(ROOT / "envs" / f"{name}.yaml")], check=True)
    code = (
        "import json, sys; from importlib.metadata import distributions;"
        "print(json.dumps([sys.prefix, sorted(d.metadata['Name'] for d in distributions())]))"
    )
    done = subprocess.run(
        [prefix / "bin" / "python", "-c", code], check=True, capture_output=True, text=True
    )
    where, names = json.loads(done.stdout)
    assert where == str(prefix)
    assert "numpy" in names
    assert "pytest" not in names


def test_a_rule_runs_in_its_environment_with_this_clone_of_the_package(
    conda: Path, tmp_path: Path
) -> None:
    done = subprocess.run(
        [
            *[sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "--cores", "1"],
            *["-d", str(tmp_path), "results/cluster/fit/passages", "--sdm", "conda"],
            *["--configfile", str(ROOT / "tests" / "cluster" / "small.yaml")],
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PATH": f"{conda}{os.pathsep}{os.environ['PATH']}"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (prefix,) = (path for path in (tmp_path / ".snakemake" / "conda").iterdir() if path.is_dir())
    link = next((prefix / "lib").glob("python*/site-packages/whencount.pth"))
    assert link.read_text() == f"{ROOT / 'src'}\n"
    about = "from importlib.metadata import version; print(version('whencount'))"
    told = subprocess.run(
        [prefix / "bin" / "python", "-c", about], check=True, capture_output=True, text=True
    )
    assert told.stdout.strip() == whencount.__version__
    assert "Activating conda environment" in done.stderr
    assert (tmp_path / "results" / "cluster" / "fit" / "passages").is_dir()
