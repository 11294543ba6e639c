"""Archives of a study: what goes in, the same bytes every time, and what is refused on reading.

The hostile archives are written here by `tarfile`, a writer that is not ours.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
import yaml
from click.testing import CliRunner
from provenance_study import SECRET, stage, write_study

from whencount.cli import main
from whencount.errors import InputError
from whencount.provenance import archive, manifest_path
from whencount.provenance.archive import read_archive, write_archive
from whencount.provenance.explanation import explain, lines_of_origin
from whencount.provenance.publishing import Export, export_study
from whencount.provenance.verification import verify
from whencount.tables import read_table, write_table

RESULTS, REPORTS = Path("results"), Path("reports")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("study")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        write_study(root)
    return root


@pytest.fixture
def study(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "study"
    shutil.copytree(template, root)
    monkeypatch.chdir(root)
    return root


def exported(**options: Any) -> Export:
    return export_study(
        RESULTS, REPORTS, Path("s.tar.zst"), configuration=Path("config.yaml"), **options
    )


def unpacked(path: Path) -> dict[str, bytes]:
    """The members of an archive, read by the standard library."""
    with pa.OSFile(str(path)) as file, pa.CompressedInputStream(file, "zstd") as stream:
        content = io.BytesIO(stream.read())
    with tarfile.open(fileobj=content) as tar:
        return {info.name: tar.extractfile(info).read() for info in tar}  # type: ignore[union-attr]


def test_an_archive_holds_tables_pages_and_all_manifests_and_no_text(study: Path) -> None:
    done = exported()
    members = unpacked(Path("s.tar.zst"))
    artefacts = {name for name in members if not name.endswith(".manifest.json")}
    assert artefacts == {
        "contents.json",
        "ir_metadata.yaml",
        "config.yaml",
        "reports/retrieval.html",
        "results/figures/retrieval/quality.svg",
        "results/references/dense.tiny.parquet",
        "results/rows.parquet",
        "results/rows/pca_token.tiny.seed0.parquet",
        "results/rows/sae_token.tiny.seed0.parquet",
        "results/per_query/pca_token.tiny.seed0.parquet",
        "results/per_query/sae_token.tiny.seed0.parquet",
        "workflow/notebooks/retrieval.ipynb",
    }
    assert len([name for name in members if name.endswith(".manifest.json")]) == 15
    for name, content in members.items():
        assert SECRET.encode() not in content, name
    assert {one["path"]: one["reason"] for one in done.left_out} == {
        "results/collections/tiny": "holds the text of a corpus",
        "results/fit/passages": "holds the text of a corpus",
        "results/fit/states": "large; export it with --with-vectors",
        "results/bases/pca_token.seed0": "large; export it with --with-vectors",
        "results/bases/sae_token.seed0": "large; export it with --with-vectors",
        "results/vectors/tiny/documents.0of1": "large; export it with --with-vectors",
        "results/vectors/tiny/queries": "large; export it with --with-vectors",
    }


def test_vectors_go_in_where_asked_for_and_texts_never(study: Path) -> None:
    exported(with_vectors=True)
    members = unpacked(Path("s.tar.zst"))
    assert "results/vectors/tiny/queries/sae_token.seed0/values.npy" in members
    assert "results/bases/sae_token.seed0/manifest.json" in members
    assert not any("documents.parquet" in name for name in members)


def test_a_table_with_a_column_of_text_stays_out(study: Path) -> None:
    with stage("collect", [RESULTS / "quotes.parquet"], []):
        write_table(pd.DataFrame({"Text": [SECRET]}), RESULTS / "quotes.parquet")
    done = exported()
    assert "results/quotes.parquet" not in unpacked(Path("s.tar.zst"))
    reasons = {one["path"]: one["reason"] for one in done.left_out}
    assert reasons["results/quotes.parquet"] == "has a column of text (Text)"


def test_the_same_study_gives_the_same_bytes_wherever_it_stands(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = exported()
    shutil.copytree(study, tmp_path / "other")
    monkeypatch.chdir(tmp_path / "other")
    Path("s.tar.zst").unlink()
    assert exported().sha256 == first.sha256
    written = Path("s.tar.zst").read_bytes()
    assert hashlib.sha256(written).hexdigest() == first.sha256
    assert Path("s.tar.zst.sha256").read_text() == f"{first.sha256}  s.tar.zst\n"


def test_a_study_that_does_not_verify_is_not_published(study: Path) -> None:
    (RESULTS / "rows.parquet").write_bytes(b"x")
    with pytest.raises(InputError, match=r"nothing was exported: results/rows\.parquet: size"):
        exported()
    assert not Path("s.tar.zst").exists()


def test_an_imported_study_verifies_and_explains_its_numbers(study: Path, tmp_path: Path) -> None:
    exported()
    out = tmp_path / "in"
    read_archive(Path("s.tar.zst"), out)
    result = verify([out / "results", out / "reports"])
    assert result.findings == []
    assert result.notes == [
        "7 artefacts were left out of the archive; only their manifests are here"
    ]
    assert verify([out]).findings == []
    table = read_table(out / "results" / "rows.parquet")
    assert table.equals(read_table(RESULTS / "rows.parquet"))
    text = "\n".join(lines_of_origin(explain(out / "reports" / "retrieval.html")))
    assert "corpus.jsonl  from outside" in text
    assert "(left out of the archive)" in text
    # A table that is lost after all is told, although others were left out.
    (out / "results" / "rows.parquet").unlink()
    assert [one.problem for one in verify([out]).findings] == ["file missing"]


def test_where_a_person_keeps_a_collection_is_not_published(study: Path, tmp_path: Path) -> None:
    home = tmp_path / "home-of-alice"
    home.mkdir()
    (home / "corpus.jsonl").write_text("{}")
    with stage("collect", [RESULTS / "more.parquet"], [], sources=[home / "corpus.jsonl"]):
        write_table(pd.DataFrame({"job": ["x"]}), RESULTS / "more.parquet")
    exported()
    members = unpacked(Path("s.tar.zst"))
    record = json.loads(members["results/more.parquet.manifest.json"])
    assert [one["path"] for one in record["sources"]] == ["corpus.jsonl"]
    assert not any(b"alice" in content for content in members.values())
    read_archive(Path("s.tar.zst"), tmp_path / "in")


def test_paths_of_a_machine_that_a_person_wrote_are_told(study: Path, tmp_path: Path) -> None:
    out = CliRunner().invoke(main, ["export", "--out", "s.tar.zst"])
    assert "where things lie" not in out.output
    Path("config.yaml").write_text(
        "study: tiny\ncollections: {mine: {source: beir, path: /home/alice/mine, split: test}}\n"
        "folders: [data/here, ~/there]\n"
    )
    done = exported()
    assert done.places == ("collections.mine.path: /home/alice/mine", "folders: ~/there")
    out = CliRunner().invoke(main, ["export", "--out", "s.tar.zst"])
    assert out.exit_code == 0, out.output
    assert "where things lie on this machine" in out.stderr
    assert "/home/alice/mine; folders: ~/there" in out.stderr


def test_hypotheses_and_their_registrations_are_published(study: Path, tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere" / "other.yaml"
    for path in (Path("hypotheses/mine.yaml"), outside):
        path.parent.mkdir()
        path.write_text("hypotheses: {}\n")
    record = Path("hypotheses/mine.registration.json")
    record.write_text('{"sha256": "ab"}\n')
    text = f"study: tiny\nhypotheses: [hypotheses/mine.yaml, {outside}]\n"
    Path("config.yaml").write_text(text)
    exported()
    members = unpacked(Path("s.tar.zst"))
    assert {name for name in members if name.startswith("hypotheses/")} == {
        "hypotheses/mine.yaml",
        "hypotheses/mine.registration.json",
        "hypotheses/other.yaml",
    }
    assert members[str(record)] == record.read_bytes()
    read_archive(Path("s.tar.zst"), tmp_path / "in")
    assert (tmp_path / "in" / record).read_bytes() == record.read_bytes()
    outside.unlink()
    with pytest.raises(InputError, match=r"other\.yaml, hypotheses .* is not here"):
        exported()


def test_the_metadata_has_the_parts_of_ir_metadata(study: Path) -> None:
    exported()
    text = unpacked(Path("s.tar.zst"))["ir_metadata.yaml"].decode()
    assert text.startswith("# ir_metadata.start\n")
    assert text.endswith("# ir_metadata.end\n")
    record = yaml.safe_load(text)
    parts = ["platform", "research goal", "implementation", "method", "actor", "data"]
    assert [key for key in record if key in parts] == parts
    assert record["schema-version"] == 0.1
    assert record["tag"] == "whencount-tiny"
    assert record["platform"]["hardware"]["cpu"]["number of cores"] >= 1
    assert [one["name"] for one in record["data"]["test collection"]] == ["tiny"]
    assert set(record["implementation"]["source hashes"]) >= {"score", "report"}
    significance = record["research goal"]["evaluation"]["significance test"]
    assert significance[0]["correction method"] == "holm"


def member(name: str, content: bytes = b"x", **changes: Any) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in changes.items():
        setattr(info, key, value)
    return info, content


def listed(*members: tuple[str, bytes], **changes: Any) -> bytes:
    return json.dumps(
        {
            "format": "whencount-archive-1",
            "left_out": [],
            "members": [
                {"path": name, "size": len(one), "sha256": hashlib.sha256(one).hexdigest()}
                | changes
                for name, one in members
            ],
        }
    ).encode()


def forged(
    path: Path,
    members: Sequence[tuple[tarfile.TarInfo, bytes]],
    contents: bytes | None = None,
    form: int = tarfile.USTAR_FORMAT,
) -> Path:
    """An archive with any members; contents.json lists them as they are unless given."""
    if contents is None:
        contents = listed(*((info.name, content) for info, content in members))
    with pa.CompressedOutputStream(str(path), "zstd") as stream:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=form) as tar:
            for info, content in [member("contents.json", contents), *members]:
                tar.addfile(info, io.BytesIO(content))
        stream.write(buffer.getvalue())
    return path


def test_an_archive_of_another_writer_is_read(tmp_path: Path) -> None:
    path = forged(
        tmp_path / "a.tar.zst", [member("LICENSE", b"free"), member("a/b.svg", b"<svg/>")]
    )
    read_archive(path, tmp_path / "out")
    assert (tmp_path / "out" / "a" / "b.svg").read_bytes() == b"<svg/>"


NAMES = [
    "../evil.json",
    "/etc/evil.json",
    "a/../../evil.json",
    "a//evil.json",
    "./evil.json",
    ".hidden.json",
    "a/.git/evil.json",
    "a\\..\\evil.json",
    "C:evil.json",
    "evil.json\n",
    "a\x01b.json",
    "a/ /evil.json",
    "a./evil.json",
    "evil.py",
    "Snakefile",
    "evil.pkl",
    "evil",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_is_not_safe_is_refused(tmp_path: Path, name: str) -> None:
    path = forged(tmp_path / "a.tar.zst", [member("fine.json"), member(name)])
    refused(path, tmp_path, "not safe|no kind")
    with pytest.raises(InputError, match=r"not safe|no kind"):
        write_archive(tmp_path / "b.tar.zst", {name: b"x"}, [])


def refused(path: Path, tmp_path: Path, message: str, **options: Any) -> None:
    there = tmp_path / "deep"
    there.mkdir(exist_ok=True)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match=message):
        read_archive(path, there / "out", **options)
    assert sorted(tmp_path.rglob("*")) == before


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def other_first(path: Path) -> Path:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        info, content = member("a.json")
        tar.addfile(info, io.BytesIO(content))
    with pa.CompressedOutputStream(str(path), "zstd") as stream:
        stream.write(buffer.getvalue())
    return path


def cut(path: Path) -> Path:
    content = hashlib.shake_256(b"").digest(100_000)
    forged(path, [member("a.json", content)])
    return written(path, path.read_bytes()[:50_000])


LINK = {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd", "size": 0}
FORGERIES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "symbolic link": (
        lambda path: forged(path, [member("a.json", b"", **LINK)]),
        "link, folder, device",
    ),
    "hard link": (
        lambda path: forged(
            path, [member("a.json"), member("b.json", b"", type=tarfile.LNKTYPE, linkname="a.json")]
        ),
        "link, folder, device",
    ),
    "device": (
        lambda path: forged(path, [member("a.json", b"", type=tarfile.CHRTYPE)]),
        "link, folder, device",
    ),
    "pipe": (
        lambda path: forged(path, [member("a.json", b"", type=tarfile.FIFOTYPE)]),
        "link, folder, device",
    ),
    "folder": (
        lambda path: forged(path, [member("a.json", b"", type=tarfile.DIRTYPE)]),
        "link, folder, device",
    ),
    "long name of GNU": (
        lambda path: forged(path, [member(f"{'a' * 200}.json")], form=tarfile.GNU_FORMAT),
        "link, folder, device",
    ),
    "twice the same": (
        lambda path: forged(path, [member("a.json"), member("a.json")]),
        "two members are called 'a.json'",
    ),
    "twice the same on some disks": (
        lambda path: forged(path, [member("a.json"), member("A.json")]),
        "two members are called 'A.json'",
    ),
    "a second list": (
        lambda path: forged(path, [member("contents.json")]),
        r"two members are called 'contents\.json'",
    ),
    "a member below a file": (
        lambda path: forged(path, [member("a.json"), member("a.json/b.json")]),
        "lies in a member that is a file",
    ),
    "more than is listed": (
        lambda path: forged(path, [member("a.json"), member("b.json")], listed(("a.json", b"x"))),
        "holds more than its contents.json says",
    ),
    "less than is listed": (
        lambda path: forged(path, [member("a.json")], listed(("a.json", b"x"), ("b.json", b"x"))),
        "header cannot be read",
    ),
    "not what is listed": (
        lambda path: forged(path, [member("b.json")], listed(("a.json", b"x"))),
        r"expected member 'a\.json' of 1 bytes by its contents\.json, found 'b\.json'",
    ),
    "larger than listed": (
        lambda path: forged(path, [member("a.json", bytes(10**6))], listed(("a.json", b"x"))),
        "found 'a.json' of 1000000 bytes",
    ),
    "of another checksum": (
        lambda path: forged(path, [member("a.json", b"y")], listed(("a.json", b"x"))),
        "has SHA-256 .* where its contents.json says",
    ),
    "of negative size": (
        lambda path: forged(path, [member("a.json")], listed(("a.json", b"x"), size=-1)),
        "would unpack to",
    ),
    "no list": (
        lambda path: forged(path, [], b"{}"),
        r"contents\.json cannot be used",
    ),
    "a list of another format": (
        lambda path: forged(path, [], b'{"format": "x", "members": []}'),
        "its format is 'x'",
    ),
    "another first member": (other_first, "does not begin with contents.json"),
    "no archive": (lambda path: written(path, b"not compressed"), "no zstd archive or is damaged"),
    "empty": (lambda path: written(path, b""), "ends early|no zstd archive"),
    "cut short": (cut, "ends early|is damaged"),
}


@pytest.mark.parametrize("kind", FORGERIES)
def test_a_forged_archive_is_refused_and_leaves_nothing(tmp_path: Path, kind: str) -> None:
    make, message = FORGERIES[kind]
    refused(make(tmp_path / "a.tar.zst"), tmp_path, message)


def test_an_archive_that_would_unpack_to_too_much_is_refused_before_it_is_read(
    tmp_path: Path,
) -> None:
    bomb = bytes(50_000_000)
    path = forged(tmp_path / "a.tar.zst", [member("a.json", bomb)])
    assert path.stat().st_size < 100_000
    refused(path, tmp_path, "would unpack to 50,000,000 bytes, more than 1,000,000", limit=10**6)
    # A list that promises little does not help: the header does not agree with it.
    path = forged(tmp_path / "b.tar.zst", [member("a.json", bomb)], listed(("a.json", b"x")))
    refused(path, tmp_path, "found 'a.json' of 50000000 bytes", limit=10**6)


def test_a_list_that_is_a_bomb_itself_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "_MOST_CONTENTS", 1000)
    path = forged(tmp_path / "a.tar.zst", [], b" " * 1001)
    refused(path, tmp_path, "does not begin with contents.json")


def test_checksums_given_and_beside_the_archive_are_held_to(study: Path, tmp_path: Path) -> None:
    done = exported()
    path = Path("s.tar.zst")
    with pytest.raises(InputError, match="has SHA-256"):
        read_archive(path, tmp_path / "out", sha256="0" * 64)
    read_archive(path, tmp_path / "out", sha256=done.sha256.upper())
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match="it is damaged or another file"):
        read_archive(path, tmp_path / "other")
    Path("s.tar.zst.sha256").unlink()
    with pytest.raises(InputError):
        read_archive(path, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_an_archive_that_disagrees_with_its_manifests_is_refused(
    study: Path, tmp_path: Path
) -> None:
    manifest = manifest_path(RESULTS / "rows.parquet").read_bytes()
    files = {"results/rows.parquet": b"short", "results/rows.parquet.manifest.json": manifest}
    write_archive(tmp_path / "a.tar.zst", files, [])
    with pytest.raises(InputError, match="does not agree with its manifests"):
        read_archive(tmp_path / "a.tar.zst", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_nothing_that_stands_there_is_overwritten(study: Path, tmp_path: Path) -> None:
    exported()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="is there already"):
        read_archive(Path("s.tar.zst"), tmp_path / "out")
    assert (tmp_path / "out" / "mine.txt").read_text() == "mine"


def test_the_commands_export_and_import_go_there_and_back(study: Path, tmp_path: Path) -> None:
    runner = CliRunner()
    out = runner.invoke(main, ["export", "--out", "study.tar.zst"])
    assert out.exit_code == 0, out.output
    assert "left out: 7 artefacts" in out.stdout
    back = runner.invoke(main, ["import", "study.tar.zst", "--out", str(tmp_path / "in")])
    assert back.exit_code == 0, back.output
    again = runner.invoke(main, ["import", "study.tar.zst", "--out", str(tmp_path / "in")])
    assert again.exit_code == 2
    assert "is there already" in again.output
    assert runner.invoke(main, ["verify", str(tmp_path / "in")]).exit_code == 0
    none = runner.invoke(main, ["export", "--results", "data", "--out", "x.tar.zst"])
    assert none.exit_code == 2
