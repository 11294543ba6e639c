"""Rows of expert routing: identities, targets, what is kept of a killed job."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result
from expert_text import PARTS, SIZES, prepared_text, text_file

from whencount.attribution import TARGET_COLUMNS, targets
from whencount.cli import main
from whencount.diagnostics import TIER_1, TIER_2
from whencount.errors import InputError
from whencount.experts import rows as library
from whencount.experts.evaluation import Likelihood, Passage, open_evaluation
from whencount.experts.label_free import (
    Prepared,
    RoutingStudy,
    prepare_routing,
    read_prepared,
)
from whencount.experts.trained import train_model
from whencount.language_models import LanguageModel, load_language_model
from whencount.ranking_diagnostics import TIER_3, pseudo_columns

CALIBRATION = {"documents": 8, "tokens": 16, "costly_documents": 2}
STUDY = RoutingStudy(active=2, preserved_share=0.2)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    return prepared_text(tmp_path_factory.mktemp("text") / "sentences.jsonl")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, text: pd.DataFrame) -> LanguageModel:
    out = tmp_path_factory.mktemp("model") / "toy"
    train_model("toy", text, SIZES, out, threads=1)
    return load_language_model({"source": "folder", "path": str(out)}, threads=1)


@pytest.fixture(scope="module")
def prepared(
    tmp_path_factory: pytest.TempPathFactory, text: pd.DataFrame, model: LanguageModel
) -> Prepared:
    out = tmp_path_factory.mktemp("prepared") / "calibration"
    prepare_routing(model, text, CALIBRATION, STUDY, out)
    return read_prepared(out)


@pytest.fixture(scope="module")
def tables(text: pd.DataFrame, model: LanguageModel, prepared: Prepared) -> dict[str, pd.DataFrame]:
    options = {"source": "text", "text": "sentences", "documents": 7, "tokens": 40}
    with open_evaluation("sentences", options, text) as opened:
        return library.evaluate(model, "toy", opened, "sentences", prepared, STUDY)


def quality(tables: dict[str, pd.DataFrame], variant: str = "") -> pd.Series:
    found = tables["baselines"]
    return found[found["variant"] == variant].set_index("rule")["quality"]


def test_one_length_per_token_makes_six_of_eight_coincide(tables: dict[str, pd.DataFrame]) -> None:
    row: Any = tables["rows"].set_index("variant").loc["token"]
    assert row["q001"] == row["q010"] == row["q011"] == row["q000"]
    assert row["q101"] == row["q100"]
    assert row["shapley_length"] == (row["q111"] - row["q110"]) / 3


def test_all_off_is_native_routing(tables: dict[str, pd.DataFrame]) -> None:
    lines = tables["per_document"]
    native = lines[lines["rule"] == "native"]["nll"].tolist()
    for variant in ("token", "expert"):
        off = lines[(lines["rule"] == "000") & (lines["variant"] == variant)]["nll"].tolist()
        assert off == native
    # Saturation alone never reverses probabilities, whatever the length is.
    expert: Any = tables["rows"].set_index("variant").loc["expert"]
    assert expert["q010"] == expert["q000"]


def test_quality_is_minus_the_mean_over_all_tokens(tables: dict[str, pd.DataFrame]) -> None:
    for (variant, rule), part in tables["per_document"].groupby(["variant", "rule"]):
        mean = (part["nll"] * part["tokens"]).sum() / part["tokens"].sum()
        assert quality(tables, str(variant))[str(rule)] == pytest.approx(-mean, rel=1e-12)
    baselines = tables["baselines"]
    assert (baselines["low"] <= baselines["quality"]).all()
    assert (baselines["quality"] <= baselines["high"]).all()
    assert (baselines["documents"] == 7).all()
    totals = -baselines["quality"] * baselines["tokens"]
    words = tables["per_document"].groupby(["variant", "rule"])["words"].sum().iloc[0]
    np.testing.assert_allclose(baselines["nats_per_word"], totals / words)


def test_rows_have_targets_and_all_that_predictors_see(tables: dict[str, pd.DataFrame]) -> None:
    rows = tables["rows"]
    assert rows["variant"].tolist() == ["token", "expert"]
    pd.testing.assert_frame_equal(rows[list(TARGET_COLUMNS)], targets(rows))
    seen = [*TIER_1, *TIER_2, *TIER_3, *pseudo_columns("dense")]
    assert rows[seen].notna().all().all()
    assert (rows[list(pseudo_columns("dense"))] <= 0).all().all()


def test_every_rule_has_every_document(tables: dict[str, pd.DataFrame]) -> None:
    counts = tables["per_document"].groupby(["variant", "rule"])["document"].nunique()
    assert len(counts) == 2 * 8 + 5
    assert (counts == 7).all()


def test_a_killed_job_goes_on_with_the_rules_that_are_left(
    tmp_path: Path,
    model: LanguageModel,
    prepared: Prepared,
    tables: dict[str, pd.DataFrame],
    text: pd.DataFrame,
) -> None:
    class Dying:
        left = 6

        def measure(self, model: LanguageModel, description: str = "") -> pd.DataFrame:
            if not self.left:
                raise KeyboardInterrupt
            self.left -= 1
            with open_evaluation("sentences", options, text) as opened:
                return opened.measure(model)

    options = {"source": "text", "text": "sentences", "documents": 7, "tokens": 40}
    dying = Dying()
    with pytest.raises(KeyboardInterrupt):
        library.evaluate(model, "toy", dying, "sentences", prepared, STUDY, tmp_path)
    dying.left = 2 * 8 + 5 - 6
    again = library.evaluate(model, "toy", dying, "sentences", prepared, STUDY, tmp_path)
    assert dying.left == 0
    for name, table in tables.items():
        pd.testing.assert_frame_equal(again[name], table)


def test_what_is_prepared_is_the_same_again_and_after_a_kill(
    tmp_path: Path, model: LanguageModel, text: pd.DataFrame, prepared: Prepared
) -> None:
    parts, out = tmp_path / "parts", tmp_path / "out"
    parts.mkdir()
    prepare_routing(model, text, CALIBRATION, STUDY, out, checkpoints=parts)
    first = {path.name: path.read_bytes() for path in out.iterdir()}
    (parts / "routing.parquet").unlink()
    (parts / "agreement.parquet").write_bytes(b"half a table")
    prepare_routing(model, text, CALIBRATION, STUDY, out, checkpoints=parts)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == first
    assert prepared.preserved is not None
    assert prepared.preserved.sum() <= 4  # ceil(0.2 x 16 experts)
    shares = prepared.routing.groupby(["rule", "variant", "layer"])["share"].sum()
    dense = shares.index.get_level_values("rule") == "dense"
    np.testing.assert_allclose(shares[~dense], 2)
    np.testing.assert_allclose(shares[dense], 8)


def test_calibration_documents_longer_than_the_model_reads_are_refused(
    tmp_path: Path, model: LanguageModel, text: pd.DataFrame
) -> None:
    with pytest.raises(InputError, match=r"documents of 32 tokens, and .* takes 16"):
        prepare_routing(model, text, CALIBRATION | {"tokens": 32}, STUDY, tmp_path / "out")


def test_questions_are_summed_up_by_their_number() -> None:
    units = pd.DataFrame(
        {
            "tokens": 1,
            "nll": np.nan,
            "accuracy": [1.0, 0.0, 1.0, 1.0],
            "words": 0,
            "bytes": 0,
        },
        index=range(4),
    )
    found = library.summary(units, "toy", 0)
    assert (found["quality"], found["low"], found["high"]) == (0.75, 0.75, 0.75)
    assert np.isnan(found["nats_per_word"])


def test_a_study_without_a_trained_model_has_an_empty_training_table(
    tables: dict[str, pd.DataFrame], prepared: Prepared
) -> None:
    jobs = {kind: [tables[kind]] for kind in library.KINDS}
    found = library.collect(jobs, [("toy", 2, prepared.routing)], [])
    assert found["training"].columns.tolist() == list(library.TRAINING_COLUMNS)
    assert found["training"].empty
    assert found["routing"]["active"].unique().tolist() == [2]


def test_documents_of_one_token_are_predicted_from_the_prefix(model: LanguageModel) -> None:
    found = Likelihood([Passage.of("d", "t")]).measure(model)
    assert found["tokens"].tolist() == [1]
    assert np.isfinite(found["nll"]).all()


def test_documents_without_a_token_are_refused(model: LanguageModel, prepared: Prepared) -> None:
    empty = Likelihood([Passage.of("d", "")])
    with pytest.raises(InputError, match="no document has a token"):
        library.evaluate(model, "toy", empty, "nothing", prepared, STUDY)


def test_a_calibration_of_another_number_of_experts_is_refused(
    model: LanguageModel, prepared: Prepared
) -> None:
    other = replace(prepared, calibration=replace(prepared.calibration, active=STUDY.active + 1))
    with pytest.raises(InputError, match=r"calibration is of .* calibrate it anew"):
        library.evaluate(model, "toy", Likelihood([Passage.of("d", "t")]), "t", other, STUDY)


def stage(*arguments: str | Path) -> Result:
    done = CliRunner().invoke(main, ["stage", *map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done


def test_the_stages_lead_from_a_text_to_the_tables(tmp_path: Path) -> None:
    folder = tmp_path / "experts"
    folder.mkdir()
    source: dict[str, Any] = {"source": "file", "path": str(text_file(tmp_path / "s.jsonl"))}
    text = folder / "text.sentences.parquet"
    common = ["--seed", "0"]
    stage("expert-text", "--name", "sentences", "--source", json.dumps(source | {"parts": PARTS}),
          *common, "--out", text)  # fmt: skip
    model = json.dumps(SIZES | {"source": "trained", "text": "sentences"})
    trained = folder / "model.toy"
    stage("expert-training", "--name", "toy", "--model", model, "--text", text, *common,
          "--threads", "1", "--out", trained)  # fmt: skip
    study = json.dumps(
        {
            "variants": ["token"],
            "comparisons": ["random"],
            "preserved_share": 0.05,
            "k1": 1.2,
            "b": 0.75,
        }
    )
    job: list[str | Path] = ["--name", "toy", "--model", model, "--folder", trained,
           "--study", study, "--active", "2", *common, "--threads", "1"]  # fmt: skip
    calibrated = folder / "calibration.toy.2"
    stage("expert-calibration", *job, "--text", text, "--calibration", json.dumps(CALIBRATION),
          "--out", calibrated)  # fmt: skip
    outputs: list[str | Path] = []
    for kind in library.KINDS:
        outputs += [f"--{kind.replace('_', '-')}", folder / kind / "toy.sentences.2.parquet"]
    evaluation = json.dumps({"source": "text", "text": "sentences", "documents": 3})
    stage("expert-evaluation", *job, "--evaluation-name", "sentences", "--evaluation", evaluation,
          "--text", text, "--calibration", calibrated, *outputs)  # fmt: skip
    collected: list[str | Path] = []
    for kind in (*library.KINDS, "routing", "training"):
        collected += [f"--{kind.replace('_', '-')}", folder / f"{kind}.parquet"]
    stage("expert-collect", "--jobs", json.dumps([["toy", "sentences", 2]]), "--trained",
          json.dumps(["toy"]), "--parts", folder, *collected)  # fmt: skip
    found = {kind: pd.read_parquet(folder / f"{kind}.parquet") for kind in library.KINDS}
    assert found["baselines"]["rule"].tolist() == [
        *(f"{n:03b}" for n in range(8)),
        "native",
        "random",
    ]
    assert len(found["rows"]) == 1
    training = pd.read_parquet(folder / "training.parquet")
    assert training["model"].tolist() == ["toy"] * 3
