"""A changed byte or a cut file is named, and the command that is named mends it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from broken_study import Done, Study, assert_same

KINDS = {
    "collection": "results/collections/limit/documents.parquet",
    "passages": "results/fit/passages/documents.parquet",
    "states": "results/fit/states/tokens.npy",
    "basis": "results/bases/sae_token.seed0/basis.safetensors",
    "vectors": "results/vectors/limit/documents.0of1/sae_token.seed0/values.npy",
    "run": "results/references/bm25.limit.parquet",
    "rows of a job": "results/rows/sae_token.limit.seed0.parquet",
    "per-query table": "results/per_query/sae_token.limit.seed0.parquet",
    "table": "results/rows.parquet",
    "page": "reports/retrieval.html",
    "pages": "reports/collections/limit.html",
    "figures": "results/figures/retrieval/quality.svg",
    "manifest": "results/vectors/limit/queries.manifest.json",
}
# What a step makes from it.
READERS = {
    "collection": "results/references/bm25.limit.parquet",
    "passages": "results/fit/states",
    "states": "results/bases/sae_token.seed0",
    "basis": "results/vectors/limit/queries",
    "vectors": "results/rows/sae_token.limit.seed0.parquet",
    "run": "results/references/rrf.limit.parquet",
    "rows of a job": "results/rows.parquet",
    "per-query table": "results/significance.parquet",
    "table": "results/shares.parquet",
    "manifest": "results/references/dense.limit.parquet",
}


@pytest.fixture(scope="module")
def study(reference: Study, tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A copy that is damaged again and again, each time after it was whole."""
    study = reference.copy(tmp_path_factory.mktemp("damage") / "study")
    done = study.run()
    assert done.status == 0, done.output
    assert_same(study, reference)
    return study


def flip(path: Path) -> None:
    """Change one bit in the middle, and nothing that a listing shows."""
    before = path.stat()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def cut(path: Path) -> None:
    """Lose the last third."""
    os.truncate(path, path.stat().st_size * 2 // 3)


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_named_and_mended_by_the_named_command(
    reference: Study, study: Study, note: list[str], kind: str
) -> None:
    path = study.folder / KINDS[kind]
    whole = path.read_bytes()
    for damage in (flip, cut):
        damage(path)
        findings = study.verify()
        assert KINDS[kind] in {one["path"] for one in findings}, findings
        commands = sorted({one["command"] for one in findings})
        noticed = "verify"
        if kind in READERS:
            # A step that reads it refuses, and what that names is enough by itself.
            done = study.run_text(f"snakemake --cores 2 --force {READERS[kind]}")
            assert done.status != 0, done.output
            assert_named(done, KINDS[kind])
            noticed += " and by the step that reads it"
            commands = [named_command(done)]
        for command in commands:
            mended = study.run_text(command)
            assert mended.status == 0, mended.output
        assert kind == "manifest" or path.read_bytes() == whole
        note.append(f"{kind}, {damage.__name__}: named by {noticed}; {' '.join(commands)}")
    rest = study.run()
    assert rest.status == 0, rest.output
    assert_same(study, reference)


def assert_named(done: Done, name: str) -> None:
    assert name in done.output, done.output
    assert "make it again: snakemake --cores 2 --force" in done.output
    assert "Traceback" not in done.output, done.output


def named_command(done: Done) -> str:
    line = next(line for line in done.output.splitlines() if "make it again: " in line)
    return line.split("make it again: ")[1]
