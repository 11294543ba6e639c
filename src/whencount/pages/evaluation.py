"""The job of one model, task and context: every rule answers every example; its tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whencount.language_models import LanguageModel
from whencount.pages.answering import PagesOptions, answer_examples
from whencount.pages.rows import tables
from whencount.ruler import Examples

if TYPE_CHECKING:
    import pandas as pd


def evaluate(
    language_model: LanguageModel,
    name: str,
    examples: Examples,
    study: Mapping[str, Any],
    *,
    seed: int = 0,
    checkpoints: Path | None = None,
) -> dict[str, pd.DataFrame]:
    """Answer every example under every rule, and make tables of it.

    Args:
        language_model: a Llama with full attention in every layer.
        name: of the model in the configuration.
        examples: of a task at a context length, made as they are asked for.
        study: the key `pages` of a configuration; models, tasks, contexts and texts in it are not
            looked at.
        seed: of random pages and of the bootstrap.
        checkpoints: a folder that keeps finished examples (of these very arguments), so that a
            killed job goes on; None keeps none.

    Returns:
        By kind, `KINDS` of `whencount.pages.collecting`; docs/tables.md has the columns.

    Raises:
        InputError: the model's attention cannot be hooked, an example is longer than the model
            takes, a budget does not pay for the pages always kept, or logits are not finite.
    """
    options = PagesOptions.of(study, seed)
    names = {"model": name, "task": examples.task, "context": examples.context}
    results = answer_examples(language_model, examples, options, checkpoints=checkpoints)
    return tables(names, options, results, seed)
