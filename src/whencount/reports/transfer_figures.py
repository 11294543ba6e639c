"""The figures of the transfer test: signs, errors, predicted against observed."""

from __future__ import annotations

import math

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from whencount.reports.canvas import WIDTH, legend, panels_of
from whencount.reports.drawing import Drawing
from whencount.reports.prediction_words import TARGET_NAMES
from whencount.reports.style import INK, SETTINGS
from whencount.reports.transfer_words import KIND_NAMES, SETTING_NAMES
from whencount.transfer.testing import NOT_APPLICABLE
from whencount.wording import capital, percent

_COLOURS = {
    "registered": "#3b7dd8",
    "pseudo": "#d9622b",
    "pseudo_alone": "#c79a1b",
    "unfitted": "#2a9d6f",
}
_MARKERS = {"registered": "o", "pseudo": "s", "pseudo_alone": "D", "unfitted": "^"}
_LARGEST_RATIO = 10.0


@mpl.rc_context(SETTINGS)
def signs(table: pd.DataFrame, name: str = "signs") -> Drawing | None:
    """How often each predictor has the right sign, with interval, threshold and majority sign."""
    lines = _asked(table)
    if len(lines) == 0:
        return None
    settings = list(dict.fromkeys(lines["setting"]))
    figure, panels = panels_of(len(settings), 0.62 * len(TARGET_NAMES) + 0.9, columns=2)
    for panel, setting in zip(panels, settings, strict=True):
        here = lines[lines["setting"] == setting]
        for _, line in here.iterrows():
            height = _height(line)
            colour = _COLOURS[str(line["predictors"])]
            panel.hlines(
                height, line["sign_accuracy_low"], line["sign_accuracy_high"], color=colour, lw=1.4
            )
            panel.plot(
                line["sign_accuracy"],
                height,
                _MARKERS[str(line["predictors"])],
                color=colour,
                ms=6,
                clip_on=False,
            )
        for target, part in here.groupby("target"):
            place = list(TARGET_NAMES).index(str(target))
            panel.vlines(
                part["majority_accuracy"].iloc[0], place - 0.42, place + 0.42, color=INK, lw=1.6
            )
        panel.axvline(float(here["least_sign_accuracy"].iloc[0]), color=INK, lw=0.9, ls=(0, (4, 2)))
        panel.set_xlim(-0.02, 1.02)
        panel.set_title(capital(SETTING_NAMES.get(str(setting), str(setting))))
        panel.set_xlabel("share of right signs")
        panel.tick_params(axis="y", length=0)
    _name_targets(panels[0])
    majority = Line2D([], [], ls="", marker="|", color=INK, ms=11, label="majority sign")
    legend(figure, [*_handles(lines), majority])
    least = percent(float(lines["least_sign_accuracy"].iloc[0]))
    return Drawing(
        name,
        figure,
        "Who tells the sign",
        "The share of rows whose sign was predicted, with 95 % intervals that resample whole pairs"
        f" of model and task (single rows where there is one pair). The dashed line is at {least}:"
        " transfer needs a mark on it or right of it. It also needs a mark right of the upright"
        " stroke, the share that the commonest sign of the retrieval rows gets right.",
        f"Dot plots of sign accuracy of {lines['predictors'].nunique()} kinds of predictors for"
        f" {lines['target'].nunique()} targets in {len(settings)} settings.",
    )


@mpl.rc_context(SETTINGS)
def errors(table: pd.DataFrame, name: str = "errors") -> Drawing | None:
    """The mean absolute error of each predictor over the largest that was allowed."""
    lines = _asked(table)
    lines = lines[lines["largest_mae"] > 0]
    if len(lines) == 0:
        return None
    settings = list(dict.fromkeys(lines["setting"]))
    figure, panels = panels_of(len(settings), 0.62 * len(TARGET_NAMES) + 0.9, columns=2)
    for panel, setting in zip(panels, settings, strict=True):
        for _, line in lines[lines["setting"] == setting].iterrows():
            ratio = float(line["mae"]) / float(line["largest_mae"])
            kind = str(line["predictors"])
            beyond = ratio > _LARGEST_RATIO
            bounds = [
                min(float(line[f"mae_{end}"]) / float(line["largest_mae"]), _LARGEST_RATIO)
                for end in ("low", "high")
            ]
            panel.hlines(_height(line), bounds[0], bounds[1], color=_COLOURS[kind], lw=1.4)
            panel.plot(
                min(ratio, _LARGEST_RATIO),
                _height(line),
                ">" if beyond else _MARKERS[kind],
                color=_COLOURS[kind],
                ms=6,
                clip_on=False,
            )
        panel.axvline(1, color=INK, lw=0.9, ls=(0, (4, 2)))
        panel.set_xscale("symlog", linthresh=1)
        panel.set_xlim(0, _LARGEST_RATIO)
        panel.set_xticks([0, 0.5, 1, 2, 5, 10], ["0", "½", "1", "2", "5", "10"])
        panel.minorticks_off()
        panel.set_title(capital(SETTING_NAMES.get(str(setting), str(setting))))
        panel.set_xlabel("mean absolute error / largest allowed")
        panel.tick_params(axis="y", length=0)
    _name_targets(panels[0])
    legend(figure, _handles(lines))
    return Drawing(
        name,
        figure,
        "How large the error is",
        "The mean absolute error divided by the largest that was allowed: a multiple of the root"
        " mean squared error in retrieval with corpora held out, frozen beforehand. Transfer needs"
        " a mark on the dashed line or left of it; a triangle at the border is more than ten times"
        " too large. Retrieval errors are in nDCG, those of pages in task score, those of experts"
        " in nats or accuracy; only the margin has no unit.",
        f"Dot plots of mean absolute error over its threshold in {len(settings)} settings.",
    )


