"""Which rows of a table a hypothesis is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


class NotTestable(Exception):  # noqa: N818 - no fault: a table may lack what a hypothesis needs
    """A hypothesis cannot be tested on these rows; the message is the reason."""


def select(rows: pd.DataFrame, *choices: Mapping[str, Any]) -> pd.DataFrame:
    """The rows that meet every key of every choice.

    Args:
        rows: with the columns of `whencount.rows.CELL_KEYS`, and `families` where a choice names a
            family.
        choices: mappings of family, collections, exclude_collections, representations, budget, k1,
            b, seed and control (`none` for no control); no keys take all rows.

    Raises:
        NotTestable: a column is missing, or no row is left; the reason names the key.
    """
    found = rows
    for choice in choices:
        for key, value in choice.items():
            found = _narrowed(found, key, value)
    if len(found) == 0:
        raise NotTestable("the table has no rows")
    return found


def need(rows: pd.DataFrame, *columns: str) -> None:
    """See to it that the rows have columns, without a missing value.

    Raises:
        NotTestable: one is missing, or has missing values.
    """
    _present(rows, *columns)


def need_numbers(rows: pd.DataFrame, *columns: str) -> None:
    """See to it that the rows have columns of finite numbers.

    Raises:
        NotTestable: one is missing, has missing or infinite values, or holds no numbers.
    """
    import numpy as np
    import pandas as pd

    _present(rows, *columns)
    for column in columns:
        if not pd.api.types.is_numeric_dtype(rows[column]):
            raise NotTestable(f"the column {column} holds no numbers")
        infinite = int(np.isinf(rows[column].to_numpy(dtype=np.float64)).sum())
        if infinite:
            raise NotTestable(f"{infinite:,} of the {len(rows):,} rows have an infinite {column}")


def _present(rows: pd.DataFrame, *columns: str) -> None:
    for column in columns:
        if column not in rows.columns:
            raise NotTestable(f"the rows have no column {column}")
        missing = int(rows[column].isna().sum())
        if missing:
            raise NotTestable(f"{missing:,} of the {len(rows):,} rows have no {column}")


def _narrowed(rows: pd.DataFrame, key: str, value: Any) -> pd.DataFrame:
    # Settings are compared as the configuration writes them: k1 0.6 is the same double everywhere.
    if key == "family":
        need(rows, "families")
        found = rows[[value in names.split() for names in rows["families"]]]
        said = f"no row belongs to the family {value!r}"
    elif key == "exclude_collections":
        found = rows[~rows["collection"].isin(value)]
        said = f"no row is left without the collections {', '.join(value)}"
    elif key in ("collections", "representations"):
        found = rows[rows[key.removesuffix("s")].isin(value)]
        said = f"no row is of the {key} {', '.join(value)}"
    else:
        wanted = "" if (key, value) == ("control", "none") else value
        found = rows[rows[key] == wanted]
        said = f"no row has {key} {value}"
    if len(found) == 0:
        raise NotTestable(f"{said}{_among(rows, key)}")
    return found


def _among(rows: pd.DataFrame, key: str) -> str:
    if key not in ("budget", "k1", "b", "seed") or len(rows) == 0:
        return ""
    values = sorted(set(rows[key].tolist()), key=str)
    texts = [value if isinstance(value, str) else f"{value:g}" for value in values]
    return f"; there are {', '.join(texts[:8])}" if len(texts) < 9 else ""
