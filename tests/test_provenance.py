"""Manifests, the check before use, verification, explanation."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from provenance_study import SECRET, rows_of, stage, write_study

from whencount.cli import main
from whencount.errors import InputError
from whencount.provenance import (
    check_input,
    files_named,
    locate,
    manifest_path,
    read_manifest,
    rebuild_command,
    recorded,
    recording,
    stage_hash,
)
from whencount.provenance.explanation import explain, lines_of_origin
from whencount.provenance.manifest import hash_of_file
from whencount.provenance.verification import Verification, verify

RESULTS = Path("results")
ROW = RESULTS / "rows" / "sae_token.tiny.seed0.parquet"
VECTORS = RESULTS / "vectors" / "tiny" / "queries"


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


def problems(result: Verification) -> list[tuple[str, str]]:
    return [(one.path, one.problem) for one in result.findings]


def flip(path: Path, keep_times: bool = True) -> None:
    """Change one bit in the middle of a file, its size and mtime as before."""
    status = path.stat()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    if keep_times:
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_a_manifest_says_what_its_artefact_is_and_what_it_was_made_from(study: Path) -> None:
    manifest = read_manifest(manifest_path(ROW))
    assert (manifest.kind, manifest.stage, manifest.seed) == ("table", "score", 0)
    assert manifest.files["."].size == ROW.stat().st_size
    assert manifest.files["."].sha256 == hash_of_file(ROW)
    assert manifest.source == stage_hash("score")
    assert manifest.configuration == {"search.depth": 100}
    assert [one.path for one in manifest.inputs] == [
        "../vectors/tiny/documents.0of1/sae_token.seed0",
        "../vectors/tiny/queries/sae_token.seed0",
        "../collections/tiny",
    ]
    whole = read_manifest(manifest_path(VECTORS))
    assert manifest.inputs[1].digest == whole.part_digest("sae_token.seed0") != whole.digest
    assert manifest.together == ("../per_query/sae_token.tiny.seed0.parquet",)
    assert set(manifest.run) == {"started", "ended", "peak_memory_bytes"}
    assert manifest.run["peak_memory_bytes"] > 1 << 20
    assert os.uname().nodename not in json.dumps(dict(manifest.host)).split('"')


def test_a_part_has_the_digest_that_it_would_have_alone(study: Path) -> None:
    with recorded(outputs=["alone"], stage="encode"):
        shutil.copytree(VECTORS / "sae_token.seed0", "alone")
    alone = read_manifest(manifest_path(Path("alone")))
    assert alone.digest == read_manifest(manifest_path(VECTORS)).part_digest("sae_token.seed0")


def test_the_files_that_a_source_reads_are_found_in_its_options(study: Path) -> None:
    options = {"source": "beir", "path": "data", "split": "results", "separator": " "}
    assert files_named(options) == [Path("data")]
    trec = {"documents": ["data/corpus.jsonl"], "qrels": "config.yaml", "queries": "absent"}
    assert files_named(trec) == [Path("data/corpus.jsonl"), Path("config.yaml")]


def test_a_stage_that_fails_leaves_no_manifest_beside_what_stood_there(study: Path) -> None:
    with pytest.raises(RuntimeError), recorded(outputs=[ROW], stage="score"):
        raise RuntimeError("killed")
    assert ROW.exists()
    assert not manifest_path(ROW).exists()
    with pytest.raises(InputError, match="has no manifest"):
        check_input(ROW)


def test_a_stage_must_write_what_it_promised(study: Path) -> None:
    with (
        pytest.raises(InputError, match="ended without writing absent"),
        recorded(outputs=["absent"], stage="score"),
    ):
        pass


DAMAGE: dict[str, tuple[Callable[[], object], str]] = {
    "a bit flipped": (
        lambda: flip(VECTORS / "sae_token.seed0" / "values.npy"),
        r"values\.npy is not what .*queries\.manifest\.json says: expected SHA-256 \w{16}, found",
    ),
    "truncated": (
        lambda: os.truncate(VECTORS / "sae_token.seed0" / "values.npy", 100),
        r"values\.npy is not what .* says: expected 168 bytes, found 100 bytes",
    ),
    "a file gone": (
        (VECTORS / "sae_token.seed0" / "values.npy").unlink,
        r"values\.npy is missing",
    ),
    "a file too many": (
        lambda: (VECTORS / "sae_token.seed0" / "more.npy").write_text("x"),
        r"more\.npy does not belong there",
    ),
    "no manifest": (lambda: manifest_path(VECTORS).unlink(), "has no manifest"),
    "no such part": (lambda: shutil.rmtree(VECTORS), "is missing"),
    "manifest damaged": (
        lambda: manifest_path(VECTORS).write_text("{"),
        r"queries\.manifest\.json is damaged",
    ),
    "manifest edited": (
        lambda: manifest_path(VECTORS).write_text(
            manifest_path(VECTORS).read_text().replace('"size": 168', '"size": 169')
        ),
        r"expected 169 bytes, found 168 bytes",
    ),
    "manifest of other content": (
        lambda: manifest_path(VECTORS).write_text(
            manifest_path(VECTORS)
            .read_text()
            .replace(hash_of_file(VECTORS / "sae_token.seed0/values.npy"), 64 * "0")
        ),
        r"is no manifest .*its digest does not agree",
    ),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_stage_refuses_a_damaged_input_and_tells_what_makes_it_again(
    study: Path, kind: str
) -> None:
    part = VECTORS / "sae_token.seed0"
    check_input(part)
    damage, message = DAMAGE[kind]
    damage()
    with pytest.raises(InputError, match=message) as caught, stage("score", [ROW], [part]):
        pytest.fail("the stage ran")
    assert f"again: snakemake --cores 2 --force {VECTORS}" in str(caught.value)


def test_an_input_written_anew_while_a_stage_reads_it_fails_the_stage(study: Path) -> None:
    part = VECTORS / "sae_token.seed0"
    with (
        pytest.raises(InputError, match=r"written anew while whencount stage score read it"),
        stage("score", [ROW], [part]),
        stage("encode", [VECTORS], []),
    ):
        (part / "values.npy").write_bytes(b"other")


def test_damage_in_another_part_does_not_concern_a_stage(study: Path) -> None:
    flip(VECTORS / "pca_token.seed0" / "values.npy")
    check_input(VECTORS / "sae_token.seed0")
    with pytest.raises(InputError):
        check_input(VECTORS)


def test_a_file_at_rest_is_hashed_once_and_again_when_anything_of_it_changed(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[Path] = []

    def counting(path: Path) -> str:
        hashed.append(path)
        return hash_of_file(path)

    monkeypatch.setattr(recording, "hash_of_file", counting)
    check_input(ROW)
    check_input(ROW)
    assert len(hashed) == 2, "a file touched a moment ago is not taken as known"
    monkeypatch.setattr(recording, "_AT_REST_SECONDS", -1.0)
    check_input(ROW)
    check_input(ROW)
    assert len(hashed) == 3
    # A program can set mtime back; ctime tells it nevertheless.
    flip(ROW, keep_times=True)
    with pytest.raises(InputError, match="is not what"):
        check_input(ROW)


def test_the_record_of_hashes_need_not_be_writable_nor_whole(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "_AT_REST_SECONDS", -1.0)
    record = ROW.parent / f".{ROW.name}.checked.json"
    record.write_text("[1, 2")
    check_input(ROW)
    record.unlink()
    record.mkdir()
    check_input(ROW)


def test_an_undisturbed_study_verifies_and_a_moved_one_too(study: Path, tmp_path: Path) -> None:
    result = verify([RESULTS, Path("reports")])
    assert problems(result) == []
    assert result.artefacts == 15
    assert result.files == 20
    shutil.copytree(study, tmp_path / "elsewhere")
    assert problems(verify([tmp_path / "elsewhere" / "results"])) == []


PLANTED = {
    "collection": (RESULTS / "collections/tiny/documents.parquet", RESULTS / "collections/tiny"),
    "passages": (RESULTS / "fit/passages/documents.parquet", RESULTS / "fit/passages"),
    "states": (RESULTS / "fit/states/pooled.npy", RESULTS / "fit/states"),
    "basis": (RESULTS / "bases/sae_token.seed0/manifest.json", RESULTS / "bases/sae_token.seed0"),
    "vectors": (VECTORS / "pca_token.seed0/values.npy", VECTORS),
    "run": (RESULTS / "references/dense.tiny.parquet", RESULTS / "references/dense.tiny.parquet"),
    "table": (ROW, ROW),
    "page": (Path("reports/retrieval.html"), Path("reports/retrieval.html")),
    "figures": (RESULTS / "figures/retrieval/quality.svg", RESULTS / "figures/retrieval"),
}
CHANGES: dict[str, Callable[[Path], object]] = {
    "content": flip,
    "size": lambda path: os.truncate(path, path.stat().st_size - 1),
    "file missing": lambda path: path.unlink(),
}


@pytest.mark.parametrize("problem", CHANGES)
@pytest.mark.parametrize("kind", PLANTED)
def test_verification_finds_one_planted_change_of_every_kind(
    study: Path, kind: str, problem: str
) -> None:
    path, artefact = PLANTED[kind]
    assert read_manifest(manifest_path(artefact)).kind == kind
    CHANGES[problem](path)
    result = verify([RESULTS, Path("reports")])
    # A folder that held nothing else is missing as a whole.
    shown = path if path.parent.exists() and any(artefact.glob("**/*.*")) else artefact
    assert problems(result) == [(str(shown), problem)]
    assert result.findings[0].command == f"snakemake --cores 2 --force {artefact}"
    assert result.findings[0].sentence.startswith(f"{shown}: {problem}: expected ")


def test_verification_finds_files_that_nobody_recorded(study: Path) -> None:
    (VECTORS / "pca_token.seed0" / "values2.npy").write_text("x")
    (RESULTS / "rows" / "mystery.parquet").write_text("x")
    (RESULTS / "bases" / "old.seed0").mkdir()
    (RESULTS / "bases" / "old.seed0" / "basis.json").write_text("{}")
    (RESULTS / "rows" / ".rows.x1y2").write_text("half")
    result = verify([RESULTS])
    assert problems(result) == [
        ("results/bases/old.seed0", "manifest missing"),
        ("results/rows/mystery.parquet", "manifest missing"),
        (f"{VECTORS}/pca_token.seed0/values2.npy", "extra file"),
    ]
    assert ".rows.x1y2" in result.notes[0]


def test_results_without_any_manifest_are_told_once(study: Path) -> None:
    for path in study.rglob("*.manifest.json"):
        path.unlink()
    result = verify([RESULTS])
    assert problems(result) == [("results", "manifest missing")]
    assert result.findings[0].command == "snakemake --cores 2 --forceall study"


def test_lost_manifests_are_told_by_the_artefacts_that_a_job_writes(study: Path) -> None:
    for name in ("bases", "vectors", "rows"):
        for path in (RESULTS / name).rglob("*.manifest.json"):
            path.unlink()
    missing = {one.path for one in verify([RESULTS]).findings if one.problem == "manifest missing"}
    assert missing == {
        *(f"results/bases/{name}_token.seed0" for name in ("pca", "sae")),
        *(f"results/vectors/tiny/{side}" for side in ("documents.0of1", "queries")),
        *(f"results/rows/{name}_token.tiny.seed0.parquet" for name in ("pca", "sae")),
    }


def test_verification_finds_a_chain_that_was_broken_in_the_middle(study: Path) -> None:
    part = VECTORS / "sae_token.seed0"
    with stage("encode", [VECTORS], [RESULTS / "collections/tiny"]):
        (part / "values.npy").write_bytes(b"made anew")
    table = "results/per_query/sae_token.tiny.seed0.parquet"
    assert problems(verify([RESULTS])) == [
        (table, "input changed"),
        ("results/references/dense.tiny.parquet", "input changed"),
        (str(ROW), "input changed"),
    ]
    assert problems(verify([ROW])) == [(str(ROW), "input changed")]


def test_verification_finds_an_input_that_is_gone(study: Path) -> None:
    shutil.rmtree(RESULTS / "fit/passages")
    manifest_path(RESULTS / "fit/passages").unlink()
    assert problems(verify([RESULTS])) == [("results/fit/passages", "input missing")]


def test_verification_compares_code_files_outside_and_configuration_when_asked(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert problems(verify([RESULTS], source=True, configuration={"search": {"depth": 100}})) == []
    result = verify([ROW], configuration={"search": {"depth": 1000}})
    assert problems(result) == [(str(ROW), "configuration changed")]
    assert "search.depth 1000" in result.findings[0].expected
    # A study without the key says nothing of it.
    assert problems(verify([ROW], configuration={"seed": 1})) == []
    with open("data/corpus.jsonl", "a", encoding="utf-8") as file:
        file.write("{}\n")
    found = problems(verify([RESULTS], source=True))
    assert found == [("data/corpus.jsonl", "file outside changed")]
    monkeypatch.setattr(
        "whencount.provenance.verification.stage_hash",
        lambda stage, notebook: "new" if stage == "collect" else stage_hash(stage, notebook),
    )
    found = problems(verify([RESULTS / "rows.parquet"], source=True))
    assert found == [("results/rows.parquet", "code changed")]


def test_quick_verification_reads_no_content(study: Path) -> None:
    flip(ROW)
    assert problems(verify([RESULTS], quick=True)) == []
    os.truncate(ROW, 3)
    assert problems(verify([RESULTS], quick=True)) == [(str(ROW), "size")]


def test_the_command_verify_tells_and_ends_as_its_help_says(study: Path) -> None:
    runner = CliRunner()
    fine = runner.invoke(main, ["verify"])
    assert fine.exit_code == 0
    assert "15 artefacts, 20 files" in fine.stdout
    flip(ROW)
    wrong = runner.invoke(main, ["verify"])
    assert wrong.exit_code == 1
    assert f"{ROW}: content: expected" in wrong.stdout
    assert f"snakemake --cores 2 --force {ROW}\n" in wrong.stdout
    assert runner.invoke(main, ["verify", "--names"]).stdout == f"{ROW}\n"
    record = json.loads(runner.invoke(main, ["verify", "--json"]).stdout)
    assert record["ok"] is False
    assert [one["path"] for one in record["findings"]] == [str(ROW)]
    nothing = runner.invoke(main, ["verify", "absent"])
    assert nothing.exit_code == 2
    assert "absent does not exist" in nothing.output
    Path("empty").mkdir()
    for place, told in (("empty", "no artefact is there"), ("n" * 5_000, "cannot be read")):
        refused = runner.invoke(main, ["verify", place])
        assert refused.exit_code == 2
        assert told in refused.stderr
    Path("rows.parquet.manifest.json").write_text("[" * 100_000)
    deep = runner.invoke(main, ["explain", "rows.parquet"])
    assert deep.exit_code == 2
    assert "is damaged" in deep.stderr


def test_an_explanation_goes_from_a_figure_to_the_files_of_the_collection(study: Path) -> None:
    lines = list(lines_of_origin(explain("results/figures/retrieval/quality.svg")))
    depth = {line.split()[0]: (len(line) - len(line.lstrip())) // 2 for line in reversed(lines)}
    assert depth["results/figures/retrieval/quality.svg"] == 0
    assert depth["results/rows.parquet"] == 1
    assert depth[str(ROW)] == 2
    assert depth[f"{VECTORS}/sae_token.seed0"] == 3
    assert depth["results/bases/sae_token.seed0"] == 4
    assert depth["data/corpus.jsonl"] > depth["results/collections/tiny"] > 3
    assert f"code {stage_hash('score')[:12]}" in next(one for one in lines if str(ROW) in one)
    # Each artefact is followed once.
    full = [line for line in lines if "results/fit/states  states by" in line]
    assert len(full) == 1


def test_an_explanation_names_only_the_basis_of_the_vectors_asked_about(study: Path) -> None:
    text = "\n".join(lines_of_origin(explain(VECTORS / "sae_token.seed0")))
    assert "bases/sae_token.seed0" in text
    assert "bases/pca_token.seed0" not in text
    both = "\n".join(lines_of_origin(explain(VECTORS)))
    assert "bases/sae_token.seed0" in both
    assert "bases/pca_token.seed0" in both


def test_an_explanation_stops_where_asked_and_says_what_changed(study: Path) -> None:
    runner = CliRunner()
    short = runner.invoke(main, ["explain", "reports/retrieval.html", "--depth", "1"])
    assert [line.split()[0] for line in short.stdout.splitlines()] == [
        "reports/retrieval.html",
        "results/rows.parquet",
        "results/references/dense.tiny.parquet",
        "workflow/notebooks/retrieval.ipynb",
    ]
    with stage("shares", [RESULTS / "shares.parquet"], [RESULTS / "rows.parquet"]):
        (RESULTS / "shares.parquet").write_bytes(b"shares")
    page, rows = Path("reports/retrieval.html"), RESULTS / "rows.parquet"
    with stage("report", [page], [RESULTS / "shares.parquet", rows]):
        page.write_text("another")
    for depth in range(5):
        lines = list(lines_of_origin(explain(page, depth)))
        paths = [line.split()[0] for line in lines if " explained " not in line]
        whole = [line for line in lines if " by " in line and "content" in line]
        assert len({line.split()[0] for line in whole}) == len(whole), "\n".join(lines)
        # What is within reach of the nearer of its two lines is reached.
        assert (str(ROW) in paths) == (depth >= 2)
    with stage("collect", [RESULTS / "rows.parquet"], rows_of(RESULTS)):
        (RESULTS / "rows.parquet").write_bytes(b"other")
    record = json.loads(runner.invoke(main, ["explain", "reports/retrieval.html", "--json"]).stdout)
    assert record["inputs"][1]["state"] == "changed since"
    assert record["stage"] == "report"
    nothing = runner.invoke(main, ["explain", "config.yaml"])
    assert nothing.exit_code == 2
    assert "config.yaml has no manifest" in nothing.output


def test_a_path_in_a_manifest_cannot_lead_out_of_its_artefact(study: Path) -> None:
    path = manifest_path(VECTORS)
    path.write_text(path.read_text().replace("sae_token.seed0/values.npy", "../../secret"))
    with pytest.raises(InputError, match="leads out of its artefact"):
        read_manifest(path)


def test_no_manifest_holds_a_text_of_the_corpus(study: Path) -> None:
    for path in study.rglob("*.manifest.json"):
        assert SECRET not in path.read_text()


def test_the_innermost_artefact_is_found(study: Path) -> None:
    found = locate(VECTORS / "sae_token.seed0" / "values.npy")
    assert found is not None
    assert (found.path, found.part) == (VECTORS, "sae_token.seed0/values.npy")
    assert locate("config.yaml") is None


def test_the_command_that_mends_names_the_configuration_of_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "config.yaml").write_text("study: embedded\n")
    (tmp_path / "my.yaml").write_text("study: mine\nresults: results/mine\nreports: pages/mine\n")
    (tmp_path / "configs" / "test.yaml").write_text("study: test\nresults: results/test\n")
    (tmp_path / "broken.yaml").write_text("results: [\n")
    monkeypatch.chdir(tmp_path)

    def command(*names: str) -> str:
        return rebuild_command([Path(name) for name in names])

    force = "snakemake --cores 2 --force"
    assert command("results/rows.parquet") == f"{force} results/rows.parquet"
    assert command("results/mine/b", "results/mine/a") == (
        f"{force} results/mine/a results/mine/b --configfile my.yaml"
    )
    assert command("pages/mine/x.html") == f"{force} pages/mine/x.html --configfile my.yaml"
    assert command("results/test/x") == f"{force} results/test/x --configfile configs/test.yaml"
    assert command("elsewhere/x") == f"{force} elsewhere/x"
    for name in ("results/mine", "results"):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / name / "rows.parquet").touch()
    study = "snakemake --cores 2 --forceall study"
    assert [one.command for one in verify([Path("results/mine")]).findings] == [
        f"{study} --configfile my.yaml"
    ]
    assert [one.command for one in verify([Path("results")]).findings] == [study]
