"""The switchable correction over Quest's bound: BM25's three parts, a page for a document.

What a query head sees of a page is a feature: its value is `softplus(bound)` over the median
calibration value, its document frequency the calibration positions at which the page entered the
top k, N those at which it existed; the page's length is the norm of its extremes. Variant `head`: a
head ranks by its one feature. Variant `group`: the features of all query heads that share a
key-value head are summed.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from whencount.errors import InputError
from whencount.pages.calibration import LayerCalibration
from whencount.pages.selectors.base import LayerView, best, first_of_best
from whencount.pages.selectors.quest import Quest, by_group
from whencount.pages.settings import Rule
from whencount.pages.summaries import non_negative, page_lengths
from whencount.scoring import (
    Configuration,
    Parameters,
    inverse_document_frequency,
    length_factor,
    term_weight,
)

NATIVE = Configuration.parse("000")


def value_scale(calibration: LayerCalibration, group: bool) -> torch.Tensor:
    """What values are divided by, [query heads, 1] float64: by head, or one for a group."""
    if not group:
        return calibration.head_scale[:, None]
    per_group = len(calibration.head_scale) // len(calibration.group_scale)
    return calibration.group_scale.repeat_interleave(per_group)[:, None]


def page_values(bounds: torch.Tensor, calibration: LayerCalibration, group: bool) -> torch.Tensor:
    """Values of pages under every head: [rows, query heads, pages] float32 to float64."""
    return non_negative(bounds) / value_scale(calibration, group)


def page_idf(calibration: LayerCalibration, budget: int) -> torch.Tensor:
    """IDF of the context's pages, [query heads, pages] float64; 1 where a page never existed."""
    existed = calibration.existed
    weights = inverse_document_frequency(calibration.entered[budget], existed)
    return torch.where(existed > 0, weights, 1.0)


def corrected_scores(
    values: torch.Tensor,
    factors: torch.Tensor,
    idf: torch.Tensor,
    configuration: Configuration,
    k1: float,
) -> torch.Tensor:
    """Scores of pages under every head, by one configuration; float64, the shape of `values`."""
    factors = factors if configuration.length else torch.ones_like(factors)
    scores = term_weight(values, factors, configuration.saturation, k1)
    return scores * idf if configuration.idf else scores


class Corrected:
    """Rows with the same variant, budget and parameters and any configurations.

    Rows without any switch on come first, then those without saturation (see `order`); the former
    are handed to the native selector.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        configurations = [rule.configuration or NATIVE for rule in rules]
        if configurations != sorted(configurations, key=order):
            raise ValueError("rows stand in another order than that of `order`")
        self._group = rules[0].variant == "group"
        self._native = Quest(self._group)
        self._budget = rules[0].budget
        self._parameters: Parameters = rules[0].parameters
        self._configurations = configurations
        self._known: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def choose(self, view: LayerView, count: int) -> torch.Tensor:
        """See `Selector.choose`."""
        native = self._configurations.count(NATIVE)
        parts = []
        if native:
            parts.append(self._native.choose(view.rows(0, native), count))
        if native < len(self._configurations):
            # Without k1 saturation makes all weights equal.
            choice = best if self._parameters.k1 else first_of_best
            parts.append(choice(self._scores(view.rows(native, len(view.slots)), native), count))
        return torch.cat(parts) if len(parts) > 1 else parts[0]

    def keep(self, rows: torch.Tensor) -> None:
        """See `Selector.keep`."""
        self._configurations = [self._configurations[row] for row in rows.tolist()]

    def _scores(self, view: LayerView, first: int) -> torch.Tensor:
        """Scores of the rows from `first` on, [rows, units, candidates] float64."""
        if view.calibration is None:
            raise InputError("configurations with a switch on need a calibration; none was given")
        values = view.values() / value_scale(view.calibration, self._group)
        idf, length = self._documents(view, view.calibration)
        chosen = self._configurations[first:]
        factor = _where([one.length for one in chosen], length)
        plain = sum(not one.saturation for one in chosen)
        k1 = self._parameters.k1
        weights = torch.cat(
            (
                term_weight(values[:plain], factor[:plain], False, k1),
                term_weight(values[plain:], factor[plain:], True, k1),
            )
        )
        weights = weights * _where([one.idf for one in chosen], idf)
        if self._group:
            return by_group(weights, view.pages.heads)
        return weights

    def _documents(
        self, view: LayerView, calibration: LayerCalibration
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """IDF and length factors of the candidates, both [rows or 1, query heads, candidates]."""
        sinks = view.settings.sink_pages
        per_head = view.queries.shape[1] // view.pages.heads
        average = calibration.average_length[:, None]
        if view.layer not in self._known:
            factors = length_factor(calibration.lengths, average, self._parameters.b)
            self._known[view.layer] = (
                page_idf(calibration, self._budget),
                factors.repeat_interleave(per_head, dim=0),
            )
        # The calibration knows the context's complete pages, of which all are shared.
        idf, factor = (
            known[None, :, sinks : view.pages.shared] for known in self._known[view.layer]
        )
        if view.own_complete:
            start = max(0, sinks - view.pages.shared)
            own = page_lengths(view.pages.own_extremes[view.slots, :, start : view.own_complete])
            factors = length_factor(own, average, self._parameters.b)
            factors = factors.repeat_interleave(per_head, dim=1)
            factor = torch.cat((factor.expand(len(own), -1, -1), factors), dim=-1)
            # Pages that were written after calibration: unseen, so their IDF is 1.
            idf = torch.nn.functional.pad(idf, (0, factors.shape[-1]), value=1.0)
        return idf, factor


def order(configuration: Configuration) -> tuple[bool, bool, bool, bool]:
    """Key of the order of rows: the native one, then without saturation, then with it."""
    switches = (configuration.saturation, configuration.idf, configuration.length)
    return (configuration != NATIVE, *switches)


def _where(switches: Sequence[bool], values: torch.Tensor) -> torch.Tensor:
    """The values in rows whose switch is on, 1 elsewhere: [rows, query heads, candidates]."""
    on = torch.tensor(switches, device=values.device)[:, None, None]
    return torch.where(on, values, 1.0)
