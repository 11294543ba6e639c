"""Decoding many rules as one batch over one prefilled context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from whencount.pages.calibration import Calibration
from whencount.pages.prefill import Prefix
from whencount.pages.settings import Rule


@dataclass(frozen=True)
class Selection:
    """The pages that one row read in one layer at one step.

    Attributes:
        row: place of the rule in the session.
        layer, step: both from 0; a step is a fed token.
        pages: [query heads, pages] int64, the current page last.
    """

    row: int
    layer: int
    step: int
    pages: torch.Tensor


class DecodingSession:
    """Rows that read the same context, each by its own rule, fed token by token.

    Keys and values of the context are held once; what a row appends is its own. A step reads, in
    each layer after the dense ones, only the pages that the rule of a row selects.

    Args:
        model: the one that prefilled the context.
        prefix: the context.
        calibration: its statistics; may be None where no rule is a configuration with a switch on.
        rules: one per row.
        room: tokens that a row may append.
        watched: rows whose selections are kept in `selections`.

    Raises:
        InputError: a budget that does not pay for the pages always kept, or one that was not
            calibrated.
    """

    selections: list[Selection]

    def __init__(
        self,
        model: Any,
        prefix: Prefix,
        calibration: Calibration | None,
        rules: Sequence[Rule],
        room: int,
        watched: Sequence[int] = (),
    ) -> None:
        raise NotImplementedError

    def feed(self, tokens: torch.Tensor) -> torch.Tensor:
        """Append one token to each living row: [rows] int64 in, [rows, vocabulary] float32 out.

        Raises:
            InputError: no room left, or logits that are not finite.
        """
        raise NotImplementedError

    def keep(self, rows: Sequence[int]) -> None:
        """Go on with these of the living rows only, in this order."""
        raise NotImplementedError

    def generate(
        self, question: Sequence[int], stops: Sequence[int], limit: int
    ) -> list[list[int]]:
        """Feed a question token by token, then decode greedily.

        Args:
            question: token ids, the same for every row, at least one.
            stops: ids that end an answer (left out of it).
            limit: the most tokens of an answer.

        Returns:
            Per rule, in the order of `rules`, the answer's token ids.
        """
        raise NotImplementedError
