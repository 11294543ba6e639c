"""What is fitted on which rows, and which rows it predicts (study, section 7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whencount.errors import InputError
from whencount.naming import basis_family
from whencount.study_rows import reported

if TYPE_CHECKING:
    import pandas as pd

AXES = ("family", "corpus", "parameters", "budgets", "seeds", "primary")
PRIMARY_CELL = {"budget": "32/128", "k1": 1.2, "b": 0.75, "seed": 0}
"""What makes a row primary where the rows do not say which families they belong to."""


@dataclass(frozen=True)
class Held:
    """Rows that a fit predicts without having seen them.

    Attributes:
        axis: one of AXES.
        fold: the family or corpus held out, `primary` for a fit on all primary rows.
        positions: of the rows, increasing.
    """

    axis: str
    fold: str
    positions: NDArray[np.intp]


@dataclass(frozen=True)
class Fit:
    """One training set.

    Attributes:
        train: positions of its rows, increasing.
        groups: what each training row belongs to, for the choice of a penalty.
        held: what is predicted.
    """

    train: NDArray[np.intp]
    groups: NDArray[np.object_]
    held: tuple[Held, ...]


@dataclass(frozen=True)
class Design:
    """The rows of a study by what they are good for.

    Attributes:
        primary: positions of the primary rows.
        family: basis family of every row.
        corpus: corpus of every row.
        others: axis (parameters, budgets, seeds) to the positions of the rows that differ from the
            primary ones in nothing else.
        notes: a sentence per axis that the study cannot have.
    """

    primary: NDArray[np.intp]
    family: NDArray[np.object_]
    corpus: NDArray[np.object_]
    others: dict[str, NDArray[np.intp]]
    notes: tuple[str, ...]

    def fits(self, usable: NDArray[np.bool_]) -> list[Fit]:
        """Every training set, of the usable rows only.

        family and corpus: each group of primary rows is predicted from the others; the penalty is
        chosen by leaving out the same kind of group. The rows at other parameters, budgets or seeds
        are predicted from all primary rows, whatever their family and corpus; the study does not
        say what the penalty is chosen by there, here it is corpora.

        Args:
            usable: shape (rows,).
        """
        primary = self.primary[usable[self.primary]]
        fits = []
        for axis, groups in (("family", self.family), ("corpus", self.corpus)):
            names = groups[primary]
            distinct = sorted(set(names))
            for name in distinct if len(distinct) > 1 else []:
                train, test = primary[names != name], primary[names == name]
                fits.append(Fit(train, groups[train], (Held(axis, name, test),)))
        held = tuple(
            Held(axis, "primary", positions[usable[positions]])
            for axis, positions in self.others.items()
            if usable[positions].any()
        )
        if held and len(primary):
            fits.append(Fit(primary, self.corpus[primary], held))
        return fits

    def rows_of(self, axis: str) -> NDArray[np.intp]:
        """Positions of the rows that an axis predicts, usable or not."""
        return self.others.get(axis, self.primary)


def corpus_of(rows: pd.DataFrame) -> pd.Series:
    """The corpus of each row: the column `corpus`, or the collection where there is none."""
    collection = rows["collection"].astype(str)
    if "corpus" not in rows.columns:
        return collection
    return rows["corpus"].fillna(collection).astype(str)


def candidates(rows: pd.DataFrame, collections: Sequence[str] | None = None) -> pd.DataFrame:
    """Rows that may take part: no controls, no shared dictionaries, the wanted collections."""
    chosen = (rows["control"] == "") & ~rows["basis"].astype(str).str.endswith("_shared")
    if collections is not None:
        chosen &= rows["collection"].isin(collections)
    return rows[chosen]


def design(rows: pd.DataFrame, primary_family: str) -> Design:
    """Sort the rows of a study by axis.

    Args:
        rows: of `candidates`. Those of `primary_family` are primary; without a column `families`
            those of PRIMARY_CELL are.
        primary_family: a family of the configuration.

    Raises:
        InputError: no row is primary.
    """
    import pandas as pd

    family = rows["basis"].astype(str).map(basis_family).to_numpy(dtype=object)
    corpus = corpus_of(rows).to_numpy(dtype=object)
    if "families" in rows.columns:
        mask = rows.index.isin(reported(rows, primary_family).index)
    else:
        mask = np.logical_and.reduce([rows[key] == value for key, value in PRIMARY_CELL.items()])
    if not mask.any():
        raise InputError(
            f"none of {len(rows)} rows is primary ({PRIMARY_CELL}, no control, no shared"
            " dictionary); add a column families, or rows of that cell"
        )
    # A setting is what the primary rows share; another setting differs from them in one respect.
    respects: dict[str, list[str]] = {
        "parameters": ["k1", "b"],
        "budgets": ["budget"],
        "seeds": ["seed"],
    }
    alike = {
        axis: pd.MultiIndex.from_frame(rows[columns])
        .isin(pd.MultiIndex.from_frame(rows.loc[mask, columns]))
        .astype(bool)
        for axis, columns in respects.items()
    }
    # An external encoder that stands beside the bases has no primary row to differ from.
    places = ["representation", "collection"]
    same_place = pd.MultiIndex.from_frame(rows[places]).isin(
        pd.MultiIndex.from_frame(rows.loc[mask, places])
    )
    others, notes = {}, []
    for axis in respects:
        chosen = ~alike[axis] & same_place
        for other in respects:
            if other != axis:
                chosen &= alike[other]
        if chosen.any():
            others[axis] = np.flatnonzero(chosen)
        else:
            notes.append(f"Axis {axis} is left out: no rows differ from the primary ones in that.")
    notes += _too_few("family", "basis family", family[mask])
    notes += _too_few("corpus", "corpus", corpus[mask])
    return Design(np.flatnonzero(mask), family, corpus, others, tuple(notes))


def _too_few(axis: str, noun: str, names: NDArray[Any]) -> list[str]:
    if len(set(names)) > 1:
        return []
    return [f"Axis {axis} is left out: the primary rows have one {noun}, {names[0]}."]
