"""Numbers as a reader wants them in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

INTERVAL = "95\N{NO-BREAK SPACE}% interval "

FEW_COLLECTIONS = 6
"""With fewer, a resampled interval takes too few distinct values to be taken at its word."""


def percent(value: float, digits: int = 0) -> str:
    """`57 %`, with a true minus sign and a space that does not break."""
    # Adding 0 takes the sign off a rounded -0.
    rounded = round(100 * value, digits) + 0
    return f"{rounded:.{digits}f}\N{NO-BREAK SPACE}%".replace("-", "−")


def signed(value: float, digits: int = 3) -> str:
    """`+0.123`, with a true minus sign; `0` for an exact 0, `0.000` for one that rounds to it."""
    if value == 0:
        return "0"
    text = f"{value:+.{digits}f}".replace("-", "−")
    return text if text.strip("+−0.") else text[1:]


def number(value: float, digits: int = 3) -> str:
    """`0.123`, with a true minus sign; a dash for a missing one."""
    if value != value:  # noqa: PLR0124 - NaN alone differs from itself
        return "–"
    text = f"{value:.{digits}f}"
    return (text if text.strip("-0.") else text.lstrip("-")).replace("-", "−")


def plural(count: int, noun: str) -> str:
    """`1 row`, `1,200 rows`, `2 queries`."""
    if count != 1:
        noun = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {noun}"


def joined(parts: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def capital(text: str) -> str:
    """The text with its first letter large."""
    return text[:1].upper() + text[1:]
