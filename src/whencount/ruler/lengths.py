"""The largest haystack that fits a context, found with few measurements."""

from __future__ import annotations

from collections.abc import Callable

_PROBE = 16
"""Steps above the least size at which the first slope is measured."""


def largest_fitting(measure: Callable[[int], int], sizes: range, limit: int) -> int | None:
    """The largest size that measures at most `limit`; None where not even the smallest does.

    `measure` must not fall with the size. A bracket around the
    answer is narrowed by interpolation, and by halving it where that narrows too little, so that a
    haystack of n tokens is measured about five times and never more than 2 log2 n times.

    Args:
        measure: size to tokens.
        sizes: those allowed, one at least.
        limit: tokens.
    """
    low, low_tokens = sizes[0], measure(sizes[0])
    if low_tokens > limit:
        return None
    high = min(low + _PROBE, sizes[-1])
    high_tokens = measure(high)
    while high_tokens <= limit:
        if high == sizes[-1]:
            return high
        slope = max((high_tokens - low_tokens) / (high - low), 1.0)
        step = max(int((limit - high_tokens) / slope) + 1, _PROBE)
        low, low_tokens = high, high_tokens
        high = min(low + step, sizes[-1])
        high_tokens = measure(high)
    halve = False
    while high - low > 1:
        width = high - low
        guess = low + width // 2
        if not halve:
            guess = low + int((limit - low_tokens) * width / (high_tokens - low_tokens))
        guess = min(max(guess, low + 1), high - 1)
        tokens = measure(guess)
        if tokens <= limit:
            low, low_tokens = guess, tokens
        else:
            high, high_tokens = guess, tokens
        halve = not halve and high - low > width // 2
    return low
