"""Attention of one decode step: over the whole context, and over chosen pages.

Run as `python -m benchmarks.pages`; prints one JSON object per row.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.measure import by_turns
from whencount.pages.calibration import LayerCalibration
from whencount.pages.prefill import LayerPrefix
from whencount.pages.reading import pages_to_read, read_everything, read_pages
from whencount.pages.selectors import LayerView, order, selector_of
from whencount.pages.settings import PageSettings, Rule
from whencount.pages.storage import LayerPages
from whencount.pages.summaries import page_lengths
from whencount.scoring import CONFIGURATIONS

HEADS, GROUPS, SIZE, PAGE = 32, 8, 64, 16
CONTEXTS = (4096, 8192, 16384, 32768)
BUDGETS = (512, 1024)
BYTES = 600e6
"""Keys and values of all layers together: more than caches keep from one layer to the next."""

SCALING = SIZE**-0.5


def run(rounds: int = 7, contexts: tuple[int, ...] = CONTEXTS) -> list[dict[str, Any]]:
    """Median time of one layer's decode step, one row, one thread; on a GPU too where there is one.

    Every job runs through as many layers as 600 MB of keys and values make, so that none finds its
    pages in a near cache from the time before.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    devices = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
    with torch.inference_mode():
        rows = [
            row
            for device in devices
            for context in contexts
            for row in _measure(device, context, rounds)
        ]
    torch.set_num_threads(before)
    return rows


def _measure(device: str, context: int, rounds: int) -> list[dict[str, Any]]:
    width = 4 if device == "cpu" else 2
    whole = 2 * GROUPS * context * SIZE * width
    views = [_view(device, context, layer) for layer in range(max(2, round(BYTES / whole)))]
    jobs: dict[str, Callable[[LayerView], Any]] = {
        "reading all keys and values": _read,
        "full, as transformers does": _full,
        "full, heads of a group in one product": _full_by_group,
        "full, of this package": lambda view: read_everything(_one(view)),
    }
    bytes_read = {name: whole for name in jobs}
    settings = PageSettings()
    for budget in BUDGETS:
        for label, rule in (
            ("Quest", Rule("quest", budget)),
            ("111, by head", Rule("111", budget, "head")),
            ("111, by group", Rule("111", budget, "group")),
        ):
            choose = _chooser([rule], settings.choices_of(budget))
            if label == "Quest":
                jobs[f"{label}, {budget}: selection alone"] = choose
            name = f"{label}, {budget}"
            jobs[name] = _reader(choose)
            bytes_read[name] = _bytes_of(views[0], choose(views[0]), width)
    for variant in ("head", "group"):
        rules = [Rule(str(one), BUDGETS[0], variant) for one in sorted(CONFIGURATIONS, key=order)]
        choose = _chooser(rules, settings.choices_of(BUDGETS[0]))
        jobs[f"all eight configurations by {variant}, {BUDGETS[0]}: per row"] = _reader(choose)
    times = by_turns({name: _through(job, views, device) for name, job in jobs.items()}, rounds)
    rate = whole / _median(times["reading all keys and values"], device)
    full = _median(times["full, heads of a group in one product"], device)
    rows = []
    for name, timing in times.items():
        taken = timing.processor if device == "cpu" else timing.wall
        per_row = len(views) * (8 if name.startswith("all eight") else 1)
        middle = _median(timing, device) / per_row
        found = {
            "device": device,
            "context": context,
            "job": name,
            "milliseconds": middle * 1e3,
            "lowest": min(taken) / per_row * 1e3,
            "highest": max(taken) / per_row * 1e3,
            "times_faster": full / len(views) / middle,
        }
        if name in bytes_read:
            floor = bytes_read[name] / rate / len(views)
            found |= {
                "megabytes": bytes_read[name] / 1e6,
                "floor_milliseconds": floor * 1e3,
                "gap": middle / floor,
            }
        rows.append(found)
    return rows


