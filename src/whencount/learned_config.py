"""What the schema of a configuration cannot say of its key `learned_sparse`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from whencount.errors import InputError
from whencount.latent_config import scored_collections


def check_learned_sparse(config: Mapping[str, Any]) -> None:
    """Check the names that the study of learned sparse vectors uses, fill in those left out.

    `collections` become all that the study scores, `baseline` the first model that is trained here.

    Raises:
        InputError: names the key, what was found and what is allowed.
    """
    learned = config.get("learned_sparse")
    if not learned:
        return
    scored = scored_collections(config)
    if not scored:
        raise InputError(
            "configuration, learned_sparse: there is no collection to search; add collections and a"
            " family that uses them (config.yaml has them)"
        )
    for name in learned.setdefault("collections", scored):
        _must_be(name, scored, "learned_sparse.collections")
    models = learned["models"]
    for name, model in models.items():
        given = [key for key in ("training", "checkpoint") if key in model]
        if len(given) != 1:
            raise InputError(
                f"configuration, learned_sparse.models.{name}: give either `training` (it is made"
                " here) or `checkpoint` (it is there), and not both"
            )
    _must_be(learned.setdefault("baseline", next(iter(models))), models, "learned_sparse.baseline")


def _must_be(found: Any, known: Any, where: str) -> None:
    if found not in known:
        raise InputError(
            f"configuration, {where}: there is no {found!r}; name one of"
            f" {', '.join(map(str, known))}"
        )
