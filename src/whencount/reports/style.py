"""How the report's figures look: names for a reader, colours, the settings of matplotlib."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from whencount.naming import Representation

INK = "#1f2430"
"""Lines and text. The page replaces it by its own text colour, light or dark."""

FAINT = "#b9bec9"
"""Grid lines and ranges in the background; replaced by the page as INK is."""

SWITCH_COLOURS = {"idf": "#3b7dd8", "saturation": "#d9622b", "length": "#2a9d6f"}
SWITCH_MARKERS = {"idf": "o", "saturation": "s", "length": "^"}
SWITCH_NAMES = {"idf": "IDF", "saturation": "saturation", "length": "length"}

BASIS_NAMES = {
    "identity": "identity",
    "gaussian": "Gaussian",
    "pca": "PCA",
    "kmeans": "k-means",
    "pq": "PQ",
    "rq": "RQ",
    "sae": "SAE",
}
_BASIS_COLOURS = {
    "identity": "#7a8194",
    "gaussian": "#3b7dd8",
    "pca": "#2aa5b8",
    "kmeans": "#2a9d6f",
    "pq": "#c79a1b",
    "rq": "#d9622b",
    "sae": "#b5479d",
}
_OTHER_COLOURS = ("#6a5acd", "#8c6d46", "#c2185b", "#5b8c3a")
GRANULARITY_MARKERS = {"pooled": "o", "token": "^"}
REFERENCE_NAMES = {"bm25": "text BM25", "dense": "dense", "rrf": "both fused", "splade": "SPLADE"}
REFERENCE_LINES = {
    "bm25": (0, (4, 2)),
    "dense": (0, (1, 1.5)),
    "rrf": (0, (4, 1.5, 1, 1.5)),
    "splade": (0, (6, 1)),
}
CONTROL_NAMES = {"": "true df", "shuffled_df": "shuffled df", "uniform_df": "uniform df"}

# Any: matplotlib types its keys one by one.
SETTINGS: Any = {
    # Text stays text: it can be searched, and takes the page's colour. The hash salt and the
    # absence of a date make equal figures equal bytes.
    "svg.fonttype": "none",
    "svg.hashsalt": "whencount",
    "pdf.fonttype": 42,
    # A name with a dollar sign is a name, not a formula.
    "text.parse_math": False,
    "font.family": ["DejaVu Sans"],
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.5,
    "grid.alpha": 0.6,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}


def basis_colour(basis: str) -> str:
    """The colour of a basis; a basis that the study does not know has one by its name."""
    own = basis.removesuffix("_shared")
    if own in _BASIS_COLOURS:
        return _BASIS_COLOURS[own]
    return _OTHER_COLOURS[sum(own.encode()) % len(_OTHER_COLOURS)]


def basis_name(basis: str) -> str:
    """`k-means` for `kmeans`, `SAE, shared` for `sae_shared`."""
    own = basis.removesuffix("_shared")
    name = BASIS_NAMES.get(own, own)
    return f"{name}, shared" if basis.endswith("_shared") else name


def representation_name(name: str) -> str:
    """`k-means token` for `kmeans_token`."""
    representation = Representation.parse(name)
    shared = "_shared" if representation.shared else ""
    return f"{basis_name(representation.basis + shared)} {representation.granularity}"


def references_in_order(names: Iterable[str]) -> dict[str, str]:
    """Each reference and its name for a reader; external encoders of other names come last."""
    present = set(names)
    others = {name: name for name in sorted(present - REFERENCE_NAMES.keys())}
    return {name: label for name, label in REFERENCE_NAMES.items() if name in present} | others


def in_order(representations: Iterable[str]) -> list[str]:
    """Distinct representations: by basis in the study's order, pooled before token."""
    bases = list(BASIS_NAMES)

    def place(name: str) -> tuple[int, str, bool, str]:
        parsed = Representation.parse(name)
        known = bases.index(parsed.basis) if parsed.basis in bases else len(bases)
        return known, parsed.basis, parsed.shared, parsed.granularity

    return sorted(set(representations), key=place)


def budgets_in_order(budgets: Iterable[str]) -> list[str]:
    """Distinct budgets from small to large, `native` last."""

    def size(budget: str) -> tuple[float, float]:
        if budget == "native":
            return float("inf"), float("inf")
        query, document = budget.split("/")
        return float(query), float(document)

    return sorted(set(budgets), key=size)
