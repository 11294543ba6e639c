"""The questions of MMLU (Hendrycks et al., 2021), from local files or through the library."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from whencount.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

DATASET, CONFIGURATION = "cais/mmlu", "all"
REVISION = "c30699e8356da336a370243923dbaf21066bb9fe"
_COLUMNS = ("question", "choices", "answer", "subject")
_LETTERS = "ABCD"


def read_questions(
    path: str | Path | None = None,
    *,
    name: str | None = None,
    revision: str | None = None,
    subjects: Sequence[str] | None = None,
    limit: int | None = None,
) -> pd.DataFrame:
    """The test questions.

    Args:
        path: a Parquet or JSON-lines file with the columns question, choices, answer (0 to 3) and
            subject, as the dataset has them; or a folder of the published `SUBJECT_test.csv`
            files (question, four choices, letter). Where None, the library `datasets` loads it:
            from its cache, or from the hub.
        name: of the dataset's repository, where there is no path.
        revision: its commit.
        subjects: only these.
        limit: of each subject the first so many.

    Returns:
        Columns question, choices, answer, subject, ordered by subject.

    Raises:
        InputError: the data cannot be had, lacks a column, or has no question left.
    """
    import pandas as pd

    where = str(path or name or DATASET)
    table = _stored(Path(path)) if path is not None else _loaded(name, revision)
    missing = [column for column in _COLUMNS if column not in table.columns]
    if missing:
        raise InputError(
            f"{where} has no column {missing[0]}; questions of MMLU have {', '.join(_COLUMNS)}"
        )
    table = table[list(_COLUMNS)]
    _check(table, where)
    if subjects is not None:
        unknown = sorted(set(subjects) - set(table["subject"]))
        if unknown:
            raise InputError(f"{where} has no question of the subject {unknown[0]!r}")
        table = table[table["subject"].isin(list(subjects))]
    table = table.sort_values("subject", kind="stable", ignore_index=True)
    if limit is not None:
        table = table.groupby("subject", sort=False).head(limit).reset_index(drop=True)
    if table.empty:
        raise InputError(f"{where} has no question; give the test questions of MMLU")
    return pd.DataFrame(table)


def _check(table: pd.DataFrame, where: str) -> None:
    words = table["question"].map(_is_text) & table["subject"].map(_is_text)
    four = table["choices"].map(_are_four)
    answers = pd_numeric(table["answer"]).isin(range(len(_LETTERS)))
    wrong = table[~(words & four & answers)]
    if not wrong.empty:
        first = wrong.iloc[0]
        raise InputError(
            f"{where}: the question {str(first['question'])[:60]!r} of the subject"
            f" {str(first['subject'])!r} has the choices {str(first['choices'])[:60]} and the"
            f" answer {str(first['answer'])!r}; each has a text, a subject, four choices, and an"
            " answer of 0 to 3"
        )


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _are_four(value: object) -> bool:
    # Parquet gives arrays where JSON gives lists.
    return isinstance(value, list | tuple | np.ndarray) and len(value) == len(_LETTERS)


def pd_numeric(column: pd.Series) -> pd.Series:
    """A column as numbers, NaN where it holds none."""
    import pandas as pd

    return pd.to_numeric(column, errors="coerce")


def _stored(path: Path) -> pd.DataFrame:
    import pandas as pd

    from whencount.files import json_lines
    from whencount.tables import read_table

    if path.is_dir():
        files = sorted(path.rglob("*_test.csv"))
        if not files:
            raise InputError(f"{path} holds no SUBJECT_test.csv; give the folder of the test files")
        return pd.DataFrame([line for file in files for line in _of_csv(file)])
    if path.suffix == ".parquet":
        return read_table(path)
    return pd.DataFrame([record for _, record in json_lines(path)])


def _of_csv(path: Path) -> Iterator[dict[str, Any]]:
    subject = path.name.removesuffix("_test.csv")
    number = 0
    try:
        with path.open(newline="", encoding="utf-8") as stream:
            for number, line in enumerate(csv.reader(stream), 1):
                if len(line) != 6 or line[5].strip() not in [*_LETTERS]:
                    raise InputError(
                        f"{path}, record {number}: {len(line)} fields, the last {line[-1:]}; a"
                        " question has six, the last the letter of the answer"
                    )
                yield {
                    "question": line[0],
                    "choices": line[1:5],
                    "answer": _LETTERS.index(line[5].strip()),
                    "subject": subject,
                }
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"{path}: reading broke off after record {number} ({error}); give the file as"
            " published, in UTF-8"
        ) from error


def _loaded(name: str | None, revision: str | None) -> pd.DataFrame:
    import pandas as pd

    from whencount.experts.datasets_loading import load_columns

    columns = load_columns(
        name or DATASET,
        CONFIGURATION,
        "test",
        revision or (REVISION if name is None else None),
        remedy="give `path`, a copy of its test questions (Parquet, JSON lines or the CSV files)",
    )
    return pd.DataFrame(columns)
