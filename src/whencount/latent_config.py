"""What the schema of a configuration cannot say of its key `latent_terms`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from whencount.errors import InputError


def check_latent_terms(config: Mapping[str, Any]) -> None:
    """Check the names that the study of latent terms uses, and fill in those left out.

    `collections` become all that the study scores; the browser shows the first model, collection
    and seed.

    Raises:
        InputError: names the key, what was found and what is allowed.
    """
    latent = config.get("latent_terms")
    if not latent:
        return
    scored = scored_collections(config)
    if not scored:
        raise InputError(
            "configuration, latent_terms: there is no collection to search; add collections and a"
            " family that uses them (config.yaml has them)"
        )
    latent.setdefault("collections", scored)
    for name in latent["collections"]:
        _must_be(name, scored, "latent_terms.collections")
    browser = latent["browser"]
    for key, known in (
        ("model", list(latent["models"])),
        ("collection", latent["collections"]),
        ("seed", latent["seeds"]),
    ):
        _must_be(browser.setdefault(key, known[0]), known, f"latent_terms.browser.{key}")


def scored_collections(config: Mapping[str, Any]) -> list[str]:
    """The collections that some family of the study scores, in the order of the configuration."""
    named = [spec.get("collections", config["collections"]) for spec in config["families"].values()]
    return [name for name in config["collections"] if any(name in one for one in named)]


def is_limit(options: Mapping[str, Any], name: str) -> bool:
    """Whether a collection is one of LIMIT: made here, published, or a folder called limit-..."""
    source = options["source"]
    known = options.get("id", name) if source == "published" else name
    return source == "limit" or known == "limit" or name.startswith("limit-")


def _must_be(found: Any, known: list[Any], where: str) -> None:
    if found not in known:
        raise InputError(
            f"configuration, {where}: there is no {found!r}; name one of"
            f" {', '.join(map(str, known))}"
        )
