"""Decoding many rules as one batch over one prefilled context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch

from whencount.errors import InputError
from whencount.pages.attention import attach
from whencount.pages.calibration import Calibration
from whencount.pages.prefill import Prefix
from whencount.pages.reading import pages_to_read, read_everything, read_pages
from whencount.pages.selectors import LayerView, Selector, order, selector_of
from whencount.pages.settings import Rule
from whencount.pages.storage import LayerPages


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


@dataclass
class _Batch:
    """Living rows, next to each other, that one selector serves; without one they read all."""

    start: int
    stop: int
    selector: Selector | None
    count: int
    by_group: bool

    def reading(self, view: LayerView) -> tuple[bool, bool, int]:
        """What batches have in common that one gather can serve."""
        return self.selector is None, self.by_group, min(self.count, view.candidates)


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
        attach(model)
        self.selections = []
        self.rules = tuple(rules)
        self._model = model
        self._prefix = prefix
        self._calibration = calibration
        self._device = prefix.logits.device
        self._watched = frozenset(watched)
        self._room = room
        self._step = 0
        self._check(calibration)
        # Internally rows of one selector stand together; `_rows` says which row each one is.
        self._rows = sorted(range(len(rules)), key=lambda row: _sort_key(rules[row]))
        self._batches = self._make_batches()
        self._slots = torch.arange(len(rules), device=self._device)
        self._layers = [
            LayerPages(layer, len(rules), room, prefix.settings.page_tokens)
            for layer in prefix.layers
        ]

    def feed(self, tokens: torch.Tensor, *, logits: bool = True) -> torch.Tensor:
        """Append one token to each living row.

        Args:
            tokens: [rows] int64, in the order of the living rows.
            logits: whether they are asked for; without them [rows, 0] is returned.

        Returns:
            [rows, vocabulary] float32.

        Raises:
            InputError: no room left, or logits that are not finite.
        """
        if self._step >= self._room:
            raise InputError(f"a session with room for {self._room} tokens was fed one more")
        back, forth = self._orders()
        position = self._prefix.tokens + self._step
        with torch.no_grad():
            output = self._model(
                input_ids=tokens.to(self._device)[forth, None],
                position_ids=torch.full((len(forth), 1), position, device=self._device),
                use_cache=False,
                logits_to_keep=1 if logits else torch.empty(0, dtype=torch.int64),
                page_reader=self,
            )
        self._step += 1
        if not logits:
            return torch.empty(len(forth), 0)
        found: torch.Tensor = output.logits[back, -1].float()
        if not bool(torch.isfinite(found).all()):
            raise InputError(
                f"the model gives logits that are not finite after {position + 1} tokens;"
                " load it in fp32, or fetch its weights again where it is"
            )
        return found

    def keep(self, rows: Sequence[int]) -> None:
        """Go on with these rows only (places of their rules), which must be living."""
        wanted = set(rows)
        kept = [place for place, row in enumerate(self._rows) if row in wanted]
        if len(kept) != len(wanted) or len(kept) != len(rows):
            raise ValueError(f"rows {sorted(rows)} are not all alive, each once")
        batches, start = [], 0
        for batch in self._batches:
            inside = [place - batch.start for place in kept if batch.start <= place < batch.stop]
            if inside:
                if batch.selector is not None and len(inside) < batch.stop - batch.start:
                    batch.selector.keep(torch.tensor(inside, device=self._device))
                batch.start, start = start, start + len(inside)
                batch.stop = start
                batches.append(batch)
        self._batches = batches
        self._slots = self._slots[torch.tensor(kept, dtype=torch.int64, device=self._device)]
        self._rows = [self._rows[place] for place in kept]

    @property
    def living(self) -> tuple[int, ...]:
        """Rows that are still fed, rising: the order of what `feed` takes and gives."""
        return tuple(sorted(self._rows))

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
        answers: list[list[int]] = [[] for _ in self.rules]
        if not len(question):
            raise InputError("an empty question: a session needs at least one token to go on from")
        for token in question[:-1]:
            self.feed(torch.full((len(self._rows),), token), logits=False)
        given = torch.full((len(self._rows),), question[-1])
        ends = frozenset(stops)
        for made in range(1, limit + 1):
            chosen = self.feed(given).argmax(-1).tolist()
            going = [
                (row, token)
                for row, token in zip(self.living, chosen, strict=True)
                if token not in ends
            ]
            for row, token in going:
                answers[row].append(token)
            if not going or made == limit:
                break
            if len(going) < len(chosen):
                self.keep([row for row, _ in going])
            given = torch.tensor([token for _, token in going])
        return answers

    def read(
        self,
        layer: int,
        queries: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        scaling: float,
    ) -> torch.Tensor:
        """Attention of a decode step: see `whencount.pages.attention.PageReader`."""
        pages = self._layers[layer]
        pages.append(self._slots, keys[:, :, 0], values[:, :, 0])
        view = LayerView(
            layer=layer,
            queries=queries[:, :, 0],
            slots=self._slots,
            pages=pages,
            prefix=self._prefix.layers[layer],
            calibration=self._calibration.layers[layer] if self._calibration else None,
            scaling=scaling,
            settings=self._prefix.settings,
        )
        if layer < view.settings.dense_layers:
            return read_everything(view)[:, :, None]
        alike = groupby(self._batches, key=lambda batch: batch.reading(view))
        parts = [self._read_batches(view, list(batches)) for _, batches in alike]
        return torch.cat(parts)[:, :, None]

    def _read_batches(self, view: LayerView, batches: Sequence[_Batch]) -> torch.Tensor:
        """Attention of batches next to each other, [rows, query heads, size]."""
        rows = view.rows(batches[0].start, batches[-1].stop)
        chosen = []
        for batch in batches:
            if batch.selector is None:
                return read_everything(rows)
            if view.candidates > batch.count > 0:
                part = view.rows(batch.start, batch.stop)
                chosen.append(batch.selector.choose(part, batch.count))
        if not chosen and view.candidates > batches[0].count:
            units = view.pages.heads if batches[0].by_group else view.queries.shape[1]
            chosen.append(rows.slots.new_empty(len(rows.slots), units, 0))
        pages = pages_to_read(rows, torch.cat(chosen) if chosen else None, batches[0].by_group)
        if self._watched:
            self._watch(batches[0].start, pages, view)
        return read_pages(rows, pages)

    def _watch(self, start: int, pages: torch.Tensor, view: LayerView) -> None:
        """Keep what watched rows read; `pages` are those of rows from the place `start` on."""
        heads = view.queries.shape[1]
        for place, own in enumerate(pages, start):
            if self._rows[place] in self._watched:
                self.selections.append(
                    Selection(
                        row=self._rows[place],
                        layer=view.layer,
                        step=self._step,
                        pages=own.repeat_interleave(heads // len(own), dim=0).cpu(),
                    )
                )

    def _orders(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Places by rising row, and ranks of rows by place."""
        rows = torch.tensor(self._rows, device=self._device)
        back = rows.argsort()
        return back, back.argsort()

    def _make_batches(self) -> list[_Batch]:
        batches: list[_Batch] = []
        start = 0
        for _, places in groupby(self._rows, key=lambda row: _sort_key(self.rules[row])[:-1]):
            rules = [self.rules[row] for row in places]
            full = rules[0].selector == "full"
            batches.append(
                _Batch(
                    start=start,
                    stop=start + len(rules),
                    selector=None if full else selector_of(rules),
                    count=0 if full else self._prefix.settings.choices_of(rules[0].budget),
                    by_group=rules[0].variant == "group",
                )
            )
            start += len(rules)
        return batches

    def _check(self, calibration: Calibration | None) -> None:
        for rule in self.rules:
            if rule.selector == "full":
                continue
            self._prefix.settings.choices_of(rule.budget)
            switched = rule.configuration is not None and rule.selector != "000"
            known = calibration.layers[0].entered if calibration else {}
            if switched and rule.budget not in known:
                raise InputError(
                    f"configuration {rule.selector} at a budget of {rule.budget} tokens, which was"
                    f" not calibrated; calibrate {rule.budget} too"
                )


def _sort_key(rule: Rule) -> tuple[Any, ...]:
    """Rows of one reading together, and among them those of one selector; configurations last."""
    if rule.configuration is None:
        full = rule.selector == "full"
        return (not full, False, 0 if full else rule.budget, rule.selector, 0.0, 0.0, rule.seed, ())
    k1, b = rule.parameters.k1, rule.parameters.b
    by_group = rule.variant == "group"
    return (True, by_group, rule.budget, "configuration", k1, b, 0, order(rule.configuration))
