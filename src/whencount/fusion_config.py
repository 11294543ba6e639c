"""What the schema of a configuration cannot say of its key `fusion`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from whencount.errors import InputError

_ARMS = ("bm25", "dense")


def check_fusion(config: Mapping[str, Any]) -> None:
    """Check what a study of two arms needs, when it is asked for: collections, references, depth.

    Raises:
        InputError: names the key, what was found and what is allowed.
    """
    fusion = config.get("fusion")
    if not fusion:
        return
    known = list(config["collections"])
    for name in fusion.get("collections", []):
        if name not in known:
            from whencount.collections.model import nearest

            raise InputError(
                f"configuration, fusion.collections: no collection is called {name!r};"
                f" {nearest(name, known)}"
            )
    lacking = [name for name in _ARMS if name not in config.get("references", {})]
    if known and lacking:
        raise InputError(
            f"configuration, fusion: its two arms are the references bm25 and dense, and"
            f" {' and '.join(lacking)} is not asked for; add it to references"
        )
    depth = config.get("search", {}).get("depth")
    if depth is not None and fusion["depth"] > depth:
        raise InputError(
            f"configuration, fusion.depth: {fusion['depth']} rows are more than the {depth} that"
            " search.depth keeps of a ranking; take fewer, or keep more"
        )