def _median(timing: Any, device: str) -> float:
    taken = sorted(timing.processor if device == "cpu" else timing.wall)
    return float(taken[len(taken) // 2])


def _view(device: str, context: int, layer: int) -> LayerView:
    """A layer of random keys, values and counts, eight rows of it, and one query each."""
    draws = torch.Generator().manual_seed(layer)
    kind = torch.float32 if device == "cpu" else torch.float16
    keys, values = torch.randn(2, GROUPS, context, SIZE, generator=draws).to(device, kind)
    prefix = LayerPrefix(keys, values, keys[:0], None)
    pages = LayerPages(prefix, len(CONFIGURATIONS), PAGE, PAGE)
    slots = torch.arange(len(CONFIGURATIONS), device=device)
    queries = torch.randn(len(slots), HEADS, SIZE, generator=draws).to(device, kind)
    pages.append(slots, queries[:, :GROUPS], queries[:, :GROUPS])
    number = context // PAGE
    lengths = page_lengths(pages.shared_extremes)
    entered = torch.randint(65, (HEADS, number), generator=draws).to(device)
    calibration = LayerCalibration(
        existed=torch.full((number,), 64, device=device),
        entered=dict.fromkeys(BUDGETS, entered),
        head_scale=lengths.new_ones(HEADS),
        group_scale=lengths.new_ones(GROUPS),
        average_length=lengths.mean(-1),
        lengths=lengths,
        exists=torch.empty(0),
        bounds=torch.empty(0),
        mass=torch.empty(0),
    )
    return LayerView(
        layer, queries, slots, pages, prefix, calibration, SCALING, PageSettings()
    ).rows(0, len(slots))


def _through(
    job: Callable[[LayerView], Any], views: list[LayerView], device: str
) -> Callable[[], None]:
    def once() -> None:
        for view in views:
            # What a view has computed before is forgotten: every step computes it anew.
            job(LayerView(**{name: getattr(view, name) for name in _FIELDS}))
        if device == "cuda":
            torch.cuda.synchronize()

    return once


_FIELDS = (
    "layer",
    "queries",
    "slots",
    "pages",
    "prefix",
    "calibration",
    "scaling",
    "settings",
)


def _one(view: LayerView) -> LayerView:
    """One row as a step of its own, so that nothing is computed for the others."""
    fields = {name: getattr(view, name) for name in _FIELDS}
    return LayerView(**fields | {"queries": view.queries[:1], "slots": view.slots[:1]})


def _chooser(rules: list[Rule], count: int) -> Callable[[LayerView], torch.Tensor]:
    selector, by_group = selector_of(rules), rules[0].variant == "group"

    def choose(view: LayerView) -> torch.Tensor:
        own = view if len(rules) > 1 else _one(view)
        return pages_to_read(own, selector.choose(own, count), by_group)

    return choose


def _reader(choose: Callable[[LayerView], torch.Tensor]) -> Callable[[LayerView], torch.Tensor]:
    def read(view: LayerView) -> torch.Tensor:
        chosen = choose(view)
        return read_pages(view if len(chosen) > 1 else _one(view), chosen)

    return read


def _read(view: LayerView) -> None:
    view.pages.whole(view.pages.keys).sum()
    view.pages.whole(view.pages.values).sum()


def _full(view: LayerView) -> torch.Tensor:
    keys, values = (view.pages.whole(one)[None] for one in (view.pages.keys, view.pages.values))
    return torch.nn.functional.scaled_dot_product_attention(
        view.queries[:1, :, None], keys, values, scale=SCALING, enable_gqa=True
    )


def _full_by_group(view: LayerView) -> torch.Tensor:
    keys, values = (view.pages.whole(one)[None] for one in (view.pages.keys, view.pages.values))
    queries = view.queries[:1].reshape(1, GROUPS, HEADS // GROUPS, SIZE)
    return torch.nn.functional.scaled_dot_product_attention(queries, keys, values, scale=SCALING)


def _bytes_of(view: LayerView, chosen: torch.Tensor, width: int) -> int:
    """Page summaries, and every selected page once for all heads that share it."""
    pages = int(view.pages.places(chosen, view.slots[:1]).unique().numel())  # type: ignore[no-untyped-call]
    return view.pages.shared_extremes.numel() * 4 + pages * 2 * PAGE * SIZE * width


if __name__ == "__main__":
    for row in run():
        print(json.dumps(row))
