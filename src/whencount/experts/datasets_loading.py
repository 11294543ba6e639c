"""Data sets of the hub, through the library `datasets`: data files only, never code."""

from __future__ import annotations

from typing import Any

from whencount.errors import InputError


def load_columns(
    name: str, configuration: str | None, split: str, revision: str | None, remedy: str
) -> dict[Any, list[Any]]:
    """The columns of a split, from the library's cache or from the hub.

    Args:
        name: of the repository.
        configuration: of the dataset.
        split: of it.
        revision: commit; without one the newest counts.
        remedy: what a person without the data can do, an imperative phrase.

    Raises:
        InputError: it is neither in the cache nor reachable.
    """
    try:
        from datasets import load_dataset

        loaded: Any = load_dataset(name, configuration, split=split, revision=revision)
        return {column: list(loaded[column]) for column in loaded.column_names}
    # The library raises its own errors, and those of three libraries below it.
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:160]
        raise InputError(
            f"the data set {name} ({split}) is neither in the local cache nor reachable ({reason});"
            f" {remedy}"
        ) from error
