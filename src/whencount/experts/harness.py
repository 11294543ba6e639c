"""Tasks of lm-evaluation-harness, run with a model object in memory, offline from local files.

The harness sees an ordinary model: whichever rule is in charge of its routers stays in charge. Its
own tasks are left alone, since they ask a hub for data; a task is a YAML file that names local
data. A task that brings code is refused.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from whencount.errors import InputError
from whencount.experts.task_files import refuse_code, safe_templates

if TYPE_CHECKING:
    import pandas as pd

    from whencount.language_models import LanguageModel

_ROLLING = "loglikelihood_rolling"
_QUESTION = "{{question.strip()}}\n" + "".join(
    f"{letter}. {{{{choices[{place}]}}}}\n" for place, letter in enumerate("ABCD")
)


class HarnessTasks:
    """Tasks of a folder of YAML files, loaded with their data.

    Args:
        folder: with a YAML file for each task.
        names: of the tasks; task to what the results call its subject.
        metric: of multiple choice, `acc` say; its value of each question is a number. Of a task
            of rolling log-likelihoods the likelihood itself is taken.

    Raises:
        InputError: no such folder or task, one that calls code, or data that cannot be read.
    """

    def __init__(self, folder: Path, names: Mapping[str, str], metric: str = "acc") -> None:
        self._names = dict(names)
        self._metric = metric
        with _quiet():
            refuse_code(folder)
            from lm_eval.tasks import TaskManager

            manager = TaskManager(include_path=str(folder), include_defaults=False)
            missing = sorted(set(names) - set(manager.all_tasks))
            if missing:
                raise InputError(
                    f"{folder} has no task {missing[0]!r}; it has"
                    f" {', '.join(sorted(manager.all_tasks)) or 'none'}"
                )
            try:
                with safe_templates():
                    self._tasks: Any = manager.load(list(names))
            # Errors of the library, of the data it reads, and of templates.
            except Exception as error:
                reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
                raise InputError(
                    f"the tasks of {folder} cannot be loaded ({reason}); a task names local data by"
                    " `dataset_path: json` and `dataset_kwargs: {data_files: ...}`"
                ) from error

    def measure(self, model: LanguageModel, context: int, batch: int) -> pd.DataFrame:
        """Run the tasks, without examples in the prompt unless a task asks for them.

        Args:
            model: under whichever rule.
            context: the most tokens it reads at once.
            batch: requests of a forward pass.

        Returns:
            A line per question or document: document, subject, tokens, nll (nats per token; NaN for
            questions), accuracy (NaN for likelihoods), words, bytes (0 for questions).

        Raises:
            InputError: a task has no such metric, a template of it does not fit its data, or a
                likelihood is not finite.
        """
        import pandas as pd

        with _quiet():
            from jinja2 import TemplateError
            from lm_eval import evaluator
            from lm_eval.models.huggingface import HFLM

            harness = HFLM(
                pretrained=model.model,
                tokenizer=model.tokenizer,
                max_length=context,
                batch_size=batch,
            )
            try:
                with safe_templates():
                    results: Any = evaluator.evaluate(
                        harness, self._tasks, bootstrap_iters=0, verbosity="ERROR"
                    )
            except TemplateError as error:
                raise InputError(
                    f"a template of the task {', '.join(self._names)} cannot be filled"
                    f" ({type(error).__name__}: {error}); compare it with the fields of the data"
                ) from error
        lines = []
        for name, subject in self._names.items():
            samples = sorted(results["samples"][name], key=lambda sample: int(sample["doc_id"]))
            for sample in samples:
                line = {"document": f"{subject}/{sample['doc_id']}", "subject": subject}
                if self._tasks["tasks"][name].config.output_type == _ROLLING:
                    lines.append(line | _likelihood(sample, model))
                else:
                    lines.append(line | self._accuracy(sample, name))
        return pd.DataFrame(lines)

    def _accuracy(self, sample: Mapping[str, Any], name: str) -> dict[str, Any]:
        value = sample.get(self._metric)
        if not isinstance(value, int | float):
            raise InputError(
                f"the task {name} has no metric {self._metric!r} with one number for each question;"
                f" it has {', '.join(sample.get('metrics', [])) or 'none'}"
            )
        return {
            "tokens": 1,
            "nll": float("nan"),
            "accuracy": float(value),
            "words": 0,
            "bytes": 0,
        }


def _likelihood(sample: Mapping[str, Any], model: LanguageModel) -> dict[str, Any]:
    text = str(sample["target"])
    total = -float(np.asarray(sample["filtered_resps"], dtype=np.float64).reshape(-1)[0])
    if not np.isfinite(total):
        raise InputError(
            "the likelihood of a document is not a finite number; run the model with"
            " `precision: fp32`"
        )
    tokens = len(model.encode(text))
    return {
        "tokens": tokens,
        "nll": total / max(1, tokens),
        "accuracy": float("nan"),
        "words": len(re.split(r"\s+", text)),
        "bytes": len(text.encode("utf-8")),
    }


@contextmanager
def question_tasks(questions: pd.DataFrame) -> Iterator[HarnessTasks]:
    """Zero-shot multiple choice as the harness words MMLU, from a table, for a `with` block.

    Args:
        questions: columns question, choices (four texts), answer (0 to 3), subject.
    """
    with tempfile.TemporaryDirectory(prefix="whencount.") as place:
        folder = Path(place)
        names = {}
        for number, (subject, part) in enumerate(questions.groupby("subject", sort=True)):
            name = f"subject_{number}"
            names[name] = str(subject)
            data = folder / f"{name}.jsonl"
            records = part[["question", "choices", "answer"]].to_dict("records")
            lines = [
                json.dumps(
                    {
                        "question": str(one["question"]),
                        "choices": [str(choice) for choice in one["choices"]],
                        "answer": int(one["answer"]),
                    }
                )
                for one in records
            ]
            data.write_text("\n".join(lines) + "\n", encoding="utf-8")
            task = _question_task(name, str(subject), data, folder / "cache")
            # JSON is YAML.
            (folder / f"{name}.yaml").write_text(json.dumps(task, indent=1), encoding="utf-8")
        yield HarnessTasks(folder, names)


def _question_task(name: str, subject: str, data: Path, cache: Path) -> dict[str, Any]:
    """The harness's task `mmlu_SUBJECT` (version 1.0) on local data, without examples."""
    return {
        "task": name,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(data)}, "cache_dir": str(cache)},
        "test_split": "test",
        "output_type": "multiple_choice",
        "description": "The following are multiple choice questions (with answers) about"
        f" {subject.replace('_', ' ')}.\n\n",
        "doc_to_text": f"{_QUESTION}Answer:",
        "doc_to_choice": list("ABCD"),
        "doc_to_target": "answer",
        "num_fewshot": 0,
        "metric_list": [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}],
        "metadata": {"version": 1.0},
    }


@contextmanager
def _quiet() -> Iterator[None]:
    """Hold back what the harness prints of every request."""
    from whencount.encoders.quiet import quiet_transformers

    loggers = [logging.getLogger(name) for name in ("lm_eval", "datasets")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with quiet_transformers(), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
