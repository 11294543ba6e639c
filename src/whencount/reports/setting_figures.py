"""The figure of Shapley values that both settings share."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd

from whencount.reports.canvas import dot, legend, panels_of
from whencount.reports.drawing import Drawing
from whencount.reports.setting_style import clipped, variant_name
from whencount.reports.style import INK, SETTINGS, SWITCH_COLOURS, SWITCH_MARKERS, SWITCH_NAMES
from whencount.scoring import SWITCHES
from whencount.setting_summaries.effects import variants_in_order
from whencount.wording import plural

ROWS_SHOWN = 60
"""With more rows of a variant their means over `keys` but the last two stand for them."""


@mpl.rc_context(SETTINGS)
def shapley(
    rows: pd.DataFrame,
    keys: Sequence[str],
    unit: str,
    name: str = "shapley",
    share_x: bool = True,
) -> Drawing | None:
    """The Shapley values of the three switches, a panel per variant, a line per row.

    Args:
        rows: rows.parquet of a setting.
        keys: the columns that name a line; those with one value alone are left out of its name.
        unit: what the values are measured in, plain text.
        name: of the drawing.
        share_x: whether variants share a scale.
    """
    columns = [f"shapley_{switch}" for switch in SWITCHES]
    known = rows.dropna(subset=columns)
    variants = variants_in_order(known["variant"])
    if not variants:
        return None
    told = [key for key in keys if known[key].nunique() > 1] or [keys[-1]]
    meant = ""
    if max(known.groupby("variant").size()) > ROWS_SHOWN:
        told = told[-2:]
        meant = f" Each line is a mean over all rows of its {' and '.join(told)}."
    table = known.groupby(["variant", *told], sort=True)[columns].mean()
    lines = sorted({key[1:] for key in table.index})[:ROWS_SHOWN]
    figure, panels = panels_of(len(variants), 0.3 * len(lines) + 0.8, columns=2, share_x=share_x)
    for panel, variant in zip(panels, variants, strict=True):
        mine = table.loc[variant].reindex(
            pd.MultiIndex.from_tuples(lines) if len(told) > 1 else [line[0] for line in lines]
        )
        for switch, offset in zip(SWITCHES, (-0.2, 0.0, 0.2), strict=True):
            panel.plot(
                mine[f"shapley_{switch}"],
                np.arange(len(lines)) + offset,
                SWITCH_MARKERS[switch],
                color=SWITCH_COLOURS[switch],
                ms=5.5,
                zorder=3,
            )
        panel.axvline(0, color=INK, lw=0.8)
        panel.set_title(variant_name(variant))
        panel.set_xlabel(f"Shapley value, {unit}")
        panel.locator_params(axis="x", nbins=5)
        panel.tick_params(axis="y", length=0)
    labels = [clipped(", ".join(_text(value) for value in line), 48) for line in lines]
    panels[0].set_yticks(range(len(lines)), labels)
    panels[0].set_ylim(len(lines) - 0.4, -0.6)
    legend(
        figure,
        [dot(SWITCH_COLOURS[s], "none", SWITCH_NAMES[s], SWITCH_MARKERS[s]) for s in SWITCHES],
    )
    scale = "" if share_x or len(variants) == 1 else " Each panel has its own scale."
    return Drawing(
        name,
        figure,
        "What each switch brings",
        "The Shapley value of each switch: its part of what the full correction changes"
        " (<i>Q</i><sub>111</sub> − <i>Q</i><sub>000</sub>), averaged over the orders of switching"
        " on. Right of 0 it helps, left of 0 it harms; the three of a line add up to the change."
        f"{meant}{scale}",
        f"Dot plots of three Shapley values for {plural(len(lines), 'row')} in"
        f" {plural(len(variants), 'variant')}.",
    )


def _text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int | np.integer) else str(value)
