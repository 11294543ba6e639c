"""How the eight configurations rank the same pages for the same queries: no label, no answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from whencount.attribution import switch_pairs
from whencount.pages.calibration import Calibration, LayerCalibration
from whencount.pages.prefill import Prefix
from whencount.pages.selectors.corrected import corrected_scores, page_idf, page_values
from whencount.pages.selectors.quest import by_group
from whencount.ranking_diagnostics import score_profile
from whencount.scoring import CONFIGURATIONS, SWITCHES, Parameters, length_factor
from whencount.search import Rankings

_DEPTH = 100


@dataclass(frozen=True)
class PageRankings:
    """Means over calibration positions, layers and heads (or groups) in which there is a choice.

    Dense layers are left out, and positions at which every page that exists would be taken. All
    values are NaN where nothing is left.

    Attributes:
        disruption: [3], by switch: share of the selected pages that change, mean over the four
            pairs of configurations that differ in it alone.
        spread: [8], by configuration: sd / |mean| of the scores of the best 100 pages.
        drop: [8]: `(s1 - s10) / |s1|`, of pages.
        mass: [8]: attention mass of the selected pages over that of as many of the heaviest; of a
            group, the mass that its heads give to a page together.
    """

    disruption: NDArray[np.float64]
    spread: NDArray[np.float64]
    drop: NDArray[np.float64]
    mass: NDArray[np.float64]


def page_rankings(
    prefix: Prefix, calibration: Calibration, budget: int, variant: str, parameters: Parameters
) -> PageRankings:
    """Compare the eight configurations at the calibration positions of a context.

    Document frequencies are those of the whole calibration, the position at hand included. Scores
    of 000 are sums of values; they rank as the native bound does.

    Args:
        prefix: the context.
        calibration: of this budget, among others.
        budget: in tokens; how many pages are selected follows from it.
        variant: `head` or `group`.
        parameters: k1 and b.
    """
    count = prefix.settings.choices_of(budget)
    parts = [
        _compare(layer, budget, count, variant == "group", parameters)
        for layer in calibration.layers[prefix.settings.dense_layers :]
    ]
    found = [part for part in parts if part is not None]
    if not found:
        return PageRankings(*(np.full(size, np.nan) for size in (3, 8, 8, 8)))
    return PageRankings(*(np.mean(values, axis=0) for values in zip(*found, strict=True)))


def _compare(
    layer: LayerCalibration, budget: int, count: int, group: bool, parameters: Parameters
) -> tuple[NDArray[np.float64], ...] | None:
    """The four statistics of one layer; None where there is no choice."""
    open_ = (layer.exists.sum(1) > count) if count else layer.exists.new_zeros(len(layer.exists))
    if not bool(open_.any()):
        return None
    exists = layer.exists[open_][:, None]
    values = page_values(layer.bounds[open_], layer, group)
    idf = page_idf(layer, budget)
    factors = length_factor(layer.lengths, layer.average_length[:, None], parameters.b)
    groups = len(layer.group_scale)
    factors = factors.repeat_interleave(len(layer.head_scale) // groups, dim=0)
    mass = layer.mass[open_].double() * exists
    if group:
        mass = by_group(mass, groups)
    heaviest = mass.topk(count, dim=-1).values.sum(-1)
    selected, tops, shares = [], [], []
    for configuration in CONFIGURATIONS:
        scores = corrected_scores(values, factors, idf, configuration, parameters.k1)
        if group:
            scores = by_group(scores, groups)
        scores = scores.masked_fill(~exists, -torch.inf)
        top = scores.topk(min(max(_DEPTH, count), scores.shape[-1]), dim=-1)
        tops.append(top.values[..., :_DEPTH].flatten(0, 1).cpu().numpy())
        chosen = torch.zeros_like(mass, dtype=torch.bool)
        selected.append(chosen.scatter_(-1, top.indices[..., :count], True))
        shares.append(((mass * selected[-1]).sum(-1) / heaviest.clamp(min=1e-300)).mean())
    changed = [
        np.mean(
            [
                1 - float((selected[off] & selected[on]).sum()) / float(selected[off].sum())
                for off, on in switch_pairs(switch)
            ]
        )
        for switch in SWITCHES
    ]
    spread, drop = _profile(np.stack(tops))
    return np.array(changed), spread, drop, torch.stack(shares).cpu().numpy()


def _profile(scores: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Spread and drop of falling scores, [8, rankings, depth]; -inf where no page exists."""
    there = np.isfinite(scores)
    rankings = Rankings(
        positions=np.where(there, 0, -1).astype(np.int32)[None],
        scores=np.where(there, scores, 0.0)[None],
        counts=there.sum(axis=-1, dtype=np.int32)[None],
    )
    spread, drop = score_profile(rankings)
    return spread[0], drop[0]
