"""Tables of made-up studies of KV pages and of expert routing, in the schema of docs/tables.md.

Scores are drawn so that the identities of the study hold exactly; targets and intervals come from
the library itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pandas as pd

from whencount import attribution
from whencount.attribution import QUALITY_COLUMNS
from whencount.setting_summaries.effects import CONFIGURATION_NAMES
from whencount.tables import write_table

CLASSES = {
    # For each variant, the class of a configuration: those of one class choose the same.
    "head": {"010": "000", "011": "001"},
    "group": {},
    "token": {"001": "000", "010": "000", "011": "000", "101": "100"},
    "expert": {"010": "000", "011": "001"},
}
TASKS = ("niah_single_1", "niah_multikey_1", "vt")
BUDGETS = (128, 256)
EXAMPLES = 12
PAGES = 40
ANSWER = (17, 18)
CHANCE = {"full": 0.97, "mass": 0.9, "quest": 0.8, "h2o": 0.35, "streaming": 0.1, "random": 0.15}
COST = {"000": 0.0, "001": 0.05, "010": -0.02, "011": 0.02, "100": 0.4, "101": 0.35, "110": 0.3,
        "111": 0.45}  # fmt: skip


@dataclass(frozen=True)
class Tables:
    """Tables by name."""

    def write(self, folder: Path) -> dict[str, str]:
        """Write all of them; the paths by name, as the report's parameters take them."""
        paths = {}
        for field in fields(self):
            write_table(getattr(self, field.name), folder / f"{field.name}.parquet")
            paths[field.name] = str(folder / f"{field.name}.parquet")
        return paths


@dataclass(frozen=True)
class PagesTables(Tables):
    """The tables of a study of KV pages."""

    rows: pd.DataFrame
    per_example: pd.DataFrame
    baselines: pd.DataFrame
    selected: pd.DataFrame
    page_statistics: pd.DataFrame
    unavailable: pd.DataFrame


@dataclass(frozen=True)
class ExpertsTables(Tables):
    """The tables of a study of expert routing."""

    rows: pd.DataFrame
    per_document: pd.DataFrame
    baselines: pd.DataFrame
    routing: pd.DataFrame
    training: pd.DataFrame


def pages_tables(
    tasks: tuple[str, ...] = TASKS, contexts: tuple[int, ...] = (1024,), text: str = ""
) -> PagesTables:
    """A study of KV pages; `text` is in every prediction, reference and name."""
    model = f"made{text}"
    lines = []
    for task in tasks:
        for context in contexts:
            for budget in BUDGETS:
                lines += _outputs(model, f"{task}{text}", context, budget, text)
    per_example = pd.DataFrame(lines)
    baselines = _with_intervals(
        per_example, ["model", "task", "context", "budget", "selector", "variant"], "score",
        "examples",
    )  # fmt: skip
    return PagesTables(
        _rows(baselines, ["model", "task", "context", "budget", "variant"], "selector", "score"),
        per_example,
        baselines,
        _selected(model, f"{tasks[0]}{text}", contexts[0], text),
        _page_statistics(model, f"{tasks[0]}{text}", contexts[0]),
        pd.DataFrame([{"task": f"qa_1{text}", "reason": f"no file of questions was given{text}"}]),
    )


def _outputs(
    model: str, task: str, context: int, budget: int, text: str
) -> list[dict[str, object]]:
    chosen = [(selector, "") for selector in CHANCE]
    chosen += [(name, variant) for variant in ("head", "group") for name in CONFIGURATION_NAMES]
    lines = []
    for selector, variant in chosen:
        native = CLASSES.get(variant, {}).get(selector, selector)
        key = f"{task}{context}{native}{variant}{budget if selector != 'full' else ''}"
        random = np.random.default_rng([7, *key.encode()])
        chance = CHANCE.get(selector, CHANCE["quest"] - COST.get(native, 0))
        wider = 0.1 * (budget == BUDGETS[-1] and selector != "full")
        hits = random.uniform(size=EXAMPLES) < chance + wider
        if selector == "quest" or (native, variant) == ("000", "head"):
            quest = np.random.default_rng([7, *f"{task}{context}{budget}".encode()])
            hits = quest.uniform(size=EXAMPLES) < CHANCE["quest"]
        lines += [
            {
                "model": model,
                "task": task,
                "context": context,
                "example": f"{number}{text}",
                "selector": selector,
                "variant": variant,
                "budget": budget,
                "score": float(hit),
                "prediction": f"the number is {4711 if hit else 12}{text}",
                "references": json.dumps([f"4711{text}"]),
                "tokens": context - 7,
                "generated": 8,
            }
            for number, hit in enumerate(hits)
        ]
    return lines


