"""What the schema of a configuration cannot say of its key `experts`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from whencount.errors import InputError


def check_experts(config: Mapping[str, Any]) -> None:
    """Check the names of texts, their shares and sizes in a study of experts, where there is one.

    Raises:
        InputError: names the key, what was found and what is allowed.
    """
    experts = config.get("experts")
    if not experts:
        return
    for name, text in experts["texts"].items():
        total = math.fsum(text["parts"].values())
        if abs(total - 1) > 1e-9:
            raise InputError(
                f"configuration, experts.texts.{name}.parts: the shares add up to {total:g} and not"
                " to 1; change one"
            )
    for name, model in experts["models"].items():
        if model["source"] == "trained":
            _check_text(experts, f"models.{name}", model["text"], "train")
            _check_text(experts, f"models.{name}", model["text"], "validation")
            _check_sizes(experts, name, model)
    _check_text(experts, "calibration", experts["calibration"]["text"], "calibration")
    for name, evaluation in experts["evaluations"].items():
        if evaluation["source"] == "text":
            _check_text(experts, f"evaluations.{name}", evaluation["text"], "evaluation")
        _check_unseen(experts, name, evaluation)


def _check_text(experts: Mapping[str, Any], where: str, text: str, part: str) -> None:
    from whencount.collections.model import nearest

    if text not in experts["texts"]:
        raise InputError(
            f"configuration, experts.{where}.text: no text is called {text!r};"
            f" {nearest(text, experts['texts'])}"
        )
    if not experts["texts"][text]["parts"].get(part):
        raise InputError(
            f"configuration, experts.{where}.text: the text {text!r} keeps no documents for {part};"
            f" give that part a share in experts.texts.{text}.parts"
        )


def _check_unseen(experts: Mapping[str, Any], name: str, evaluation: Mapping[str, Any]) -> None:
    """Refuse an evaluation of what a model is trained or calibrated on under another name."""
    texts = experts["texts"]
    learnt = [experts["calibration"]["text"]]
    learnt += [one["text"] for one in experts["models"].values() if one["source"] == "trained"]
    evaluated = evaluation
    if evaluation["source"] == "text":
        if evaluation["text"] in learnt:
            return
        evaluated = texts[evaluation["text"]]
    split = "test" if evaluated is evaluation else "train"
    places = _places(evaluated, split)
    for text in dict.fromkeys(learnt):
        if places & _places(texts[text], "train"):
            raise InputError(
                f"configuration, experts.evaluations.{name}: it reads what the text {text!r} reads,"
                " and a model is trained or calibrated on that; evaluate another, or share one text"
                f" out by experts.texts.{text}.parts"
            )


def _places(options: Mapping[str, Any], split: str) -> set[tuple[str, ...]]:
    """What a text or an evaluation reads, in terms that tell two of them apart."""
    source = options["source"]
    if source == "packages":
        return {(source, str(package)) for package in options.get("packages", ())}
    if source in ("mmlu", "task"):
        return set()
    if "path" in options:
        return {("file", str(options["path"]))}
    if source == "wikitext":
        return {(source, str(options.get("name", "")), str(options.get("split", split)))}
    return {(source,)}


def _check_sizes(experts: Mapping[str, Any], name: str, model: Mapping[str, Any]) -> None:
    from whencount.experts.training_options import TrainingOptions

    try:
        sizes = TrainingOptions.of(
            {key: value for key, value in model.items() if key not in ("source", "text")}
        )
    except InputError as error:
        raise InputError(f"configuration, experts.models.{name}: {error}") from None
    asked = {"calibration.tokens": experts["calibration"]["tokens"]} | {
        f"evaluations.{evaluation}.context": options["context"]
        for evaluation, options in experts["evaluations"].items()
        if "context" in options
    }
    for where, tokens in asked.items():
        if tokens > sizes.context:
            raise InputError(
                f"configuration, experts.{where}: {tokens} tokens are more than the"
                f" {sizes.context} that the model {name!r} takes; lower it"
            )
    for active in experts["active"]:
        if active > sizes.experts:
            raise InputError(
                f"configuration, experts.active: {active} are more than the {sizes.experts}"
                f" experts of the model {name!r}; lower it"
            )
