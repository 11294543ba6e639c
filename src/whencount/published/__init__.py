"""The figures of the published study, shipped with the package and named as a run names its own.

README.md in this folder says where they are from. Nothing is computed from them: they stand beside
what a run found (`whencount.comparison`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from whencount.wording import joined

if TYPE_CHECKING:
    import pandas as pd

SETTINGS: Mapping[str, Any] = {
    "encoder": {
        "source": "hub",
        "name": "intfloat/multilingual-e5-base",
        "revision": "d13f1b27baf31030b7fd040960d60d909913633f",
        "max_tokens": 512,
        "query_prefix": "query: ",
        "passage_prefix": "passage: ",
    },
    "fit": {"source": "ir_datasets", "id": "msmarco-passage/train", "passages": 200_000},
    "bases": {
        "identity": {},
        "gaussian": {"dimensions": 768},
        "pca": {"components": 384},
        "kmeans": {"centroids": 4096, "nearest": 4},
        "pq": {"subspaces": 8, "bits": 8},
        "rq": {"stages": 8, "bits": 8},
        "sae": {
            "features": 8192,
            "active": 32,
            "epochs": 3,
            "learning_rate": 0.001,
            "batch": 4096,
        },
    },
}
"""What a run must have been made with for its cells to be those of the publication."""

_LABELS = ("name", "package", "path", "source")
_MS_MARCO_QUERIES = {"msmarco-dev": 6980, "trec-dl-2019": 43, "trec-dl-2020": 54}
_COLLECTIONS = {"dl19": "trec-dl-2019", "dl20": "trec-dl-2020"}
_BUDGETS = {"q32_d128": "32/128"}
_AXES = {
    "other_budgets": "budgets",
    "other_seeds": "seeds",
    "other_parameters": "parameters",
}
_PREDICTORS = {
    "pre-registered": "registered",
    "pseudo-labels": "pseudo_bm25",
    "pseudo": "pseudo_bm25",
}
_TARGETS = {
    "phi_saturation": "saturation",
    "phi_length": "length",
    "phi_idf": "idf",
    "G": "collection_gain",
}


def departures(settings: Mapping[str, Any]) -> list[str]:
    """In what a configuration departs from the published one, in words; empty where in nothing.

    `another encoder (x)`, `other text to fit the bases on`, `other settings of kmeans and sae`. A
    basis that the configuration leaves out is no departure, one that it adds is.

    Args:
        settings: `encoder`, `fit` (the text) and `bases` of a configuration; what is missing counts
            as a departure.
    """
    encoder, text, bases = (
        value if isinstance(value, Mapping) else {}
        for value in (settings.get(part) for part in ("encoder", "fit", "bases"))
    )
    found = []
    other = _other(encoder, SETTINGS["encoder"])
    if {"source", "name"} & set(other):
        label = next((encoder[key] for key in _LABELS if encoder.get(key)), "not named")
        found.append(f"another encoder ({label})")
    elif other:
        found.append(f"other settings of the encoder ({joined(other)})")
    if _other(text, SETTINGS["fit"]):
        found.append("other text to fit the bases on")
    changed = [
        name
        for name, options in bases.items()
        if name in SETTINGS["bases"] and _other(options or {}, SETTINGS["bases"][name])
    ]
    if changed:
        found.append(f"other settings of {joined(changed)}")
    added = [str(name) for name in bases if name not in SETTINGS["bases"]]
    if added:
        found.append(f"bases of its own ({joined(added)})")
    return found if bases else [*found, "no bases"]


def _other(given: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    return [key for key, value in wanted.items() if given.get(key) != value]


def rows() -> pd.DataFrame:
    """The 700 published rows, with the keys and column names of rows.parquet.

    gain, shapley_idf, shapley_saturation and shapley_length; the index statistics, `value_cv` among
    them, are null outside the 140 primary rows.
    """
    table = _named(_csv("shapley_rows.csv"))
    keys = ["representation", "collection", "basis", "granularity", "seed", "budget"]
    statistics = _named(_csv("index_statistics.csv")).assign(k1=1.2, b=0.75)
    return table.merge(statistics, on=[*keys, "k1", "b"], how="left", validate="one_to_one")


def quality() -> pd.DataFrame:
    """nDCG@10 per collection: bm25, dense, mean_000, mean_111, best_111; index `collection`."""
    table = _table("quality").rename(columns={"e5": "dense"})
    return table.rename(index=_collection)


def representations() -> pd.DataFrame:
    """Figures per representation, over the thirteen collections; index `representation`.

    Columns: quality_111, cv_x, phi_saturation, share_idf_plus_length, fraction_G_positive.
    """
    return _table("representations").rename(index=lambda name: name.replace("-", "_"))


def shares() -> pd.DataFrame:
    """Share of the gain per switch (columns), index: primary_182, primary_140 or a budget.

    `native_3` is the budget native on three collections, the other budgets are on ten.
    """
    return _table("shares")


def baselines() -> pd.DataFrame:
    """Text BM25 and dense retrieval: collection, system, metric, value."""
    table = _csv("baselines.csv")
    return table.assign(collection=table["collection"].map(_collection))


def queries() -> dict[str, int]:
    """How many queries were evaluated per collection."""
    table = baselines()
    counts = table[(table["metric"] == "examples") & (table["system"] == "bm25")]
    known = zip(counts["collection"], counts["value"], strict=True)
    return _MS_MARCO_QUERIES | {str(name): int(value) for name, value in known}


def predictors() -> pd.DataFrame:
    """Held-out scores named as in predictors.parquet: target, predictors, model, axis, then scores.

    Scores are r2, spearman and sign_accuracy; the R² of ridge models that are only in the printed
    table, to two decimals, have no other score.
    """
    import pandas as pd

    table = _csv("predictor_study.csv")
    named = table["model"].str.split(" / ", expand=True)
    fitted = named[1].notna()
    table = table.assign(
        predictors=named[0].replace(_PREDICTORS).where(fitted, "pseudo_bm25"),
        model=named[1].where(fitted, "unfitted"),
        axis=table["split"].replace(_AXES),
    )
    keys = ["target", "predictors", "model", "axis"]
    full = table[[*keys, "r2", "spearman", "sign_accuracy"]]
    held_out = _json("tables.json")["held_out_r2"]
    axes = held_out.pop("columns")
    printed = pd.DataFrame(
        [
            {
                "target": _TARGETS[target],
                "predictors": _PREDICTORS.get(tier, tier),
                "model": "ridge",
                "axis": axis,
                "r2": value,
            }
            for target, tiers in held_out.items()
            for tier, values in tiers.items()
            for axis, value in zip(axes, values, strict=True)
        ]
    )
    return pd.concat([full, printed], ignore_index=True).drop_duplicates(keys, ignore_index=True)


def decision() -> dict[str, float]:
    """Mean nDCG@10 of always, rule and oracle, and the recovered share of the headroom."""
    return {key: float(value) for key, value in _json("tables.json")["decision"].items()}


def hypotheses() -> dict[str, Any]:
    """The registered hypotheses by name, as confirmatory.json has them."""
    return dict(_json("confirmatory.json"))


def _collection(name: str) -> str:
    return _COLLECTIONS.get(name, name.replace("_", "-"))


def _named(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(
        representation=table["basis"] + "_" + table["granularity"],
        collection=table["collection"].map(_collection),
        budget=table["budget"].replace(_BUDGETS),
    )


def _csv(name: str) -> pd.DataFrame:
    import pandas as pd

    with (files(__name__) / name).open(encoding="utf-8") as stream:
        return pd.read_csv(stream, keep_default_na=False)


def _json(name: str) -> Any:
    return json.loads((files(__name__) / name).read_text(encoding="utf-8"))


def _table(name: str) -> pd.DataFrame:
    import pandas as pd

    content = _json("tables.json")[name]
    columns = content.pop("columns")
    return pd.DataFrame.from_dict(content, orient="index", columns=columns).astype(float)
