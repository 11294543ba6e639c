"""The word lists of RULER: those of the wonderwords package, read in place and never imported."""

from __future__ import annotations

from functools import cache

from whencount.collections.packages import package_files
from whencount.errors import InputError

PACKAGE = "wonderwords"


@cache
def word_list(kind: str) -> tuple[str, ...]:
    """All distinct words of a kind (`noun`, `adjective`, `verb`) in alphabetical order.

    Entries of several words are left out: they could not be told from their parts in a list.

    Raises:
        InputError: the package is not installed, or has no such list.
    """
    for relative, path in package_files(PACKAGE, (".txt",)):
        if relative.endswith(f"{kind}list.txt"):
            lines = path.read_text(encoding="utf-8").split("\n")
            return tuple(sorted({line.strip() for line in lines if line.strip().isalpha()}))
    raise InputError(
        f"the installed {PACKAGE} has no list of {kind}s; install the version that"
        " requirements.lock pins"
    )


@cache
def all_words() -> tuple[str, ...]:
    """The distinct nouns, adjectives and verbs, in alphabetical order."""
    return tuple(
        sorted({word for kind in ("noun", "adjective", "verb") for word in word_list(kind)})
    )
