"""What the routing of a model shows without labels: its index statistics, and what rules change.

The counterpart of tiers 1 to 3 of retrieval (study, section 7). An expert is a feature, a token of
the calibration documents is a document, and what is stored of it are the router probabilities of
the experts it was routed to. Every statistic is taken per layer; a model has their mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from whencount import diagnostics
from whencount.attribution import switch_pairs
from whencount.experts.calibration import Calibration
from whencount.experts.documents import Documents, document_batches, run_body
from whencount.experts.routers import Router, find_routers
from whencount.experts.routing import RoutedTokens, Rule, checked_active, routed
from whencount.experts.rules.corrected import Corrected
from whencount.experts.rules.native import Native
from whencount.ranking_diagnostics import DISRUPTION_COLUMNS, DROP_COLUMNS, SPREAD_COLUMNS
from whencount.scoring import CONFIGURATIONS, SWITCHES, Parameters


def index_statistics(calibration: Calibration, variant: str) -> dict[str, float]:
    """The statistics of tiers 1 and 2 by the names that rows of retrieval have.

    `length_cv` and `length_log_sd` are those of the variant's lengths: over tokens, or over the
    experts of a layer. `active_fraction` is k / E and `nnz_cv` 0 for every model, because each
    token has as many experts.

    Returns:
        Means over layers; NaN where a statistic is undefined in a layer.
    """
    layers = [
        _layer_statistics(calibration, index, variant) for index in range(len(calibration.layers))
    ]
    return {name: float(np.mean([layer[name] for layer in layers])) for name in layers[0]}


def _layer_statistics(calibration: Calibration, index: int, variant: str) -> dict[str, float]:
    frequency, tokens = calibration.routed[index], calibration.tokens
    mass = calibration.mass[index]
    if variant == "token":
        length_mean = calibration.logit_norm_mean[index]
        length_sd = calibration.logit_norm_sd[index]
        log_sd = calibration.logit_norm_log_sd[index]
    else:
        norms = calibration.weight_norms[index]
        length_mean, length_sd = norms.mean(), norms.std()
        log_sd = np.log(norms[norms > 0]).std() if norms.any() else np.nan
    return {
        "value_cv": calibration.value_sd[index] / calibration.value_mean[index],
        "peak_ratio": calibration.peak_ratio[index],
        "top_share": calibration.top_share[index],
        "length_cv": length_sd / length_mean if length_mean else np.nan,
        "length_log_sd": log_sd,
        "nnz_cv": 0.0,
        "active_fraction": calibration.active / len(frequency),
        "zipf_slope": diagnostics.zipf_slope(frequency, tokens),
        "gini": diagnostics.gini(mass),
        "frequency_top_share": diagnostics.frequency_top_share(frequency),
        "mass_top_share": diagnostics.mass_top_share(frequency, mass),
        "idf_variance": diagnostics.idf_variance(frequency, tokens),
    }


@dataclass(frozen=True)
class Shares:
    """How a rule routes tokens that reach every layer under the router's own choice.

    Attributes:
        routed: int64, shape (layers, experts), tokens that the rule routes to each expert.
        entered: those of them whose router did not choose it.
        left: tokens whose router chose the expert and the rule does not.
        tokens: how many there were in each layer.
    """

    routed: NDArray[np.int64]
    entered: NDArray[np.int64]
    left: NDArray[np.int64]
    tokens: int

    @property
    def changed(self) -> float:
        """Share of the chosen experts that differ from the router's choice."""
        return int(self.entered.sum()) / int(self.routed.sum())


def routing_shares(
    model: nn.Module,
    documents: Documents,
    rules: Sequence[Rule],
    active: int | None = None,
    batch: int = 1,
) -> list[Shares]:
    """Which experts enter and leave under each rule, in one pass under the router's own choice.

    Args:
        model: see `whencount.experts.routing.RoutedModel`.
        documents: int64, shape (documents, tokens), without padding.
        rules: any; their choices do not reach later layers.
        active: experts per token; the model's own number where None.
        batch: documents per forward pass.

    Returns:
        One for each rule, in their order.
    """
    routers = find_routers(model)
    active = checked_active(routers, active)
    counts = np.zeros((3, len(rules), len(routers), routers[0].experts), dtype=np.int64)

    def observe(_: Router, tokens: RoutedTokens, chosen: Tensor) -> None:
        native = _mask(tokens, chosen)
        for number, rule in enumerate(rules):
            other = rule.choose(tokens, active)
            mask = native if other is None else _mask(tokens, other)
            for place, found in enumerate((mask, mask & ~native, native & ~mask)):
                counts[place, number, tokens.index] += found.sum(dim=0).cpu().numpy()

    with routed(model, Native(), active, observe), torch.inference_mode():
        for block in document_batches(documents, batch, "compare the rules' routing"):
            run_body(model, block)
    return [
        Shares(*counts[:, number], tokens=documents.size)  # type: ignore[misc]
        for number in range(len(rules))
    ]


def choice_statistics(
    model: nn.Module,
    documents: Documents,
    calibration: Calibration,
    variant: str,
    parameters: Parameters | None = None,
    batch: int = 1,
) -> dict[str, float]:
    """The statistics of tier 3 that need no reference, by the names that rows of retrieval have.

    `disruption_*`: share of a token's experts that a switch changes, the mean over tokens, layers
    and the four configuration pairs that differ only in it. `score_spread_*`: population standard
    deviation over the mean of the chosen experts' scores; `score_drop_*`: largest minus smallest
    of them over the largest. All under hidden states of the router's own choice.

    Args:
        model, documents, batch: as in `routing_shares`.
        calibration: of this model; its `active` is the number of chosen experts.
        variant: `token` or `expert`.
        parameters: k1 and b; the defaults where None.
    """
    active = calibration.active
    rules = [
        Corrected(calibration, configuration, variant, parameters or Parameters())
        for configuration in CONFIGURATIONS
    ]
    pairs = [
        (place, off, on) for place, name in enumerate(SWITCHES) for off, on in switch_pairs(name)
    ]
    changed = np.zeros(len(SWITCHES), dtype=np.int64)
    spread, drop = np.zeros((2, len(rules)))

    def observe(_: Router, tokens: RoutedTokens, chosen: Tensor) -> None:
        masks = []
        for number, rule in enumerate(rules):
            scores = rule.scores(tokens)
            taken = tokens.best(scores, active) if number else chosen
            masks.append(_mask(tokens, taken))
            kept = scores.gather(1, taken)
            mean, largest = kept.mean(dim=1), kept.max(dim=1).values
            deviation = kept.std(dim=1, correction=0)
            spread[number] += float((deviation / mean).nan_to_num(nan=0.0).sum())
            fall = (largest - kept.min(dim=1).values) / largest
            drop[number] += float(fall.nan_to_num(nan=0.0).sum())
        for place, off, on in pairs:
            changed[place] += int((masks[on] & ~masks[off]).sum())

    with routed(model, Native(), active, observe), torch.inference_mode():
        for block in document_batches(documents, batch, "compare the configurations"):
            run_body(model, block)
    choices = documents.size * len(calibration.layers)
    values = [*(changed / (4 * active * choices)), *(spread / choices), *(drop / choices)]
    names = (*DISRUPTION_COLUMNS, *SPREAD_COLUMNS, *DROP_COLUMNS)
    return {name: float(value) for name, value in zip(names, values, strict=True)}


def _mask(tokens: RoutedTokens, chosen: Tensor) -> Tensor:
    """bool, shape (tokens, experts): True where an expert is chosen."""
    return torch.zeros_like(tokens.logits, dtype=torch.bool).scatter(1, chosen, True)