def _with_intervals(
    units: pd.DataFrame, keys: list[str], value: str, count: str, weight: str = ""
) -> pd.DataFrame:
    lines = []
    for key, part in units.groupby(keys, sort=True):
        weights = part[weight] if weight else pd.Series(1.0, index=part.index)
        mean = float((part[value] * weights).sum() / weights.sum())
        half = 1.96 * float(part[value].std(ddof=0)) / len(part) ** 0.5
        lines.append(
            dict(zip(keys, key, strict=True))
            | {value: mean, "low": mean - half, "high": mean + half, count: len(part)}
        )
    return pd.DataFrame(lines)


def _rows(baselines: pd.DataFrame, keys: list[str], rule: str, value: str) -> pd.DataFrame:
    configured = baselines[baselines[rule].isin(CONFIGURATION_NAMES)]
    wide = configured.pivot_table(index=keys, columns=rule, values=value).reset_index()
    wide = wide.rename(columns={name: f"q{name}" for name in CONFIGURATION_NAMES})
    wide.columns.name = None
    wide = wide.assign(k1=1.2, b=0.75, examples=EXAMPLES, documents=EXAMPLES)
    frame = pd.concat([wide, attribution.targets(wide)], axis=1)
    random = np.random.default_rng(3)
    for name in ("value_cv", "length_cv", "idf_variance"):
        frame[name] = random.uniform(0.1, 0.9, len(frame))
    for switch in ("idf", "saturation", "length"):
        frame[f"disruption_{switch}"] = random.uniform(0, 0.5, len(frame))
    for name in QUALITY_COLUMNS:
        frame[f"pseudo_mass_{name[1:]}"] = random.uniform(0.3, 0.9, len(frame))
        frame[f"pseudo_dense_{name[1:]}"] = -random.uniform(0.01, 0.4, len(frame))
    return frame


def _selected(model: str, task: str, context: int, text: str) -> pd.DataFrame:
    random = np.random.default_rng(5)
    parts = []
    chosen = [(name, "") for name in CHANCE]
    chosen += [(name, variant) for variant in ("head", "group") for name in CONFIGURATION_NAMES]
    for selector, variant in chosen:
        for layer in (2, 5):
            for head in (0, 1):
                for step in range(3):
                    weights = np.ones(PAGES)
                    weights[list(ANSWER)] = 20 if selector in ("mass", "quest", "000") else 0.5
                    picked = random.choice(PAGES, 8, replace=False, p=weights / weights.sum())
                    pages = np.arange(PAGES) if selector == "full" else np.sort(picked)
                    parts.append(
                        pd.DataFrame(
                            {
                                "selector": selector,
                                "variant": variant,
                                "budget": BUDGETS[0],
                                "layer": layer,
                                "head": head,
                                "step": step,
                                "page": pages,
                            }
                        )
                    )
    parts.append(
        pd.DataFrame(
            {
                "selector": "answer",
                "variant": "",
                "budget": 0,
                "layer": -1,
                "head": -1,
                "step": -1,
                "page": list(ANSWER),
            }
        )
    )
    lines = pd.concat(parts, ignore_index=True)
    return lines.assign(model=model, task=task, context=context, example=f"0{text}")


def _page_statistics(model: str, task: str, context: int) -> pd.DataFrame:
    random = np.random.default_rng(9)
    return pd.DataFrame(
        [
            {
                "model": model,
                "task": task,
                "context": context,
                "budget": budget,
                "variant": variant,
                "layer": layer,
                "head": head,
                "nnz_cv": np.nan,
                "frequency_mean": random.uniform(0.1, 0.4),
                "frequency_zero": random.uniform(0.0, 0.5),
                "value_cv": random.uniform(0.2, 1.2),
                "length_cv": random.uniform(0.01, 0.2),
            }
            for budget in BUDGETS
            for variant in ("head", "group")
            for layer in range(2, 8)
            for head in range(3)
        ]
    )


