"""Examples answered under every selector, variant and budget.

An example's context is prefilled once, densely; all rules then read its question and decode their
answers as one batch over that one cache.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from whencount.checkpoints import load_arrays, save_arrays
from whencount.collections.selection import priority
from whencount.errors import InputError
from whencount.language_models import LanguageModel, require_full_attention
from whencount.pages.calibration import calibrate
from whencount.pages.prefill import prefill
from whencount.pages.rankings import page_rankings
from whencount.pages.session import DecodingSession, Selection
from whencount.pages.settings import BASELINES, VARIANTS, PageSettings, Rule, rules_of
from whencount.pages.statistics import STATISTICS, unit_statistics
from whencount.progress import progress
from whencount.ruler import Example
from whencount.scoring import Parameters

STEPS_SHOWN = 16
"""Decode steps, evenly spaced, whose selections are kept of the first example."""


@dataclass(frozen=True)
class PagesOptions:
    """What is the same in every job of a study of pages.

    Attributes:
        budgets: in tokens.
        variants: of `VARIANTS`.
        selectors: of `BASELINES`; the eight configurations always run.
        settings: page size, dense layers, sinks, calibration positions.
        parameters: k1 and b of the configurations.
        seed: of the random pages.
        longest_answer: the most tokens of an answer; None: as many as the task lets.
    """

    budgets: tuple[int, ...]
    variants: tuple[str, ...] = VARIANTS
    selectors: tuple[str, ...] = BASELINES
    settings: PageSettings = field(default_factory=PageSettings)
    parameters: Parameters = field(default_factory=Parameters)
    seed: int = 0
    longest_answer: int | None = None

    @classmethod
    def of(cls, pages: Mapping[str, Any], seed: int = 0) -> PagesOptions:
        """Those of the key `pages` of a configuration; other keys in it are not looked at."""
        names = ("page_tokens", "dense_layers", "sink_pages", "calibration_positions")
        return cls(
            budgets=tuple(pages["budgets"]),
            variants=tuple(pages["variants"]),
            selectors=tuple(pages["selectors"]),
            settings=PageSettings(**{name: pages[name] for name in names}),
            parameters=Parameters(pages["k1"], pages["b"]),
            seed=seed,
            longest_answer=pages.get("longest_answer"),
        )

    def rules(self, example: str = "") -> tuple[Rule, ...]:
        """Every rule, in the order of answers; random pages are drawn anew for each example."""
        return rules_of(
            self.selectors,
            self.variants,
            self.budgets,
            self.parameters,
            priority(self.seed, example),
        )

    @property
    def cells(self) -> list[tuple[int, str]]:
        """(budget, variant) of every row."""
        return [(budget, variant) for budget in self.budgets for variant in self.variants]


@dataclass(frozen=True)
class ExampleResult:
    """What one example gave.

    Attributes:
        id: of the example.
        references: what a right answer holds.
        tokens: of context, question and answer at most.
        predictions: by rule, text.
        generated: int64, shape (rules,), tokens of each answer.
        rankings: float64, shape (cells, 27): disruption by switch, then spread, drop and mass of
            the eight configurations (`page_rankings`).
        statistics: by cell, float64, shape (statistics, layers, units): `STATISTICS` of the layers
            after the dense ones, by query head (`head`) or key-value head (`group`).
        selected: int32, shape (selections, 5): rule, layer, head, step, page; of the first example
            only, at the first budget.
        answer_pages: int64, pages of the context that hold a reference; of the first example only.
    """

    id: str
    references: tuple[str, ...]
    tokens: int
    predictions: tuple[str, ...]
    generated: NDArray[np.int64]
    rankings: NDArray[np.float64]
    statistics: tuple[NDArray[np.float64], ...]
    selected: NDArray[np.int32]
    answer_pages: NDArray[np.int64]


def answer_examples(
    language_model: LanguageModel,
    examples: Sequence[Example],
    options: PagesOptions,
    *,
    checkpoints: Path | None = None,
) -> list[ExampleResult]:
    """Answer every example under every rule; `whencount.pages.rows.tables` makes tables of it.

    Args:
        language_model: a Llama with full attention in every layer.
        examples: made as they are asked for.
        options: of the study.
        checkpoints: a folder that keeps finished examples (of these very arguments), so that a
            killed job goes on; None keeps none.

    Raises:
        InputError: the model's attention cannot be hooked, an example is longer than the model
            takes, a budget does not pay for the pages always kept, or logits are not finite.
    """
    require_full_attention(language_model.model, language_model.name)
    if len(examples) == 0:
        raise InputError("a task without examples has no score; ask for one at least")
    for budget in options.budgets:
        options.settings.choices_of(budget)
    return list(
        progress(
            _each(language_model, examples, options, checkpoints),
            len(examples),
            "decoding",
            "example",
        )
    )


def _each(
    language_model: LanguageModel,
    examples: Sequence[Example],
    options: PagesOptions,
    checkpoints: Path | None,
) -> Iterator[ExampleResult]:
    for number in range(len(examples)):
        part = checkpoints / f"example{number:05d}.npz" if checkpoints else None
        found = _read(part) if part else None
        if found is None:
            found = answer_example(language_model, examples[number], options, watched=number == 0)
            if part:
                _save(part, found)
        yield found


def answer_example(
    language_model: LanguageModel, example: Example, options: PagesOptions, *, watched: bool = False
) -> ExampleResult:
    """Answer one example under every rule.

    Args:
        watched: also keep which pages were selected.

    Raises:
        InputError: as `answer_examples`.
    """
    if example.tokens > language_model.context_limit:
        raise InputError(
            f"{example.id} has {example.tokens} tokens and {language_model.name} takes"
            f" {language_model.context_limit}; ask for a shorter context"
        )
    limit = min(example.maximum_generated, options.longest_answer or example.maximum_generated)
    rules = options.rules(example.id)
    context = language_model.encode(example.context)
    question = language_model.encode(example.question)
    prefix = prefill(
        language_model.model,
        torch.tensor(context, device=language_model.device),
        options.settings,
        received="h2o" in options.selectors,
    )
    calibration = calibrate(prefix, options.budgets)
    shown = [
        row
        for row, rule in enumerate(rules)
        if watched and rule.selector != "full" and rule.budget == options.budgets[0]
    ]
    session = DecodingSession(
        language_model.model,
        prefix,
        calibration,
        rules,
        room=len(question) + limit,
        watched=shown,
    )
    answers = session.generate(question, language_model.end_ids, limit)
    layers = calibration.layers[options.settings.dense_layers :]
    statistics, rankings = [], []
    for budget, variant in options.cells:
        units = [unit_statistics(layer, budget, variant == "group") for layer in layers]
        statistics.append(np.stack(units, axis=1) if units else np.empty((len(STATISTICS), 0, 0)))
        ranked = page_rankings(prefix, calibration, budget, variant, options.parameters)
        rankings.append(
            np.concatenate([ranked.disruption, ranked.spread, ranked.drop, ranked.mass])
        )
    return ExampleResult(
        id=example.id,
        references=example.references,
        tokens=example.tokens,
        predictions=tuple(language_model.decode(answer) for answer in answers),
        generated=np.array([len(answer) for answer in answers], dtype=np.int64),
        rankings=np.stack(rankings),
        statistics=tuple(statistics),
        selected=_selected(session.selections),
        answer_pages=_answer_pages(language_model, example, options.settings.page_tokens)
        if watched
        else np.empty(0, dtype=np.int64),
    )


def _selected(selections: Sequence[Selection]) -> NDArray[np.int32]:
    """Selections of evenly spaced steps as lines: rule, layer, head, step, page."""
    last = max((one.step for one in selections), default=-1)
    steps = set(np.linspace(0, last, min(STEPS_SHOWN, last + 1)).round().astype(int).tolist())
    parts = [np.empty((0, 5), dtype=np.int32)]
    for one in selections:
        if one.step not in steps:
            continue
        pages = one.pages.cpu().numpy().astype(np.int32)
        heads = np.repeat(np.arange(len(pages), dtype=np.int32), pages.shape[1])
        place = np.array([one.row, one.layer, 0, one.step, 0], dtype=np.int32)
        lines = np.tile(place, (pages.size, 1))
        lines[:, 2], lines[:, 4] = heads, np.sort(pages, axis=1).ravel()
        parts.append(lines)
    return np.concatenate(parts)


def _answer_pages(
    language_model: LanguageModel, example: Example, page_tokens: int
) -> NDArray[np.int64]:
    """Pages of the context in which a reference stands, wholly or in part."""
    encoded = language_model.tokenizer(
        example.context, add_special_tokens=False, return_offsets_mapping=True
    )
    spans = np.array(encoded["offset_mapping"], dtype=np.int64).reshape(-1, 2)
    text = example.context.lower()
    inside = np.zeros(len(spans), dtype=np.bool_)
    for reference in example.references:
        start = text.find(reference.lower())
        while start >= 0 and reference:
            inside |= (spans[:, 0] < start + len(reference)) & (spans[:, 1] > start)
            start = text.find(reference.lower(), start + 1)
    pages: NDArray[np.int64] = np.unique(np.flatnonzero(inside) // page_tokens)
    return pages


def _save(path: Path, result: ExampleResult) -> None:
    # JSON keeps text as it is, and numbers stay in arrays.
    text = {
        "id": result.id,
        "references": result.references,
        "tokens": result.tokens,
        "predictions": result.predictions,
    }
    arrays: dict[str, NDArray[Any]] = {
        "text": np.frombuffer(json.dumps(text).encode(), dtype=np.uint8),
        "generated": result.generated,
        "rankings": result.rankings,
        "selected": result.selected,
        "answer_pages": result.answer_pages,
    }
    arrays |= {f"statistics{number}": one for number, one in enumerate(result.statistics)}
    save_arrays(path, arrays)


def _read(path: Path) -> ExampleResult | None:
    """What `_save` wrote; None where there is nothing whole."""
    arrays = load_arrays(path)
    if arrays is None:
        return None
    text = json.loads(arrays["text"].tobytes())
    return ExampleResult(
        id=text["id"],
        references=tuple(text["references"]),
        tokens=text["tokens"],
        predictions=tuple(text["predictions"]),
        generated=arrays["generated"],
        rankings=arrays["rankings"],
        statistics=tuple(arrays[f"statistics{n}"] for n in range(len(arrays["rankings"]))),
        selected=arrays["selected"],
        answer_pages=arrays["answer_pages"],
    )
