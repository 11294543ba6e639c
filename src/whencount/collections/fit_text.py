"""Passages that bases are fitted on: text of packages, or a sample of a passage collection."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import regex

from whencount.collections.beir import plain_or_gzip, qrels_file
from whencount.collections.data_files import load_dataset, read
from whencount.collections.irds import dataset_documents, document_total
from whencount.collections.model import Document, Options, nearest
from whencount.collections.packages import Docstring, docstrings_of_file, package_files
from whencount.collections.qrels import read_qrels
from whencount.collections.selection import priority, sample_documents
from whencount.collections.trec import read_documents
from whencount.errors import InputError

PACKAGES = ("torch", "transformers", "matplotlib", "networkx", "sympy", "sqlalchemy")
_DOCUMENTATION = (".rst", ".md", ".txt")
_NO_PROSE = ("license", "licence", "copying", "notice", "authors", "requirements", "top_level")
_LEAST_LETTERS = 0.7
_OVERLAP_WORDS = 8
_WORD = regex.compile(r"[\p{L}\p{N}\p{M}]+")


@dataclass(frozen=True)
class FitPassages:
    """Passages without queries or judgements.

    Attributes:
        name: how config and results call them.
        documents: returns a fresh iterator over the passages.
        description: one sentence for a person.
        document_total: how many there are, None where unknown before reading.
    """

    name: str
    documents: Callable[[], Iterator[Document]]
    description: str
    document_total: int | None


def open_fit_passages(options: Mapping[str, Any], seed: int = 0, name: str = "fit") -> FitPassages:
    """Open the fit passages that the config asks for, by the option `source`.

    * `packages`: docstrings and documentation files of installed `packages`, cut into passages
      of `minimum_words` (30) to `maximum_words` (150) words. Files are taken in an order drawn by
      `seed`, at most `per_package` passages of each (by default twice an equal share), and
      `passages` (6,000) in all.
    * `file`: `documents`, JSON lines or `id <tab> text`; with `qrels`, only the documents they
      judge relevant; `passages` (200,000) of them, drawn by `seed`.
    * `beir`: the corpus of the folder `path`; with `split`, only the documents that its qrels
      judge relevant; otherwise as `file`.
    * `ir_datasets`: `id` (default `msmarco-passage/train`): documents that its qrels
      judge relevant (`positives_only`, default true), otherwise as `file`.

    Raises:
        InputError: an option is wrong, or the text cannot be had.
    """
    sources = {
        "packages": _from_packages,
        "file": _from_file,
        "beir": _from_beir,
        "ir_datasets": _from_ir_datasets,
    }
    source = options.get("source", "packages")
    if source not in sources:
        raise InputError(
            f"fit passages {name!r}: unknown source {source!r}; {nearest(str(source), sources)}"
        )
    return sources[source](Options(name, options), seed)


def package_passages(
    packages: Iterable[str],
    passages: int,
    seed: int,
    *,
    per_package: int = 1500,
    minimum_words: int = 30,
    maximum_words: int = 150,
) -> list[Document]:
    """Distinct passages from the text of installed packages, in an order drawn by `seed`.

    Raises:
        InputError: a package is not installed.
    """
    drawn: list[Document] = []
    seen: set[bytes] = set()
    for package in packages:
        found = 0
        for passage in _package_text(package, seed, minimum_words, maximum_words):
            digest = _digest(passage.text)
            if digest in seen:
                continue
            seen.add(digest)
            drawn.append(passage)
            found += 1
            if found == per_package:
                break
    drawn.sort(key=lambda passage: (priority(seed, passage.id), passage.id))
    return drawn[:passages]


def without_overlap(passages: Iterable[Document], texts: Iterable[str]) -> list[Document]:
    """The passages that share no run of eight words with any of the texts.

    Memory holds eight bytes for every word of the texts.
    """
    taken: set[int] = set()
    for text in texts:
        taken.update(_runs(text))
    return [passage for passage in passages if taken.isdisjoint(_runs(passage.text))]


def chunks(text: str, minimum_words: int, maximum_words: int) -> Iterator[str]:
    """Cut a text into passages of `minimum_words` to `maximum_words` words.

    Paragraphs of prose are joined until they are long enough; code, tables and what is left
    below the minimum are dropped.
    """
    words: list[str] = []
    for paragraph in regex.split(r"\n\s*\n", text):
        if not _is_prose(paragraph):
            continue
        more = paragraph.split()
        if words and len(words) + len(more) > maximum_words:
            if len(words) >= minimum_words:
                yield " ".join(words)
            words = []
        words += more
        while len(words) > maximum_words:
            yield " ".join(words[:maximum_words])
            words = words[maximum_words:]
        if len(words) >= minimum_words:
            yield " ".join(words)
            words = []


def _from_packages(taken: Options, seed: int) -> FitPassages:
    packages = taken.names("packages", PACKAGES)
    size = taken.positive("passages", 6000)
    per_package = taken.positive("per_package", 2 * -(-size // len(packages)))
    minimum_words = taken.positive("minimum_words", 30)
    maximum_words = taken.positive("maximum_words", 150)
    taken.finish()
    if maximum_words < minimum_words:
        raise InputError(
            f"fit passages {taken.name!r}: 'maximum_words' is {maximum_words}, below"
            f" 'minimum_words' {minimum_words}"
        )
    passages = package_passages(
        packages,
        size,
        seed,
        per_package=per_package,
        minimum_words=minimum_words,
        maximum_words=maximum_words,
    )
    if not passages:
        raise InputError(
            f"fit passages {taken.name!r}: no text of {minimum_words} words or more in the"
            f" packages {', '.join(packages)}; name others"
        )
    return FitPassages(
        taken.name,
        lambda: iter(passages),
        f"docstrings and documentation of {', '.join(packages)}",
        len(passages),
    )


def _from_file(taken: Options, seed: int) -> FitPassages:
    path = Path(taken.require("documents", str))
    qrels = taken.take("qrels", str)
    return _file_sample(taken, path, None if qrels is None else Path(qrels), seed)


def _from_beir(taken: Options, seed: int) -> FitPassages:
    folder = Path(taken.require("path", str))
    split = taken.take("split", str)
    qrels = None if split is None else qrels_file(folder, split)
    return _file_sample(taken, plain_or_gzip(folder / "corpus.jsonl"), qrels, seed)


def _file_sample(taken: Options, path: Path, qrels: Path | None, seed: int) -> FitPassages:
    separator = taken.take("separator", str, " ")
    size = taken.positive("passages", 200_000)
    taken.finish()
    positives = None
    if qrels is not None:
        judged = read_qrels(qrels)
        positives = set(judged.document_ids[judged.relevance > 0])

    def documents() -> Iterator[Document]:
        stream = _only(read_documents(path, separator), positives)
        yield from sample_documents(stream, size, seed)

    return FitPassages(taken.name, documents, f"passages of {path.name}", None)


def _from_ir_datasets(taken: Options, seed: int) -> FitPassages:
    identifier = taken.take("id", str, "msmarco-passage/train")
    positives_only = taken.take("positives_only", bool, True)
    separator = taken.take("separator", str, " ")
    size = taken.positive("passages", 200_000)
    taken.finish()
    dataset = load_dataset(identifier)

    def documents() -> Iterator[Document]:
        positives = None
        if positives_only:
            judged = read(identifier, dataset, "judgements")
            positives = {row.doc_id for row in judged if row.relevance > 0}
        stream = dataset_documents(identifier, separator)
        yield from sample_documents(_only(stream, positives), size, seed)

    total = document_total(dataset)
    return FitPassages(
        taken.name,
        documents,
        f"passages of {identifier} (ir_datasets)",
        None if total is None or positives_only else min(total, size),
    )


def _only(documents: Iterable[Document], ids: set[str] | None) -> Iterator[Document]:
    for document in documents:
        if (ids is None or document.id in ids) and document.text.strip():
            yield document


def _package_text(
    package: str, seed: int, minimum_words: int, maximum_words: int
) -> Iterator[Document]:
    files = list(package_files(package, (".py", *_DOCUMENTATION)))
    for relative, path in sorted(files, key=lambda file: priority(seed, file[0])):
        if relative.endswith(".py"):
            texts: Iterable[Docstring] = docstrings_of_file(relative, path)
        elif any(word in relative.lower() for word in _NO_PROSE):
            continue
        else:
            content = path.read_text(encoding="utf-8", errors="replace")
            texts = [Docstring(relative, "module", True, content)]
        for place, found in enumerate(texts):
            for number, text in enumerate(chunks(found.text, minimum_words, maximum_words)):
                yield Document(f"{package}:{found.name}:{place}.{number}", text)


def _is_prose(paragraph: str) -> bool:
    lines = paragraph.strip().splitlines()
    if not lines or any(
        line.lstrip().startswith((">>>", "...", "```", "|", "+-")) for line in lines
    ):
        return False
    visible = "".join(paragraph.split())
    letters = sum(character.isalpha() for character in visible)
    return letters >= _LEAST_LETTERS * len(visible)


def _digest(text: str) -> bytes:
    words = " ".join(_WORD.findall(text.casefold()))
    return hashlib.blake2b(words.encode("utf-8", "surrogatepass"), digest_size=12).digest()


def _runs(text: str) -> Iterator[int]:
    words = _WORD.findall(text.casefold())
    for start in range(len(words) - _OVERLAP_WORDS + 1):
        run = " ".join(words[start : start + _OVERLAP_WORDS]).encode("utf-8", "surrogatepass")
        yield int.from_bytes(hashlib.blake2b(run, digest_size=8).digest(), "big")
