"""`whencount collections`: what it lists, what it fetches, and what it leaves alone."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from collection_files import Host, running_host, without_network

from whencount.cli import collections as command
from whencount.cli import main
from whencount.collections import open_collection
from whencount.collections.catalogue import BUILT_IN, PUBLISHED


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    without_network(monkeypatch)
    folder = tmp_path / "home"
    monkeypatch.setenv("IR_DATASETS_HOME", str(folder))
    return folder


@pytest.fixture
def host(home: Path) -> Iterator[Host]:
    with running_host() as running:
        yield running


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["collections", *arguments])


def rows_of(result: Result) -> dict[str, str]:
    """The lines of the table by name; of two of one name the first."""
    rows: dict[str, str] = {}
    for line in result.stdout.split("\n\n")[0].splitlines()[1:]:
        rows.setdefault(line.split()[0], line)
    return rows


def test_all_are_listed_and_nothing_is_made(home: Path) -> None:
    result = call()
    assert result.exit_code == 0
    rows = rows_of(result)
    assert set(rows) == {*PUBLISHED, *(one.name for one in BUILT_IN)}
    for part in ("171,332", "66,336", "73.9 MB", "no", "CORD-19"):
        assert part in rows["trec-covid"]
    assert f"Looked in {home}" in result.stdout
    assert not home.exists()


def test_what_is_here_is_told_by_its_files(home: Path) -> None:
    archive = home / "beir" / "scifact" / "source.zip"
    archive.parent.mkdir(parents=True)
    archive.write_bytes(b"")
    (home / "miracl/v1.0/hi/dev").mkdir(parents=True)
    (home / "miracl/v1.0/hi/dev/qrels.tsv").write_bytes(b"")
    (home / "msmarco-passage").mkdir()
    for name in PUBLISHED["msmarco-dev"].files[0].instead:
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    by_checksum = home / "downloads" / PUBLISHED["fiqa"].files[0].md5
    by_checksum.parent.mkdir()
    by_checksum.write_bytes(b"")
    result = call("--json")
    here = {one["name"]: one["here"] for one in json.loads(result.stdout)["published"]}
    assert {name for name, there in here.items() if there} == {"scifact", "msmarco-dev", "fiqa"}
    rows = rows_of(call())
    assert " partly " in rows["miracl-hi"]
    assert " partly " in rows["trec-dl-2019"]


def test_json_has_all_that_is_known(home: Path) -> None:
    record = json.loads(call("--json", "scifact", "limit").stdout)
    assert record["looked_in"] == str(home)
    scifact, limit = record["published"]
    assert scifact["name"] == "scifact"
    assert scifact["ir_datasets"] == "beir/scifact/test"
    assert scifact["files"] == [
        {
            "path": str(home / "beir/scifact/source.zip"),
            "url": PUBLISHED["scifact"].files[0].urls[0],
            "bytes": 2_816_079,
            "exact": True,
            "md5": "5f7d1de60b170fc8027bb7898e2efca1",
            "sha256": None,
            "here": False,
        }
    ]
    assert limit["documents"] == 50_000
    assert [one["documents"] for one in record["built_in"]] == [2_000]


def test_a_name_shows_addresses_and_places(home: Path) -> None:
    result = call("trec-dl-2019")
    for file in PUBLISHED["trec-dl-2019"].files:
        assert file.urls[0] in result.stdout
        assert f"belongs at {home / file.path}" in result.stdout


@pytest.mark.parametrize("arguments", [("scifat",), ("--fetch", "scifat")])
def test_an_unknown_name_suggests_the_nearest(home: Path, arguments: tuple[str, ...]) -> None:
    result = call(*arguments)
    assert result.exit_code == 2
    assert "no collection is called 'scifat'; did you mean 'scifact'?" in result.output


def test_a_collection_is_fetched_once(
    host: Host, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = b"an archive" * 1000
    file = replace(
        PUBLISHED["scifact"].files[0],
        urls=(host.serve("/scifact.zip", content),),
        bytes=len(content),
        md5=hashlib.md5(content).hexdigest(),
    )
    entry = replace(PUBLISHED["scifact"], files=(file,))
    monkeypatch.setattr(command, "PUBLISHED", {**PUBLISHED, "scifact": entry})
    for _ in range(2):
        result = call("--fetch", "scifact")
        assert result.exit_code == 0
        assert " yes " in rows_of(result)["scifact"]
    assert (home / "beir/scifact/source.zip").read_bytes() == content
    assert len(host.asked) == 1


def test_what_cannot_be_fetched_is_told_in_one_sentence(home: Path) -> None:
    result = call("--fetch", "miracl-te")
    assert result.exit_code == 2
    assert result.output.splitlines()[-1].startswith("Error: docs-0.jsonl.gz could not be")
    assert f"put it at {home}/miracl/v1.0/te/docs/docs-0.jsonl.gz" in result.output


def test_listing_imports_nothing_heavy(home: Path) -> None:
    code = (
        "import sys; from click.testing import CliRunner; from whencount.cli import main;"
        "result = CliRunner().invoke(main, ['collections']); assert result.exit_code == 0;"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    command_line = [sys.executable, "-c", code]
    loaded = subprocess.run(
        command_line, capture_output=True, text=True, check=True, env=dict(os.environ)
    ).stdout.split()
    assert not {"torch", "transformers", "ir_datasets", "pandas", "scipy", "faiss"} & {*loaded}


@pytest.mark.parametrize(
    "name",
    [
        "limit",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("wiki-sections", "api-docs")),
    ],
)
def test_the_built_in_collections_have_the_sizes_that_are_listed(name: str) -> None:
    """Exact with the packages that requirements.lock pins, about that with others."""
    known = next(one for one in BUILT_IN if one.name == name)
    collection = open_collection(name, {})
    sizes = (sum(1 for _ in collection.documents()), len(collection.queries), len(collection.qrels))
    wanted = (known.documents, known.queries, known.judgements)
    assert sizes == pytest.approx(wanted, rel=0.05)
    assert (collection.language, collection.licence) == (known.language, known.licence)


def test_a_download_that_several_share_is_said_to_be_one(home: Path) -> None:
    assert "msmarco-dev, trec-dl-2019 and trec-dl-2020 share their documents" in call().stdout
    assert "share their documents" not in call("scifact", "trec-dl-2019").stdout


def test_the_source_to_write_in_a_configuration_is_listed(home: Path) -> None:
    lines = call().stdout.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("limit ")] == [
        "published",
        "limit",
    ]
