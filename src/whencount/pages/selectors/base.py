"""What every selector is given and has to answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

import torch

from whencount.pages.calibration import LayerCalibration
from whencount.pages.prefill import LayerPrefix
from whencount.pages.settings import PageSettings
from whencount.pages.storage import LayerPages
from whencount.pages.summaries import non_negative, own_bounds, shared_bounds


@dataclass(frozen=True)
class LayerView:
    """One layer at one decode step, as the rows of one selector see it.

    Candidates are the complete pages between the sink pages and the current page, both of which are
    kept whatever a selector says; a candidate's number is its page less `settings.sink_pages`.

    Attributes:
        layer: from 0.
        queries: [rows, query heads, size], rotated.
        slots: [rows] int64, where the rows lie in `pages`.
        pages: keys of this layer and their extremes, this step's token included.
        prefix: what the prefill kept of this layer.
        calibration: what it showed; None where no selector of the session needs it.
        scaling: the factor of query times key.
        settings: page size and sink pages.
    """

    layer: int
    queries: torch.Tensor
    slots: torch.Tensor
    pages: LayerPages
    prefix: LayerPrefix
    calibration: LayerCalibration | None
    scaling: float
    settings: PageSettings
    _place: tuple[int, int] | None = None
    _whole: LayerView | None = None
    _found: dict[str, torch.Tensor] = field(default_factory=dict)

    @property
    def candidates(self) -> int:
        """How many pages there are to choose from."""
        return max(0, self.pages.complete - self.settings.sink_pages)

    @property
    def own_complete(self) -> int:
        """Complete pages that each row holds itself; the current one is not among them."""
        return max(0, self.pages.complete - self.pages.shared)

    def bounds(self) -> torch.Tensor:
        """Quest's bound, [rows, query heads, candidates] float32."""
        return self._once("bounds", LayerView._bounds)

    def values(self) -> torch.Tensor:
        """`softplus(bound)`, unscaled values of features, the same shape, float64."""
        return self._once("values", lambda view: non_negative(view.bounds()))

    def logits(self) -> torch.Tensor:
        """Query times key in the candidates: [rows, query heads, candidates, page] float32."""
        size = self.settings.page_tokens
        first, last = self.settings.sink_pages * size, self.pages.complete * size
        logits = self.pages.logits(self.queries, self.slots, self.scaling)[..., first:last]
        return logits.view(*logits.shape[:2], -1, size)

    def rows(self, start: int, stop: int) -> LayerView:
        """The same for some of the rows."""
        whole, first = self._whole or self, self._place[0] if self._place else 0
        return replace(
            self,
            queries=self.queries[start:stop],
            slots=self.slots[start:stop],
            _place=(first + start, first + stop),
            _whole=whole,
        )

    def _once(self, name: str, compute: Callable[[LayerView], torch.Tensor]) -> torch.Tensor:
        """What selectors of one step share is computed once, for all rows together."""
        whole = self._whole or self
        if name not in whole._found:
            whole._found[name] = compute(whole)
        return whole._found[name][slice(*self._place)] if self._place else whole._found[name]

    def _bounds(self) -> torch.Tensor:
        first = self.settings.sink_pages
        extremes = self.pages.shared_extremes[:, first:]
        found = shared_bounds(self.queries, extremes, self.scaling)
        if self.own_complete:
            start = max(0, first - self.pages.shared)
            own = self.pages.own_extremes[self.slots, :, start : self.own_complete]
            found = torch.cat((found, own_bounds(self.queries, own, self.scaling)), dim=-1)
        return found


class Selector(Protocol):
    """A rule that chooses pages for a batch of rows with one budget."""

    def choose(self, view: LayerView, count: int) -> torch.Tensor:
        """Choose among more candidates than are paid for.

        Args:
            view: the layer; `view.candidates > count > 0`.
            count: pages to choose.

        Returns:
            [rows, units, count] int64, numbers of candidates in any order, none twice. Units are
            query heads, or key-value heads where a group of query heads chooses together.
        """

    def keep(self, rows: torch.Tensor) -> None:
        """Go on with these rows only, [rows] int64, rising."""


class Stateless:
    """A selector that remembers nothing from step to step."""

    def keep(self, rows: torch.Tensor) -> None:
        """Nothing to forget."""


def best(scores: torch.Tensor, count: int) -> torch.Tensor:
    """The `count` highest of the last axis, int64, in any order."""
    return scores.topk(count, dim=-1, sorted=False).indices


def first_of_best(scores: torch.Tensor, count: int) -> torch.Tensor:
    """The same where scores may be equal: the earlier page goes first. Slower by far."""
    return scores.sort(dim=-1, descending=True, stable=True).indices[..., :count]
