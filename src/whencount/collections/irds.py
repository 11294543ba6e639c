"""Collections of ir_datasets, by their id there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from whencount.collections.beir import first_of_duplicates
from whencount.collections.jsonl import join_title
from whencount.collections.model import Collection, Document, Options, Qrels, Query
from whencount.collections.selection import keep_judged
from whencount.errors import InputError


def open_ir_datasets(name: str, options: Mapping[str, Any]) -> Collection:
    """Open a data set of ir_datasets (MacAvaney et al., 2021), downloading what is missing.

    Options: `id`, such as `beir/scifact/test` or `miracl/hi/dev`; and `separator`,
    `judged_queries_only`, `duplicates` as for a BEIR folder. MIRACL's own corpora repeat some
    ids, so there `duplicates` is `first` unless given.

    Raises:
        InputError: ir_datasets is not installed, does not know the id or cannot have its files.
    """
    taken = Options(name, options)
    identifier = taken.require("id", str)
    separator = taken.take("separator", str, " ")
    judged_only = taken.take("judged_queries_only", bool, True)
    miracl = identifier.startswith("miracl/") and "duplicates" not in options
    first_duplicate = first_of_duplicates(taken) or miracl
    taken.finish()
    dataset = load_dataset(identifier)
    for part in ("docs", "queries", "qrels"):
        if not getattr(dataset, f"has_{part}")():
            raise InputError(
                f"collection {name!r}: the data set {identifier!r} has no {part}; choose a subset"
                " that has, such as one that ends in /test or /dev"
            )
    with files_of(identifier):
        queries = [Query(query.query_id, query.text) for query in dataset.queries_iter()]
        qrels = Qrels.from_rows(_unique(dataset.qrels_iter(), identifier))
    return Collection(
        name=name,
        documents=lambda: dataset_documents(identifier, separator),
        queries=keep_judged(queries, qrels, name) if judged_only else queries,
        qrels=qrels,
        description=f"{identifier} of ir_datasets",
        language=(dataset.docs_lang() or "") if hasattr(dataset, "docs_lang") else "",
        place=lambda number: f"{identifier}, document {number + 1}",
        first_duplicate=first_duplicate,
        document_total=document_total(dataset),
    )


def load_dataset(identifier: str) -> Any:
    """The ir_datasets object of an id; nothing is downloaded yet.

    Raises:
        InputError: ir_datasets is not installed, or does not know the id.
    """
    try:
        import ir_datasets
    except ImportError:
        raise InputError(
            f"data set {identifier!r} needs the package ir-datasets, which is not installed;"
            " install whencount[study]"
        ) from None
    try:
        return ir_datasets.load(identifier)
    except KeyError:
        raise InputError(
            f"ir_datasets knows no data set {identifier!r}; its ids are listed at"
            " https://ir-datasets.com"
        ) from None


def dataset_documents(identifier: str, separator: str = " ") -> Iterator[Document]:
    """Yield the documents of a data set: title and text joined, or its own default text.

    Raises:
        InputError: its files cannot be had.
    """
    dataset = load_dataset(identifier)
    with files_of(identifier):
        for document in dataset.docs_iter():
            yield Document(document.doc_id, _text(document, separator))


def document_total(dataset: Any) -> int | None:
    """How many documents the metadata of ir_datasets declares, None where it does not."""
    count = (dataset.docs_metadata() or {}).get("count")
    return count if isinstance(count, int) else None


@contextmanager
def files_of(identifier: str) -> Iterator[None]:
    """Turn any failure to fetch or read the files of a data set into one sentence.

    Raises:
        InputError: naming the id and where its files would stand.
    """
    from ir_datasets.util import home_path

    try:
        yield
    except (InputError, GeneratorExit, KeyboardInterrupt):
        raise
    except Exception as error:
        place = home_path() / identifier.split("/", maxsplit=1)[0]
        first = (str(error).strip().splitlines() or [""])[0]
        raise InputError(
            f"data set {identifier!r}: its files could not be fetched or read"
            f" ({type(error).__name__}: {first[:200]}); they belong in {place} (the variable"
            " IR_DATASETS_HOME moves it): connect and run again, put them there by hand, or remove"
            " a damaged one"
        ) from error


def _text(document: Any, separator: str) -> str:
    if hasattr(document, "text"):
        return join_title(getattr(document, "title", "") or "", document.text or "", separator)
    return str(document.default_text())


def _unique(judgements: Iterator[Any], identifier: str) -> Iterator[tuple[str, str, int]]:
    seen: dict[tuple[str, str], int] = {}
    for row in judgements:
        pair = (row.query_id, row.doc_id)
        relevance = int(row.relevance)
        earlier = seen.setdefault(pair, relevance)
        if earlier != relevance:
            raise InputError(
                f"data set {identifier!r}: query {pair[0]!r} and document {pair[1]!r} are judged"
                f" both {earlier} and {relevance}; report it to its owners"
            )
    for pair, relevance in seen.items():
        yield (*pair, relevance)
