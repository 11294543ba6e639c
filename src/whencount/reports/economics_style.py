"""How the page on costs names and colours representations."""

from __future__ import annotations

from collections.abc import Iterable

from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, NullFormatter

from whencount.reports.style import INK, basis_colour, basis_name

_NAMES = {
    "words": "words (text BM25)",
    "dense": "dense vectors",
    "late_exact": "late interaction, exact",
    "late_2bit": "late interaction, 2 bits",
    "late_1bit": "late interaction, 1 bit",
    "late_one_vector": "late interaction, one vector",
}
_STUDIES = {"latent": "latent terms", "learned": "learned sparse"}
_MARKERS = {"pooled": "o", "token": "^", "external": "P"}
_KINDS = {
    "words": "D",
    "dense": "X",
    "latent_terms": "*",
    "learned_sparse": "P",
    "late_interaction": "h",
}


def name_of(representation: str, budget: str = "") -> str:
    """`SAE token at 32/128`; the budget is told unless all weights are kept."""
    if representation in _NAMES:
        name = _NAMES[representation]
    else:
        basis, _, granularity = representation.rpartition("_")
        known = granularity in _MARKERS and basis
        name = f"{basis_name(basis)} {granularity}" if known else representation
        if granularity in _STUDIES:
            name = f"{basis}, {_STUDIES[granularity]}"
    return f"{name} at {budget}" if budget not in ("", "native") else name


def mark_of(representation: str, kind: str) -> tuple[str, str]:
    """Colour and marker."""
    basis, _, granularity = representation.rpartition("_")
    if kind in _KINDS:
        return (INK if kind in ("words", "dense") else basis_colour(representation)), _KINDS[kind]
    return basis_colour(basis or representation), _MARKERS.get(granularity, "s")


def in_order(representations: Iterable[str]) -> list[str]:
    """Each once: as they come, words and dense vectors last."""
    return sorted(dict.fromkeys(representations), key=lambda one: one in _NAMES)


def logarithmic(panel: Axes, *, vertical: bool = False) -> None:
    """Make an axis logarithmic, with labels in plain text: `0.01`, `1`, `10k`, `2M`."""
    if vertical:
        panel.set_yscale("log")
    else:
        panel.set_xscale("log")
    axis = panel.yaxis if vertical else panel.xaxis
    low, high = panel.get_ylim() if vertical else panel.get_xlim()
    few = low > 0 and high / low < _FEW
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,), numticks=6))
    large = EngFormatter(sep="")
    axis.set_major_formatter(
        FuncFormatter(lambda value, place: large(value, place) if value >= 1 else f"{value:g}")
    )
    axis.set_minor_formatter(NullFormatter())


_FEW = 30
"""An axis over less than this ratio has labels between powers of ten."""