def experts_tables(text: str = "", accuracy: bool = True) -> ExpertsTables:
    """A study of expert routing; `text` is in every name. With `accuracy` it has MMLU too."""
    model = f"trained{text}"
    units = _documents(model, f"library{text}", nll=True)
    if accuracy:
        units += _documents(model, f"mmlu{text}", nll=False)
    per_document = pd.DataFrame(units)
    quality = per_document.assign(
        quality=(-per_document["nll"]).fillna(per_document["accuracy"]),
        weight=per_document["tokens"],
    )
    keys = ["model", "evaluation", "active", "variant", "rule"]
    baselines = _with_intervals(quality, keys, "quality", "documents", "weight")
    return ExpertsTables(
        _rows(baselines, keys[:-1], "rule", "quality"),
        per_document,
        baselines,
        _routing(model),
        _training(),
    )


_CHANGE: Mapping[str, float] = {
    "native": 0.0, "balanced": 0.007, "preserved": 0.01, "random": 2.4, "dense": 0.036,
    "000": 0.0, "001": 0.002, "010": -0.001, "011": 0.004, "100": 0.017, "101": 0.02,
    "110": 0.012, "111": 0.018,
}  # fmt: skip


def _documents(model: str, evaluation: str, *, nll: bool) -> list[dict[str, object]]:
    chosen = [(name, "") for name in ("native", "balanced", "preserved", "random", "dense")]
    chosen += [(name, variant) for variant in ("token", "expert") for name in CONFIGURATION_NAMES]
    lines = []
    base = np.random.default_rng(11).normal(2.9, 0.3, EXAMPLES)
    for rule, variant in chosen:
        native = CLASSES.get(variant, {}).get(rule, rule)
        key = "" if native in ("native", "000") else native + variant
        noise = np.random.default_rng([13, *key.encode()]).normal(0, 0.02 * bool(key), EXAMPLES)
        change = 0.0 if not key else _CHANGE[native] * (4 if variant == "expert" else 1) + noise
        for number, value in enumerate(np.broadcast_to(base + change, EXAMPLES)):
            lines.append(
                {
                    "model": model,
                    "evaluation": evaluation,
                    "document": f"{'document' if nll else 'question'} {number}",
                    "subject": "" if nll else f"subject {number % 3}",
                    "rule": rule,
                    "variant": variant,
                    "active": 8,
                    "tokens": 100 + number if nll else 1,
                    "nll": float(value) if nll else np.nan,
                    "accuracy": np.nan if nll else float(np.clip(0.9 - value / 5, 0, 1)),
                }
            )
    return lines


def _routing(model: str) -> pd.DataFrame:
    lines = []
    for layer in range(3):
        random = np.random.default_rng([17, layer])
        frequency = np.sort(random.pareto(1.5, 64))[::-1]
        frequency = 8 * frequency / frequency.sum()
        frequency = np.minimum(frequency, 0.6)
        for rule, variant in (
            ("000", "token"), ("100", "token"), ("111", "token"), ("000", "expert"),
            ("111", "expert"), ("balanced", ""), ("preserved", ""), ("random", ""),
        ):  # fmt: skip
            pull = {"000": 0.0, "100": 0.2, "111": 0.3, "balanced": 0.1, "preserved": 0.01}.get(
                rule, 1.0
            )
            share = (1 - pull) * frequency + pull * 8 / 64
            lines += [
                {
                    "model": model,
                    "active": 8,
                    "layer": layer,
                    "expert": expert,
                    "frequency": float(frequency[expert]),
                    "rule": rule,
                    "variant": variant,
                    "share": float(share[expert]),
                    "entered": max(float(share[expert] - frequency[expert]), 0.0),
                    "left": max(float(frequency[expert] - share[expert]), 0.0),
                }
                for expert in range(64)
            ]
    return pd.DataFrame(lines)


def _training() -> pd.DataFrame:
    step = np.arange(0, 2001, 50)
    loss = 3.1 + 5.2 * np.exp(-step / 300)
    return pd.DataFrame(
        {
            "model": "trained",
            "step": step,
            "loss": loss,
            "validation": np.where(step % 200 == 0, loss + 0.1, np.nan),
        }
    )
