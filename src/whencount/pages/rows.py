"""Rows of setting B: tables of what the examples of a job gave (docs/tables.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whencount import attribution
from whencount.pages.answering import ExampleResult, PagesOptions
from whencount.pages.collecting import KINDS
from whencount.pages.settings import Rule
from whencount.pages.statistics import STATISTICS
from whencount.ranking_diagnostics import TIER_3, pseudo_columns
from whencount.ruler import score
from whencount.scoring import CONFIGURATIONS
from whencount.significance import FEWEST_QUERIES, resamples

if TYPE_CHECKING:
    import pandas as pd

KEYS = ("model", "task", "context", "budget", "variant", "k1", "b")
"""The columns that name a row."""

REFERENCE = "mass"
"""The label-free reference: exact attention mass (study, section 9)."""

DRAWS = 2_000
_INTERVAL = (2.5, 97.5)
_ROW_STATISTICS = STATISTICS[:12]


def tables(
    names: Mapping[str, Any],
    options: PagesOptions,
    results: Sequence[ExampleResult],
    seed: int = 0,
) -> dict[str, pd.DataFrame]:
    """The tables of a job by kind, `KINDS` of `whencount.pages.collecting`.

    Args:
        names: `model`, `task` and `context`, the first columns of every table.
        options: under which it ran.
        results: of `whencount.pages.answering.answer_examples`.
        seed: of the bootstrap.
    """
    rules = options.rules()
    scores = np.array(
        [
            [score(names["task"], text, one.references) for text in one.predictions]
            for one in results
        ]
    )
    job = ".".join(str(value) for value in names.values())
    found = (
        _rows(options, rules, results, scores),
        _per_example(rules, results, scores),
        _baselines(job, rules, scores, seed),
        _page_statistics(options, results),
        _selected(rules, results[0]),
    )
    for frame in found:
        for column, value in reversed(list(names.items())):
            frame.insert(0, column, value)
    return dict(zip(KINDS, found, strict=True))


def _rows(
    options: PagesOptions,
    rules: Sequence[Rule],
    results: Sequence[ExampleResult],
    scores: NDArray[np.float64],
) -> pd.DataFrame:
    import pandas as pd

    places = {(one.selector, one.budget, one.variant): row for row, one in enumerate(rules)}
    lines = []
    for cell, (budget, variant) in enumerate(options.cells):
        line: dict[str, Any] = {
            "budget": budget,
            "variant": variant,
            "k1": options.parameters.k1,
            "b": options.parameters.b,
            "examples": len(results),
        }
        for configuration in CONFIGURATIONS:
            place = places[str(configuration), budget, variant]
            line[f"q{configuration}"] = float(scores[:, place].mean())
        units = np.stack([one.statistics[cell] for one in results])
        means = _mean(units.swapaxes(0, 1).reshape(len(STATISTICS), -1))
        line |= dict(zip(STATISTICS, means.tolist(), strict=True))
        rankings = _mean(np.stack([one.rankings[cell] for one in results]).T)
        line |= dict(zip((*TIER_3, *pseudo_columns(REFERENCE)), rankings.tolist(), strict=True))
        lines.append(line)
    frame = pd.DataFrame(lines).drop(columns=list(STATISTICS[len(_ROW_STATISTICS) :]))
    targets = attribution.targets(frame)
    place = list(frame.columns).index("q111") + 1
    return pd.concat([frame.iloc[:, :place], targets, frame.iloc[:, place:]], axis=1)


def _mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Means of the last axis over what is defined; NaN where nothing is."""
    defined = np.isfinite(values)
    number = defined.sum(axis=-1)
    total = np.where(defined, values, 0.0).sum(axis=-1)
    mean = np.full(number.shape, np.nan)
    np.divide(total, number, out=mean, where=number > 0)
    return mean


def _rule_columns(rules: Sequence[Rule]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(
        {
            "selector": [one.selector for one in rules],
            "variant": [one.variant for one in rules],
            "budget": [one.budget for one in rules],
        }
    )


def _per_example(
    rules: Sequence[Rule], results: Sequence[ExampleResult], scores: NDArray[np.float64]
) -> pd.DataFrame:
    import pandas as pd

    parts = []
    for number, one in enumerate(results):
        part = _rule_columns(rules)
        part.insert(0, "example", one.id)
        part["score"] = scores[number]
        part["prediction"] = list(one.predictions)
        part["references"] = json.dumps(one.references, ensure_ascii=False)
        part["tokens"] = one.tokens
        part["generated"] = one.generated
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def _baselines(
    job: str, rules: Sequence[Rule], scores: NDArray[np.float64], seed: int
) -> pd.DataFrame:
    """Means and percentile intervals; all rules share their draws of examples."""
    examples = len(scores)
    frame = _rule_columns(rules)
    frame["score"] = scores.mean(axis=0)
    drawn = np.concatenate(
        [
            block @ scores / examples
            for block in resamples(examples, DRAWS, collection=job, seed=seed)
        ]
    )
    low, high = np.percentile(drawn, _INTERVAL, axis=0)
    # Resamples of a handful are too much alike to bound anything.
    few = examples < FEWEST_QUERIES
    frame["low"] = np.nan if few else low
    frame["high"] = np.nan if few else high
    frame["examples"] = examples
    return frame


def _page_statistics(options: PagesOptions, results: Sequence[ExampleResult]) -> pd.DataFrame:
    """Means over examples, by layer and query head (key-value head without the variant `head`)."""
    import pandas as pd

    shown = "head" if "head" in options.variants else options.variants[0]
    parts = []
    for cell, (budget, variant) in enumerate(options.cells):
        if variant != shown:
            continue
        values = np.stack([one.statistics[cell] for one in results], axis=-1)
        means = _mean(values)
        layers, heads = np.meshgrid(*map(np.arange, means.shape[1:]), indexing="ij")
        part = pd.DataFrame(
            {
                "budget": budget,
                "layer": layers.ravel() + options.settings.dense_layers,
                "head": heads.ravel(),
            }
        )
        for name, mean in zip(STATISTICS, means, strict=True):
            part[name] = mean.ravel()
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def _selected(rules: Sequence[Rule], result: ExampleResult) -> pd.DataFrame:
    """Pages read in one example, and the pages that hold its answer (selector `answer`)."""
    import pandas as pd

    rule, layer, head, step, page = result.selected.T
    frame = _rule_columns(rules).iloc[rule].reset_index(drop=True)
    frame = frame.assign(layer=layer, head=head, step=step, page=page)
    answer = pd.DataFrame({"page": result.answer_pages.astype(np.int32)})
    answer = answer.assign(selector="answer", variant="", budget=0)
    for column in ("layer", "head", "step"):
        answer[column] = np.int32(-1)
    both: pd.DataFrame = pd.concat([frame, answer[list(frame.columns)]], ignore_index=True)
    both.insert(0, "example", result.id)
    return both