@mpl.rc_context(SETTINGS)
def predicted(predictions: pd.DataFrame, setting: str) -> Drawing | None:
    """Predicted against observed in a setting, a panel per target."""
    lines = predictions[(predictions["setting"] == setting) & (predictions["left_out"] == "")]
    targets = [target for target in TARGET_NAMES if target in set(lines["target"])]
    if not targets:
        return None
    across = min(3, len(targets))
    down = math.ceil(len(targets) / across)
    figure = Figure(figsize=(WIDTH, 3.2 * down + 0.4), layout="constrained")
    # Targets differ in scale, so no panel shares an axis with another.
    panels = list(figure.subplots(down, across, squeeze=False).reshape(-1))
    for spare in panels[len(targets) :]:
        spare.remove()
    for panel, target in zip(panels, targets, strict=False):
        part = lines[lines["target"] == target]
        for kind in [kind for kind in KIND_NAMES if kind in set(part["predictors"])]:
            marks = part[part["predictors"] == kind]
            panel.scatter(
                marks["observed"],
                marks["predicted"],
                s=24,
                color=_COLOURS[kind],
                marker=_MARKERS[kind],
                alpha=0.75,
                linewidth=0,
            )
        panel.axhline(0, color=INK, lw=0.6)
        panel.axvline(0, color=INK, lw=0.6)
        _room(panel.set_xlim, part["observed"])
        _room(panel.set_ylim, part["predicted"])
        if _spans(part["observed"]) and _spans(part["predicted"]):
            panel.axline((0, 0), slope=1, color=INK, lw=0.8, ls=(0, (4, 2)))
        panel.set_title(TARGET_NAMES[target])
        panel.set_xlabel("observed")
        panel.locator_params(nbins=5)
    panels[0].set_ylabel("predicted")
    legend(figure, _handles(lines))
    name = SETTING_NAMES.get(setting, setting)
    return Drawing(
        f"predicted_{setting}",
        figure,
        f"{capital(name)}: predicted against observed",
        "One mark per row and predictor; nothing was fitted on these rows. On the dashed line a"
        " prediction is exact; in the upper left and lower right quarter its sign is wrong. The two"
        " axes of a panel may differ in scale.",
        f"Scatter plots of predicted against observed values of {len(targets)} targets for {name}.",
    )


def _asked(table: pd.DataFrame) -> pd.DataFrame:
    return table[(table["scope"] == "all") & (table["verdict"] != NOT_APPLICABLE)]


def _height(line: pd.Series) -> float:
    kinds = list(KIND_NAMES)
    place = list(TARGET_NAMES).index(str(line["target"]))
    return place + 0.2 * (kinds.index(str(line["predictors"])) - (len(kinds) - 1) / 2)


def _name_targets(panel: mpl.axes.Axes) -> None:
    panel.set_yticks(range(len(TARGET_NAMES)), list(TARGET_NAMES.values()))
    panel.set_ylim(len(TARGET_NAMES) - 0.4, -0.6)


def _handles(lines: pd.DataFrame) -> list[Line2D]:
    return [
        Line2D(
            [], [], ls="", marker=_MARKERS[kind], color=_COLOURS[kind], ms=6, label=KIND_NAMES[kind]
        )
        for kind in KIND_NAMES
        if kind in set(lines["predictors"])
    ]


def _spans(values: pd.Series) -> bool:
    return bool(np.ptp(values.to_numpy(dtype=float)) > 0)


def _room(set_limits: object, values: pd.Series) -> None:
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    room = 0.06 * (high - low or 1.0)
    set_limits(low - room, high + room)  # type: ignore[operator]
