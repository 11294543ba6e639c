from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from whencount import cluster
from whencount.cli.cluster import cluster as command
from whencount.errors import InputError

ROOT = Path(__file__).parents[1]
ANSWERS = {
    "sinfo": "printf 'one|idle|gpu:4\\none|idle|gpu:4\\ntwo|mix|gpu:rtx:2(S:0)\\n'"
    "; echo 'three|down*|gpu:4'",
    "squeue": "true",
    "sbatch": "echo 'a job was handed in' >&2; exit 1",
    "scancel": "true",
    "scontrol": "printf 'ClusterName = toy\\nMinJobAge = 300 sec\\n"
    "AccountingStorageType = accounting_storage/none\\n'",
}


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of commands that answer as Slurm's do, first on the path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, script in ANSWERS.items():
        say(folder, name, script)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def say(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_what_slurm_has_is_counted_once_and_without_the_nodes_that_are_down(slurm: Path) -> None:
    assert cluster.check() == cluster.Cluster(
        name="toy", nodes=2, gpus=6, remembers=300, accounting=False
    )


def test_a_missing_command_is_named_before_anything_runs(
    slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (slurm / "sbatch").unlink()
    monkeypatch.setenv("PATH", str(slurm))
    with pytest.raises(InputError, match=r"^sbatch not found: Slurm is not here"):
        cluster.check()


def test_a_scheduler_that_does_not_answer_is_told_with_its_words(
    slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(slurm, "sinfo", "echo 'error: Unable to contact slurm controller' >&2; exit 1")
    with pytest.raises(InputError, match="`sinfo` said: error: Unable to contact slurm contr"):
        cluster.check()
    monkeypatch.setattr(cluster, "SECONDS_TO_ANSWER", 0.2)
    say(slurm, "sinfo", "exec sleep 30")
    with pytest.raises(InputError, match="`sinfo` said nothing for"):
        cluster.check()


def test_a_cluster_without_a_node_is_told(slurm: Path) -> None:
    say(slurm, "sinfo", "echo 'one|drain|gpu:4'")
    with pytest.raises(InputError, match="every node is down or drained"):
        cluster.check()


def test_a_short_memory_without_accounts_is_refused_since_the_run_would_hang(slurm: Path) -> None:
    say(slurm, "scontrol", "printf 'MinJobAge = 30 sec\\nAccountingStorageType = (none)\\n'")
    with pytest.raises(InputError, match="to 10 or less"):
        cluster.check()
    assert cluster.check(seconds_between_checks=10).remembers == 30
    say(
        slurm,
        "scontrol",
        "printf 'MinJobAge = 30 sec\\nAccountingStorageType = accounting_storage/slurmdbd\\n'",
    )
    assert cluster.check().accounting


def test_jobs_of_an_earlier_run_in_the_same_folder_stop_a_new_one(
    slurm: Path, tmp_path: Path
) -> None:
    say(
        slurm,
        "squeue",
        f"printf '7|whencount_1-2|{tmp_path}\\n8|whencount_1-2|/elsewhere\\n9|mine|{tmp_path}\\n'",
    )
    assert cluster.earlier_jobs(tmp_path) == ["7"]
    with pytest.raises(InputError, match=r"1 jobs of an earlier run.*`scancel 7`"):
        cluster.check(tmp_path)
    assert cluster.check(tmp_path / "other").nodes == 2


def test_the_command_says_what_it_found_and_fails_with_the_reason(slurm: Path) -> None:
    answer = CliRunner().invoke(command)
    assert answer.exit_code == 0
    assert "cluster toy, 2 nodes take jobs, 6 GPUs" in answer.output


def test_a_study_stops_before_its_first_job_where_slurm_does_not_answer(
    slurm: Path, tmp_path: Path
) -> None:
    say(slurm, "sinfo", "echo 'error: Unable to contact slurm controller' >&2; exit 1")
    done = subprocess.run(
        [
            *[sys.executable, "-m", "snakemake", "-d", str(tmp_path), "--profile", "cluster"],
            *["results/test/fit/passages", "--configfile", "configs/test.yaml"],
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=120,
    )
    assert done.returncode == 1
    assert "Slurm does not answer: `sinfo` said: error: Unable to contact" in done.stderr
    assert "a job was handed in" not in done.stderr
    assert not (tmp_path / "results").exists()


def profile(name: str) -> dict[str, object]:
    loaded = yaml.safe_load((ROOT / name / "config.yaml").read_text())
    assert isinstance(loaded, dict)
    return loaded


def rules() -> dict[str, str]:
    """The text of every rule of the workflow, by name."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / "workflow" / "rules").glob("*.smk")):
        parts = re.split(r"^ *rule (\w+):$", path.read_text(), flags=re.MULTILINE)
        found.update(zip(parts[1::2], parts[2::2], strict=True))
    return found


def test_the_memory_and_time_of_every_rule_grow_with_the_attempt() -> None:
    resources = profile("cluster")["set-resources"]
    assert isinstance(resources, dict)
    fixed = {name for name, text in rules().items() if "mem_mb=" in text or "runtime=" in text}
    assert fixed - set(resources) == set(), "rules that need an entry in cluster/config.yaml"
    assert set(resources) - set(rules()) == set(), "entries without a rule"
    defaults = profile("cluster")["default-resources"]
    assert isinstance(defaults, dict)
    for name, entry in [*resources.items(), ("default", defaults)]:
        for key in ("mem_mb", "runtime"):
            small, large = (
                eval(entry[key], {"attempt": attempt, "input": ""}) for attempt in (1, 3)
            )
            assert large == 3 * small > 0, f"{name}: {key}"


def test_no_rule_repeats_inside_one_slurm_job() -> None:
    assert not [name for name, text in rules().items() if re.search(r"^ *retries:", text, re.M)]


def test_account_and_partition_have_one_place() -> None:
    text = (ROOT / "cluster" / "config.yaml").read_text()
    assert text.count("slurm_account") == text.count("slurm_partition") == 1
    for path in [ROOT / "Snakefile", *(ROOT / "workflow" / "rules").glob("*.smk")]:
        assert "slurm" not in path.read_text().replace('"slurm"', "").replace("on Slurm", "")


def test_the_check_between_jobs_is_the_one_that_the_profile_states() -> None:
    import inspect

    stated = profile("cluster")["slurm-init-seconds-before-status-checks"]
    assert inspect.signature(cluster.check).parameters["seconds_between_checks"].default == stated
    assert profile("cluster")["slurm-jobname-prefix"] == cluster.JOB_NAMES


@pytest.mark.parametrize("name", ["cluster", "workstation"])
def test_a_profile_plans_a_study_on_a_machine_without_slurm(name: str) -> None:
    done = subprocess.run(
        [
            *[sys.executable, "-m", "snakemake", "--profile", name],
            *["--configfile", "configs/test.yaml", "--dry-run", "--quiet", "all"],
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
