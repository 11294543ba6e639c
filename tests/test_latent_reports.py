"""The key `latent_terms` of a configuration, and the page on latent terms from made-up tables."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from whencount import config
from whencount.attribution import QUALITY_COLUMNS, targets
from whencount.errors import InputError
from whencount.latent_config import is_limit
from whencount.latent_terms.comparing import COMPARISONS
from whencount.reports import latent_figures, latent_pieces
from whencount.reports.drawing import Gallery
from whencount.reports.latent_tables import LatentTables, load_latent
from whencount.reports.latent_words import sentences
from whencount.setting_summaries.latent_terms import LatentAnswer, latent_answer
from whencount.tables import write_table

ROOT = Path(__file__).parents[1]
SCHEMA = ROOT / "workflow" / "schemas" / "config.schema.yaml"
HOSTILE = "<script>&x"


def study(**latent: Any) -> dict[str, Any]:
    base: dict[str, Any] = yaml.safe_load((ROOT / "configs" / "test.yaml").read_text())
    real = yaml.safe_load((ROOT / "config.yaml").read_text()).get("latent_terms")
    models = real["models"] if real else {"small": {}}
    return base | {"latent_terms": {"models": models, "seeds": [0], **latent}}


def test_names_left_out_are_filled_in_and_others_refused() -> None:
    found = config.validate(study(), SCHEMA)
    latent = found["latent_terms"]
    assert latent["collections"] == list(found["collections"])
    assert latent["browser"]["model"] == next(iter(latent["models"]))
    assert latent["browser"]["collection"] == latent["collections"][0]
    assert (latent["phi"], latent["k1"], latent["b"]) == (0.5, 1.2, 0.75)
    assert config.validate(found, SCHEMA) == found
    with pytest.raises(InputError, match=r"latent_terms\.collections: there is no 'nowhere'"):
        config.validate(study(collections=["nowhere"]), SCHEMA)
    with pytest.raises(InputError, match=r"latent_terms\.browser\.seed: there is no 3"):
        config.validate(study(browser={"seed": 3}), SCHEMA)
    with pytest.raises(InputError, match=r"latent_terms\.grid\.phi\.0"):
        config.validate(study(grid={"phi": [1.5]}), SCHEMA)
    unused = study()
    for family in unused["families"].values():
        family["collections"] = ["api-docs"]
    with pytest.raises(InputError, match="there is no 'limit'"):
        config.validate(
            unused | {"latent_terms": study(collections=["limit"])["latent_terms"]}, SCHEMA
        )


def test_collections_of_limit_are_known() -> None:
    assert is_limit({"source": "limit"}, "mine")
    assert is_limit({"source": "published"}, "limit")
    assert is_limit({"source": "published", "id": "limit"}, "mine")
    assert is_limit({"source": "beir", "path": "x"}, "limit-small")
    assert not is_limit({"source": "beir", "path": "x"}, "scifact")


def tables(change: float = 0.1, model: str = "toy") -> LatentTables:
    """Tables of two collections and two seeds in which BM25 lies `change` above."""
    random = np.random.default_rng(0)
    jobs = pd.DataFrame(
        [
            {"representation": f"{model}_latent", "collection": collection, "seed": seed}
            for collection in ("api-docs", "limit")
            for seed in (0, 1)
        ]
    )
    quality = pd.DataFrame(
        0.4 + change * np.arange(8) / 7 + random.normal(0, 0.001, (4, 8)),
        columns=list(QUALITY_COLUMNS),
    )
    rows = pd.concat([jobs, quality, targets(quality)], axis=1).assign(phi=0.5)
    points = pd.DataFrame({"scorer": ["inner", "bm25"], "phi": 0.5, "k1": [np.nan, 1.2]})
    points = points.assign(b=points["k1"] / 2, development=0.5, test=0.4, chosen=True, untuned=True)
    queries = pd.DataFrame(
        [
            {"query_id": f"q{n}", "part": "test", "scorer": scorer, "setting": setting}
            for n in range(6)
            for scorer in ("inner", "bm25")
            for setting in ("untuned", "tuned")
        ]
    ).assign(ndcg_10=0.45)
    recalls = pd.DataFrame({"cutoff": [10, 100], "recall": [0.3, 0.8], "queries": 6})
    recalls = recalls.assign(setting="untuned", part="all")
    curve = pd.DataFrame(
        {
            "threshold": [1.0, 0.5, 0.1],
            "features": [100, 90, 20],
            "postings": [1000, 700, 50],
            "posting_work": [400.0, 100.0, 2.0],
            "empty_queries": [0, 0, 0.5],
            "inner": [0.4, 0.41, 0.1],
            "bm25": [0.5, 0.499, 0.2],
        }
    )
    zipf = pd.DataFrame({"rank": [1, 2, 3], "df": [9, 5, 2], "frequency": [0.9, 0.5, 0.2]})
    zipf = zipf.assign(live=3, zipf_slope=1.2)
    both = pd.DataFrame({"collection": ["api-docs", "limit"]})
    compared = both.merge(pd.DataFrame({"comparison": list(COMPARISONS)}), how="cross").assign(
        representation=f"{model}_latent", seeds=2, queries=6, first=0.4 + change, second=0.4,
        difference=change, low=change - 0.01, high=change + 0.01, p=0.001, holm_p=0.002,
    )  # fmt: skip
    limit = jobs[jobs["collection"] == "limit"]
    return LatentTables(
        rows=rows,
        grid=jobs.merge(points, how="cross"),
        comparisons=compared,
        tuned=jobs.merge(queries, how="cross"),
        recall=limit.merge(recalls.assign(scorer="bm25"), how="cross"),
        reference_recall=recalls.assign(scorer="words", collection="limit"),
        pruning=jobs.merge(curve, how="cross"),
        frequencies=jobs.merge(zipf, how="cross"),
        reference_frequencies=both.merge(zipf, how="cross").assign(
            kind="words", representation="words"
        ),
        words=both.merge(queries[["query_id"]].drop_duplicates(), how="cross").assign(ndcg_10=0.5),
        training=pd.DataFrame(
            {"model": model, "seed": 0, "step": [1, 2], "states": [9, 18], "dead": [0, 5]}
        ).assign(training_fvu=0.3, validation_fvu=[0.4, 0.3], active=16.0),
    )


def answered(read: LatentTables) -> LatentAnswer:
    return latent_answer(
        read.rows, read.comparisons, read.recall, read.reference_recall, read.pruning,
        read.frequencies, read.reference_frequencies,
    )  # fmt: skip


def test_words_follow_the_numbers() -> None:
    better, worse = (sentences(answered(tables(change))) for change in (0.1, -0.1))
    assert "BM25 is above the inner product" in better[0]
    assert "BM25 is below the inner product" in worse[0]
    joined = "\n".join(better)
    assert "above 0 in 2 and below 0 in 0 of 2 pairs" in joined
    assert "above 0 in 0 and below 0 in 2 of 2 pairs" in "\n".join(worse)
    assert "Recall at 100 on limit" in joined
    # At a threshold of 0.5 BM25 keeps 99.8 %, at 0.1 it does not.
    assert "more than 50" in joined
    assert "25\N{NO-BREAK SPACE}% of the posting work" in joined
    found = answered(tables())
    assert found.bm25 - found.inner == pytest.approx(0.1, abs=0.005)
    assert found.seeds == 2


def test_every_figure_and_table_is_drawn_and_data_is_escaped(tmp_path: Path) -> None:
    read = tables(model=HOSTILE)
    gallery = Gallery(tmp_path, ["svg"])
    shown = [
        latent_figures.configurations(read.rows),
        latent_figures.tuning(read.tuned, read.words),
        latent_figures.recall(read.recall, read.reference_recall),
        latent_figures.pruning(read.pruning),
        latent_figures.rank_frequency(
            [("latent terms", read.frequencies), ("words", read.reference_frequencies)]
        ),
        latent_figures.training(read.training),
    ]
    pieces = [
        latent_pieces.answer(answered(read)),
        latent_pieces.qualities(read.rows),
        latent_pieces.compared(read.comparisons),
        latent_pieces.chosen(read.grid),
        latent_pieces.recalled(read.recall, read.reference_recall),
        latent_pieces.pruned(read.pruning),
        latent_pieces.trained(read.training),
        latent_pieces.making(read, {"phi": 0.5}, "test"),
    ]
    for one in [*(gallery.show(drawing) for drawing in shown), *pieces]:
        assert one is not None
        assert HOSTILE not in one._repr_html_()
    assert len(list(tmp_path.glob("*.svg"))) == 6
    assert latent_figures.recall(read.recall[:0], read.reference_recall[:0]) is None
    assert latent_pieces.recalled(read.recall[:0], read.reference_recall[:0]) is None
    assert latent_figures.training(read.training[:0]) is None


def test_a_table_without_a_column_is_refused_by_name(tmp_path: Path) -> None:
    read = tables()
    paths = {}
    for field in fields(LatentTables):
        paths[field.name] = tmp_path / f"{field.name}.parquet"
        write_table(getattr(read, field.name), paths[field.name])
    assert len(load_latent(paths).rows) == 4
    write_table(read.grid.drop(columns="chosen"), paths["grid"])
    with pytest.raises(InputError, match=r"grid\.parquet lacks the columns chosen"):
        load_latent(paths)
