"""Which pages each selector read in one example, as arrays to draw."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from whencount.setting_summaries.effects import CONFIGURATION_NAMES, variants_in_order
from whencount.setting_summaries.kv_pages import BASELINES

if TYPE_CHECKING:
    import pandas as pd

EXAMPLE = ("model", "task", "context", "example")


@dataclass(frozen=True)
class Selections:
    """How often every selector read every page of one example at one budget.

    Attributes:
        model, task, context, example: which example.
        budget: in tokens.
        selectors: (selector, variant) of every line, in the order in which they are shown.
        share: float64, shape (selectors, pages): of the decode steps, layers and heads of a
            selector, the share that read the page.
        read: float64, shape (selectors,): mean pages read per step, layer and head.
        answer: the pages that hold the answer, rising; empty where the table does not tell.
        answer_by_layer: float64, shape (selectors, layers): of the steps and heads of a layer, the
            share that read at least one page of the answer; empty without them. NaN where a
            selector has no line in a layer.
        layers: the layers, rising.
    """

    model: str
    task: str
    context: int
    example: str
    budget: int
    selectors: tuple[tuple[str, str], ...]
    share: NDArray[np.float64]
    read: NDArray[np.float64]
    answer: tuple[int, ...]
    answer_by_layer: NDArray[np.float64]
    layers: tuple[int, ...]


def selections(selected: pd.DataFrame) -> Iterator[Selections]:
    """The selections of every recorded example at every budget, in the order of the table.

    Args:
        selected: selected.parquet. Lines of the selector `answer` name the pages that hold the
            answer; their other columns are not looked at.
    """
    for key, lines in selected.groupby(list(EXAMPLE), sort=False):
        holds = lines.loc[lines["selector"] == "answer", "page"].astype("int64")
        answer = sorted(set(holds.tolist()))
        read = lines[lines["selector"] != "answer"]
        whole = read[read["selector"] == "full"]
        others = read[read["selector"] != "full"]
        for budget, part in others.groupby("budget", sort=True):
            both = part if len(whole) == 0 else _joined(whole, part)
            yield _of_one(key, int(str(budget)), both, answer)


def _joined(whole: pd.DataFrame, part: pd.DataFrame) -> pd.DataFrame:
    """Full attention has no budget of its own: it stands beside the others at each."""
    import pandas as pd

    keys = ["layer", "head", "step", "page"]
    return pd.concat([whole.drop_duplicates(keys), part], ignore_index=True)


def _of_one(
    key: tuple[object, ...], budget: int, lines: pd.DataFrame, answer: list[int]
) -> Selections:
    pages = max([*lines["page"].astype("int64").tolist(), *answer]) + 1
    layers = sorted(set(lines["layer"].astype("int64").tolist()))
    selectors = selectors_in_order(lines)
    share = np.zeros((len(selectors), pages))
    read = np.zeros(len(selectors))
    by_layer = np.full((len(selectors), len(layers) if answer else 0), np.nan)
    for place, (selector, variant) in enumerate(selectors):
        chosen = (lines["selector"] == selector) & (lines["variant"].fillna("") == variant)
        mine = lines[chosen].drop_duplicates(["layer", "head", "step", "page"])
        reads = mine.groupby(["layer", "head", "step"]).ngroups
        counts = np.bincount(mine["page"].to_numpy(dtype=np.int64), minlength=pages)
        share[place] = counts / reads
        read[place] = len(mine) / reads
        if answer:
            hit = mine["page"].isin(answer).groupby([mine[k] for k in ("layer", "head", "step")])
            per_layer = hit.any().groupby("layer").mean()
            by_layer[place] = per_layer.reindex(layers).to_numpy(dtype=np.float64)
    model, task, context, example = key
    return Selections(
        str(model),
        str(task),
        int(str(context)),
        str(example),
        budget,
        tuple(selectors),
        share,
        read,
        tuple(answer),
        by_layer,
        tuple(layers),
    )


def selectors_in_order(lines: pd.DataFrame) -> list[tuple[str, str]]:
    """Distinct (selector, variant): full, mass, the eight of each variant, then the others."""
    variant = lines["variant"].fillna("").astype(str)
    present = {
        (str(one), str(other)) for one, other in zip(lines["selector"], variant, strict=True)
    }
    configured = [
        (name, one)
        for one in variants_in_order([v for _, v in present])
        for name in CONFIGURATION_NAMES
    ]
    first = [(name, "") for name in BASELINES[:3]]
    rest = [(name, "") for name in BASELINES[3:]]
    known = [*first, *configured, *rest]
    return [one for one in known if one in present] + sorted(present - set(known))
