"""Reading qrels: TREC's four columns, BEIR's three, told apart by the first line, or JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from whencount.collections.model import Qrels
from whencount.errors import InputError
from whencount.files import json_lines, lines_of

_FORMS = "query 0 document relevance (TREC), or query document relevance with a header (BEIR)"


def read_qrels(path: str | Path) -> Qrels:
    """Read a qrels file, .gz too; the order of its lines is kept.

    TREC form: four columns (query, ignored, document, relevance) separated by white space. BEIR
    form: three columns separated by tabs, usually below a header line. Where a line has tabs
    only they separate, so that ids may hold spaces. JSON lines (a name that ends in .jsonl) hold
    `query-id`, `corpus-id` and `score`. A pair judged twice alike is kept once; negative relevance
    is kept.

    Raises:
        InputError: the file is missing, empty or malformed (the line is named), a relevance is no
            whole number of 32 bits, or a pair is judged twice with different relevance.
    """
    path = Path(path)
    seen: dict[tuple[str, str], tuple[int, int]] = {}
    is_json = path.name.removesuffix(".gz").endswith(".jsonl")
    for number, query, document, relevance in (_objects if is_json else _judgements)(path):
        earlier = seen.setdefault((query, document), (relevance, number))
        if earlier[0] != relevance:
            raise InputError(
                f"{path}, line {number}: query {query!r} and document {document!r} have relevance"
                f" {relevance}, but {earlier[0]} on line {earlier[1]}; remove one of the two lines"
            )
    if not seen:
        raise InputError(f"{path} holds no judgement; it must have lines of {_FORMS}")
    return Qrels.from_rows((*pair, judged[0]) for pair, judged in seen.items())


def _judgements(path: Path) -> Iterator[tuple[int, str, str, int]]:
    columns = 0
    for number, line in lines_of(path):
        fields = split_columns(line, path, number)
        if columns == 0:
            columns = len(fields)
            if columns not in (3, 4):
                raise InputError(
                    f"{path}, line {number}: found {len(fields)} columns; expected {_FORMS}"
                )
            if columns == 3 and not _is_whole(fields[2]) and _is_header(fields):
                continue
        if len(fields) != columns:
            raise InputError(
                f"{path}, line {number}: found {len(fields)} columns where the lines before have"
                f" {columns}; expected {_FORMS}"
            )
        yield number, fields[0], fields[-2], _relevance(fields[-1], path, number)


def _objects(path: Path) -> Iterator[tuple[int, str, str, int]]:
    for number, record in json_lines(path):
        values = [record.get(key) for key in ("query-id", "corpus-id", "score")]
        for key, value in zip(("query-id", "corpus-id"), values, strict=False):
            if not isinstance(value, str) or not value:
                raise InputError(
                    f"{path}, line {number}: {key!r} is {value!r}; it must be an id, a string"
                )
        query, document, score = values
        # A float that is whole, 1.0, is how some writers keep a score.
        whole = int(score) if isinstance(score, float) and score.is_integer() else score
        yield number, str(query), str(document), _relevance(str(whole), path, number)


def _relevance(text: str, path: Path, number: int) -> int:
    if not _is_whole(text):
        raise InputError(f"{path}, line {number}: relevance {text!r} is not a whole number")
    # Python reads no whole number of more than 4,300 digits.
    relevance = int(text) if len(text) < 100 else 2**31
    if not -(2**31) <= relevance < 2**31:
        raise InputError(f"{path}, line {number}: relevance {text[:20]} does not fit in 32 bits")
    return relevance


def split_columns(line: bytes, path: Path, number: int) -> list[str]:
    """The columns of a line: separated by tabs where it has any, else by white space.

    Of four columns between tabs the second, which nothing reads, may be empty.

    Raises:
        InputError: the line is not UTF-8, or an id or the relevance between tabs is empty.
    """
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}, line {number}: not UTF-8 text ({error.reason})") from None
    if "\t" in text:
        fields = [field.strip() for field in text.rstrip().split("\t")]
        if len(fields) in (3, 4):
            for what, field in (("query id", fields[0]), ("document id", fields[-2])):
                if not field:
                    raise InputError(
                        f"{path}, line {number}: the {what} is empty; expected {_FORMS}"
                    )
            return fields
        if all(fields):
            return fields
    return text.split()


def _is_whole(text: str) -> bool:
    digits = text[1:] if text[:1] in ("-", "+") else text
    return digits.isascii() and digits.isdigit()


def _is_header(fields: list[str]) -> bool:
    # A header names its columns: "query-id corpus-id score" and its relatives. Anything else in
    # the third column of the first line is a relevance gone wrong, and is told as such.
    return fields[2].replace("-", "").replace("_", "").isalpha()
