"""What a model is evaluated on: likelihood of documents, or questions of the standard harness."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from whencount.collections.model import nearest
from whencount.errors import InputError
from whencount.experts.harness import HarnessTasks, question_tasks
from whencount.experts.rolling import rolling_likelihoods
from whencount.experts.texts import part_of

if TYPE_CHECKING:
    import pandas as pd

    from whencount.language_models import LanguageModel

SOURCES = ("text", "wikitext", "mmlu", "task")


class Evaluation(Protocol):
    """Measures a model under whichever rule is in charge of its routers."""

    def measure(self, model: LanguageModel, description: str = "measure") -> pd.DataFrame:
        """A line per document or question.

        Args:
            model: under whichever rule.
            description: what is being done, for a person.

        Returns:
            Columns document, subject, tokens, nll (nats per token), accuracy, words, bytes; as
            `whencount.experts.harness.HarnessTasks.measure`.
        """


@dataclass(frozen=True)
class Passage:
    """A document whose likelihood is measured.

    Attributes:
        id: of it.
        text: what the model sees.
        words, bytes: of the text as it is stored, by the harness's count.
    """

    id: str
    text: str
    words: int
    bytes: int

    @classmethod
    def of(cls, identifier: str, text: str) -> Passage:
        """A document that is stored as the model sees it."""
        return cls(identifier, text, len(re.split(r"\s+", text)), len(text.encode("utf-8")))


@dataclass(frozen=True)
class Likelihood:
    """Negative log-likelihood of documents by rolling windows.

    Attributes:
        passages: the documents.
        tokens: of each, at most; all where None. A cut document counts the words and bytes of
            what is left of it.
        context: the most tokens that the model reads at once; its own limit where None.
        tokens_per_pass: of a forward pass.
    """

    passages: Sequence[Passage]
    tokens: int | None = None
    context: int | None = None
    tokens_per_pass: int = 4096

    def measure(self, model: LanguageModel, description: str = "measure") -> pd.DataFrame:
        """See `Evaluation`."""
        import pandas as pd

        kept = [self._cut(model, passage) for passage in self.passages]
        totals = rolling_likelihoods(
            model.model,
            [ids for ids, _ in kept],
            prefix_of(model),
            context_of(model, self.context),
            self.tokens_per_pass,
            description,
        )
        counts = [len(ids) for ids, _ in kept]
        return pd.DataFrame(
            {
                "document": [passage.id for _, passage in kept],
                "subject": "",
                "tokens": counts,
                "nll": [total / max(1, count) for total, count in zip(totals, counts, strict=True)],
                "accuracy": float("nan"),
                "words": [passage.words for _, passage in kept],
                "bytes": [passage.bytes for _, passage in kept],
            }
        )

    def _cut(self, model: LanguageModel, passage: Passage) -> tuple[list[int], Passage]:
        ids = model.encode(passage.text)
        if self.tokens is None or len(ids) <= self.tokens:
            return ids, passage
        return ids[: self.tokens], Passage.of(passage.id, model.decode(ids[: self.tokens]))


@dataclass(frozen=True)
class Questions:
    """Tasks of the standard harness.

    Attributes:
        tasks: loaded ones.
        context: the most tokens that the model reads at once; its own limit where None.
        batch: requests of a forward pass.
    """

    tasks: HarnessTasks
    context: int | None = None
    batch: int = 8

    def measure(self, model: LanguageModel, description: str = "measure") -> pd.DataFrame:
        """See `Evaluation`."""
        print(description, file=sys.stderr, flush=True)
        return self.tasks.measure(model, context_of(model, self.context), self.batch)


@contextmanager
def open_evaluation(
    name: str, options: Mapping[str, Any], text: pd.DataFrame | None = None
) -> Iterator[Evaluation]:
    """Open an evaluation for a `with` block.

    Args:
        name: what the configuration calls it.
        options: `source`, what it takes, and for all `context` (tokens that the model reads at
            once, at most):

            * `text`: the part `evaluation` of a prepared text, its first `documents`, at most
              `tokens` of each;
            * `wikitext`: pages of WikiText-2, `split` (test); from `path`, or by the library
              `datasets` from `name` at `revision`;
            * `mmlu`: zero-shot MMLU from `path`, or by the library from `name` at `revision`;
              `questions` of each subject, at most, and `subjects`, a list;
            * `task`: the task `task` of the folder `path`, `metric` of it.
        text: of `whencount.experts.texts.prepare_text`, for `text`.

    Raises:
        InputError: an unknown source, or data that cannot be had; names the remedy.
    """
    source = options.get("source")
    context = options.get("context")
    per_pass = options.get("tokens_per_pass", 4096)
    if source in ("text", "wikitext"):
        passages = _passages(name, options, text)[: options.get("documents")]
        yield Likelihood(passages, options.get("tokens"), context, per_pass)
    elif source == "mmlu":
        from whencount.experts.mmlu import read_questions

        table = read_questions(
            options.get("path"),
            name=options.get("name"),
            revision=options.get("revision"),
            subjects=options.get("subjects"),
            limit=options.get("questions"),
        )
        with question_tasks(table) as tasks:
            yield Questions(tasks, context)
    elif source == "task":
        task = str(options["task"])
        tasks = HarnessTasks(Path(options["path"]), {task: task}, options.get("metric", "acc"))
        yield Questions(tasks, context)
    else:
        raise InputError(
            f"evaluation {name!r}: unknown source {source!r}; {nearest(str(source), SOURCES)}"
        )


def prefix_of(model: LanguageModel) -> int:
    """The token that stands before a document: the start token, or the one that ends a text.

    Raises:
        InputError: the tokenizer has neither.
    """
    for token in (model.tokenizer.bos_token_id, model.tokenizer.eos_token_id):
        if token is not None:
            return int(token)
    raise InputError(
        f"the tokenizer of {model.name} has no token to begin or end a text; choose another model"
    )


def context_of(model: LanguageModel, context: int | None) -> int:
    """How many tokens a model reads at once.

    Raises:
        InputError: more are asked for than it has positions.
    """
    if context is not None and context > model.context_limit:
        raise InputError(
            f"context is {context} and {model.name} takes {model.context_limit} tokens; lower it"
        )
    return context or model.context_limit


def _passages(name: str, options: Mapping[str, Any], text: pd.DataFrame | None) -> list[Passage]:
    if options["source"] == "wikitext":
        from whencount.experts.wikitext import read_pages

        pages = read_pages(
            options.get("split", "test"),
            path=options.get("path"),
            name=options.get("name"),
            revision=options.get("revision"),
        )
        return [Passage(page.id, page.text, page.words, page.bytes) for page in pages]
    if text is None:
        raise InputError(f"evaluation {name!r}: its text is not there; prepare it first")
    return [Passage.of(one.id, one.text) for one in part_of(text, "evaluation")]
