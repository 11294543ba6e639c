"""The tables of all jobs of the study of latent terms, gathered."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from whencount.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

_NAMES = ["representation", "collection", "seed"]
_ORDER = {
    "rows": _NAMES,
    "per_query": [*_NAMES, "query_id"],
    "grid": [*_NAMES, "scorer"],
    "tuned": [*_NAMES, "scorer", "setting", "query_id"],
    "recall": [*_NAMES, "scorer", "setting", "part", "cutoff"],
    "pruning": _NAMES,
    "frequencies": [*_NAMES, "rank"],
}


def collect(kind: str, frames: Sequence[pd.DataFrame], wanted: int) -> pd.DataFrame:
    """The tables of one kind in one, sorted by what names a line.

    Args:
        kind: of `scoring.KINDS`.
        frames: one per job.
        wanted: how many jobs the configuration has.

    Raises:
        InputError: a job's table is empty though its kind has lines for every job, or a job stands
            twice.
    """
    import pandas as pd

    # An empty frame has no say in the types of the others.
    filled = [frame for frame in frames if len(frame)] or list(frames[:1])
    table = pd.concat(filled, ignore_index=True)
    jobs = len(table[_NAMES].drop_duplicates())
    if (kind != "recall" and jobs != wanted) or len(frames) != wanted:
        raise InputError(
            f"the tables {kind} of latent terms hold {jobs} jobs, the configuration {wanted}; run"
            " the study again"
        )
    return table.sort_values(_ORDER[kind], kind="stable", ignore_index=True)


def beside_tables(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Tables of collections, by its name, in one, with the column collection first."""
    import pandas as pd

    parts = []
    for collection, frame in sorted(frames.items()):
        part = frame.copy()
        part.insert(0, "collection", collection)
        parts.append(part)
    filled = [part for part in parts if len(part)] or parts[:1]
    return pd.concat(filled, ignore_index=True)


def training_table(models: Mapping[str, Path]) -> pd.DataFrame:
    """How the dictionaries of every model were trained, from the folders of `latent-train`.

    Returns:
        Lines by model, seed and step: `model` (string), `seed`, `step`, `states`, `dead` (int64),
        `training_fvu`, `validation_fvu`, `active` (float64).

    Raises:
        InputError: a folder lacks its `training.json`, or it is damaged.
    """
    import pandas as pd

    frames = []
    for model, folder in models.items():
        path = folder / "training.json"
        try:
            record = json.loads(path.read_text())
            frame = pd.DataFrame(record["lines"], columns=record["columns"])
        except (OSError, ValueError, KeyError) as error:
            raise InputError(
                f"{path} cannot be read ({error}); train the dictionaries of {model} again"
            ) from error
        frames.append(frame.assign(model=model))
    table = pd.concat(frames, ignore_index=True)
    whole = dict.fromkeys(("seed", "step", "states", "dead"), "int64")
    columns = ["model", "seed", "step", "states", "training_fvu", "validation_fvu"]
    return table[[*columns, "active", "dead"]].astype({"model": "str", **whole})
