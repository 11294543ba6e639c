"""Snakemake runs again what a change of the code concerns, and nothing else.

A workflow of three rules stands for the study: each has the hash of its stage as a parameter.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import whencount

pytestmark = pytest.mark.study

SNAKEFILE = """
from pathlib import Path
from whencount.provenance import stage_hash

ROOT = Path("package/whencount").absolute()

rule page:
    input: "shares.txt", "run.txt"
    output: "page.txt"
    params: code=stage_hash("report", root=ROOT)
    shell: "cat {input} > {output}"

rule shares:
    output: "shares.txt"
    params: code=stage_hash("shares", root=ROOT)
    shell: "echo shares > {output}"

rule dense:
    output: "run.txt"
    params: code=stage_hash("dense", root=ROOT)
    shell: "echo run > {output}"
"""


def snakemake(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "1", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def planned(folder: Path) -> set[str]:
    return set(re.findall(r"^rule (\w+):", snakemake(folder, "--dry-run"), re.MULTILINE))


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


def test_a_change_of_code_runs_again_what_uses_it_and_nothing_else(tmp_path: Path) -> None:
    package = tmp_path / "package" / "whencount"
    source = Path(whencount.__file__).parent
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    snakemake(tmp_path)
    for path in package.rglob("*.py"):
        append(path, "\n# A remark.\n")
    append(package / "collections" / "limit.py", "\nMORE = 1\n")
    append(package / "cli" / "__init__.py", "\nMORE = 1\n")
    assert planned(tmp_path) == set()
    append(package / "reports" / "rendering.py", "\nMORE = 1\n")
    assert planned(tmp_path) == {"page"}
    snakemake(tmp_path)
    append(package / "attribution.py", "\nMORE = 1\n")
    # The page is made again too, from the new table.
    assert planned(tmp_path) == {"shares", "page"}
