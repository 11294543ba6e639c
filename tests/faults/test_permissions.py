"""Places that cannot be written or read: one sentence names them, and a rerun ends as ever."""

from __future__ import annotations

import os
import shutil

import pytest
from broken_study import Done, Study, assert_same

# Root may do everything; without its capabilities the bits of a file hold for root too.
BOUND = ("setpriv", "--bounding-set=-all", "--inh-caps=-all") if os.geteuid() == 0 else ()


class Mine:
    """A study that is run by a person whom closed files and folders stop."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.folder = study.folder

    def run(self, *command: str) -> Done:
        return self.study.run(*(command or ("make", "study", "CORES=2")), prefix=BOUND)


@pytest.fixture(scope="module")
def mine(reference: Study, tmp_path_factory: pytest.TempPathFactory) -> Mine:
    mine = Mine(reference.copy(tmp_path_factory.mktemp("closed") / "study"))
    done = mine.run()
    assert done.status == 0, done.output
    assert_same(mine.study, reference)
    return mine


# What becomes read-only, what has to be made again. What nothing asks for is not made again, so
# what follows a lost step is lost too.
_ROWS = "results/rows/sae_token.limit.seed0.parquet"
_QUERIES = "results/vectors/limit/queries"
CLOSED = {
    "results/rows": [_ROWS],
    "results/vectors/limit": [_QUERIES, _ROWS],
    "results/bases": ["results/bases/sae_token.seed0", _QUERIES, _ROWS],
    "results": ["results/rows.parquet"],
    "reports": ["reports/retrieval.html"],
    "results/logs": ["results/shares.parquet"],
}


@pytest.mark.parametrize("closed", CLOSED)
def test_a_folder_that_cannot_be_written_is_named(
    mine: Mine, reference: Study, note: list[str], closed: str
) -> None:
    folder = mine.folder / closed
    for lost in (mine.folder / name for name in CLOSED[closed]):
        shutil.rmtree(lost) if lost.is_dir() else lost.unlink()
    folders = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    try:
        for one in folders:
            one.chmod(0o555)
        done = mine.run()
    finally:
        for one in folders:
            one.chmod(0o755)
    assert done.status != 0, done.output
    told = [
        line
        for line in done.output.splitlines()
        if any(
            word in line for word in ("cannot be written", "Permission denied", "Write-protected")
        )
    ]
    assert told, done.output
    rest = mine.run()
    assert rest.status == 0, rest.output
    assert_same(mine.study, reference)
    note.append(f"{closed} read-only: {told[0].strip()}")


UNREADABLE = {
    "results/collections/limit/documents.parquet": "results/references/bm25.limit.parquet",
    f"{_QUERIES}/sae_token.seed0/values.npy": _ROWS,
    _ROWS: "results/rows.parquet",
}


@pytest.mark.parametrize("closed", UNREADABLE)
def test_a_file_that_cannot_be_read_is_named(
    mine: Mine, reference: Study, note: list[str], closed: str
) -> None:
    path = mine.folder / closed
    (mine.folder / UNREADABLE[closed]).unlink()
    path.chmod(0)
    try:
        done = mine.run()
    finally:
        path.chmod(0o644)
    assert done.status != 0, done.output
    told = [
        line
        for line in done.output.splitlines()
        if "cannot be read" in line or "is not readable" in line
    ]
    assert told, done.output
    assert closed in told[0]
    assert "Traceback" not in done.output, done.output
    rest = mine.run()
    assert rest.status == 0, rest.output
    assert_same(mine.study, reference)
    note.append(f"{closed} unreadable: {told[0].strip()}")


def test_a_file_that_a_person_protected_is_left_alone_and_named(
    mine: Mine, reference: Study, note: list[str]
) -> None:
    path = mine.folder / "results/rows.parquet"
    kept = path.read_bytes()
    path.chmod(0o444)
    done = mine.run("bash", "-c", "snakemake --cores 2 --force results/rows.parquet")
    path.chmod(0o644)
    assert done.status != 0, done.output
    assert "Write-protected output files" in done.output
    assert "results/rows.parquet" in done.output
    assert path.read_bytes() == kept
    rest = mine.run()
    assert rest.status == 0, rest.output
    assert_same(mine.study, reference)
    note.append("results/rows.parquet read-only itself: left alone and named")


def test_a_study_that_is_closed_as_a_whole_is_told(
    reference: Study, mine: Mine, note: list[str]
) -> None:
    folders = [mine.folder, *(path for path in mine.folder.rglob("*") if path.is_dir())]
    (mine.folder / "results" / "rows.parquet").unlink()
    try:
        for one in folders:
            if not one.is_symlink():
                one.chmod(0o555)
        done = mine.run()
    finally:
        for one in folders:
            one.chmod(0o755)
    assert done.status != 0
    assert "Permission denied" in done.output or "cannot be written" in done.output, done.output
    rest = mine.run()
    assert rest.status == 0, rest.output
    assert_same(mine.study, reference)
    note.append("everything read-only: told, nothing changed")
