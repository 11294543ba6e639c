"""Claims that were registered as hypotheses: H1 to H6."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from whencount import published
from whencount.comparison.claims import Claim, Study, held, untold
from whencount.wording import joined, percent, signed

if TYPE_CHECKING:
    import pandas as pd

HYPOTHESES = {
    "H1": "IDF and length together carry between 36 and 42 % of the gain on the rows of the"
    " parameters family at default settings",
    "H2": "saturation brings more at k1 0.6 than at 2.4",
    "H3": "uneven stored values (cv) go with what saturation brings within a corpus, at k1 0.6 and"
    " at 2.4",
    "H4": "a model of what saturation brings, fitted on cv at the default k1, ranks the rows at k1"
    " 0.6 and 2.4 too",
    "H5": "length brings exactly 0 where b is 0",
    "H6": "length brings more at b 0.75 than at 0.5",
}
"""The hypotheses that the publication registered, each as a clause."""


def registered(study: Study) -> list[Claim]:
    """A claim per published hypothesis; those of a person's own file are none."""
    theirs = published.hypotheses()
    claims = []
    for name, statement in HYPOTHESES.items():
        clause = f"{statement} ({name})"
        text = published_text(name, theirs[name])
        lines = lines_of(study.hypotheses, name)
        if lines is None or len(lines) == 0:
            claims.append(untold("hypotheses", clause, text, "the run tested no such hypothesis"))
            continue
        blocked = lines[lines["status"] == "not testable"]
        if len(blocked):
            reason = str(blocked["reason"].iloc[0]).rstrip(".") or "it cannot be tested"
            claims.append(untold("hypotheses", clause, text, reason))
            continue
        passes = lines["passes"].astype(bool)
        here = joined([_line(line) for _, line in lines.iterrows()])
        claims.append(held("hypotheses", clause, text, here, agrees=bool(passes.all())))
    return claims


def lines_of(table: pd.DataFrame | None, name: str) -> pd.DataFrame | None:
    """The lines of hypotheses.parquet of H1 ... H6, one per setting."""
    return None if table is None else table[table["hypothesis"] == name]


def published_text(name: str, found: dict[str, Any]) -> str:
    """The published figures of H1 ... H6 in words."""
    if name == "H1":
        return percent(found["collection_statistics_share"], 1)
    if name == "H5":
        return f"largest |φ| {found['max_abs_length_shapley']:g} over {found['rows']} rows"
    if name in ("H2", "H6"):
        high, low, where = (
            ("mean_k1_0.6", "mean_k1_2.4", "k1 0.6 against 2.4")
            if name == "H2"
            else ("mean_b_0.75", "mean_b_0.5", "b 0.75 against 0.5")
        )
        return (
            f"mean φ {signed(found[high], 4)} against {signed(found[low], 4)}, Holm p"
            f" {found['holm_p']:.2g} over {found['pairs']} pairs"
        ).replace("mean φ", f"{where}: mean φ")
    key = "rho" if name == "H3" else "spearman"
    listed = joined([f"{signed(part[key], 2)} at k1 {k1}" for k1, part in found.items()])
    return f"Spearman {listed}"


def _line(line: pd.Series) -> str:
    name = str(line["hypothesis"])
    estimate, other, p = (_float(line[key]) for key in ("estimate", "comparison", "holm_p"))
    if name == "H1":
        text = percent(estimate, 1)
    elif name == "H5":
        text = f"largest |φ| {estimate:g} over {int(line['rows'])} rows"
    elif name in ("H2", "H6"):
        text = f"mean φ {signed(estimate, 4)}"
        text += "" if math.isnan(other) else f" against {signed(other, 4)}"
    else:
        text = f"Spearman {signed(estimate, 2)}"
    setting = str(line.get("setting", ""))
    text += f" at {setting}" if setting else ""
    return text if math.isnan(p) else f"{text} (Holm p {p:.2g})"


def _float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
