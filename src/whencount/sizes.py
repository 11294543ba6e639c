"""How large the collections of a configuration are, as far as it can be told without reading them.

Published collections have the sizes of the catalogue, built-in ones those that their options say,
folders are counted. What cannot be told is None, never guessed.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from whencount.errors import InputError
from whencount.grid import corpus_of

TOKENS_PER_CHARACTER = 0.27
"""Counted with the vocabulary of multilingual E5: 0.24 to 0.25 for English prose, 0.29 Hindi."""

TOKENS: Mapping[str, tuple[int, int]] = {
    "msmarco-dev": (76, 8),
    "trec-dl-2019": (76, 8),
    "trec-dl-2020": (76, 8),
    "arguana": (229, 259),
    "nfcorpus": (380, 6),
    "scifact": (358, 23),
    "fiqa": (180, 15),
    "scidocs": (300, 17),
    "trec-covid": (257, 17),
    "limit": (192, 7),
    "miracl-hi": (96, 15),
    "miracl-bn": (101, 17),
    "miracl-te": (70, 12),
}
"""Tokens of a document and of a query of the published collections, in that vocabulary.

At most 510 of a text. Counted for all queries, for SciFact and for a part of LIMIT. The other
documents: the words that Thakur et al. (2021, arXiv:2104.08663) report, with as many tokens per
word as the queries have; MIRACL from the size of its compressed files, two bytes a token as in a
Hindi translation of SQuAD.
"""

_LIMIT_TOKENS_PER_LIKE = 2.7
_SAMPLE_BYTES = 1 << 25
_LINES_READ = 2000


@dataclass(frozen=True)
class Size:
    """The size of a collection; None where it cannot be told.

    Attributes:
        documents, queries: how many.
        document_tokens, query_tokens: mean tokens of one, without prefix and special tokens.
        origin: where the numbers come from, for a person.
    """

    documents: int | None = None
    queries: int | None = None
    document_tokens: float | None = None
    query_tokens: float | None = None
    origin: str = "unknown"

    @property
    def known(self) -> bool:
        """Whether all of it is known."""
        return None not in (
            self.documents,
            self.queries,
            self.document_tokens,
            self.query_tokens,
        )


_WIKI_SECTIONS = Size(4310, 1435, 154, 8, "typical")


def collection_sizes(config: Mapping[str, Any]) -> dict[str, Size]:
    """The size of every collection of a validated configuration, by name.

    A collection that shares another's documents has that one's number and tokens of documents.

    Raises:
        InputError: a file of a folder that is here cannot be read.
    """
    own = {
        name: _size(name, options, int(config["encoder"].get("max_tokens", 512)))
        for name, options in config["collections"].items()
    }
    sizes = {}
    for name, size in own.items():
        corpus = own[corpus_of(config, name)]
        sizes[name] = replace(
            size, documents=corpus.documents, document_tokens=corpus.document_tokens
        )
    return sizes


def _size(name: str, options: Mapping[str, Any], max_tokens: int) -> Size:
    from whencount.collections.catalogue import PUBLISHED, entry_for

    source = options["source"]
    entry = entry_for(name, options)
    if source == "limit":
        people, pairs = options.get("documents", 2000), options.get("relevant_documents", 32)
        likes = max(options.get("likes", 50), pairs - 1)
        queries = pairs * (pairs - 1) // 2
        size = Size(people, queries, _LIMIT_TOKENS_PER_LIKE * likes, 5, "its options")
    elif source == "api-docs":
        number = options.get("documents", 3500)
        size = Size(number, number, 354, 15, "its options, at most")
    elif source == "wiki-sections":
        size = _WIKI_SECTIONS
    elif source == "beir" and Path(options["path"]).is_dir():
        size = _folder(Path(options["path"]), options)
    elif source == "trec" and Path(options["documents"]).is_file():
        documents, topics, qrels = (Path(options[key]) for key in ("documents", "topics", "qrels"))
        size = _files(documents, topics, qrels, options)
    elif entry is not None or (source == "beir" and name in PUBLISHED):
        entry = entry or PUBLISHED[name]
        size = Size(entry.documents, entry.queries, *TOKENS[entry.name], "published")
    else:
        return Size()
    return _cut(size, max_tokens)


def _cut(size: Size, max_tokens: int) -> Size:
    def least(tokens: float | None) -> float | None:
        return None if tokens is None else min(tokens, max_tokens)

    return replace(
        size,
        document_tokens=least(size.document_tokens),
        query_tokens=least(size.query_tokens),
    )


def _folder(folder: Path, options: Mapping[str, Any]) -> Size:
    from whencount.collections.beir import plain_or_gzip, qrels_file

    corpus, topics = (plain_or_gzip(folder / name) for name in ("corpus.jsonl", "queries.jsonl"))
    for path in (corpus, topics):
        if not path.is_file():
            raise InputError(f"{path} does not exist; a folder in the layout of BEIR holds it")
    return _files(corpus, topics, qrels_file(folder, options.get("split")), options)


def _files(documents: Path, queries: Path, qrels: Path, options: Mapping[str, Any]) -> Size:
    """The size of files; of the queries those that are judged, unless all are wanted."""
    from whencount.collections.qrels import read_qrels

    number, tokens, whole = _lines(documents)
    topics, topic_tokens, _ = _lines(queries)
    if options.get("judged_queries_only", True):
        topics = min(topics, len(set(read_qrels(qrels).query_ids)))
    origin = "counted" if whole else "counted in the first part of its file"
    return Size(number, topics, tokens, topic_tokens, origin)


def _lines(path: Path) -> tuple[int, float, bool]:
    """Lines of a file, tokens of one, and whether all were counted: a long file is sampled."""
    lines = characters = read = 0
    try:
        with path.open("rb") as raw:
            stream = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw
            whole = True
            for line in stream:
                lines += 1
                read += len(line)
                if lines <= _LINES_READ:
                    characters += _characters(line)
                if read >= _SAMPLE_BYTES:
                    whole = not stream.read(1)
                    break
            share = 1.0 if whole else raw.tell() / path.stat().st_size
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read ({error}); fetch it again") from error
    if not lines:
        raise InputError(f"{path} is empty; fetch it again")
    tokens = TOKENS_PER_CHARACTER * characters / min(lines, _LINES_READ)
    return round(lines / min(share, 1.0)), tokens, whole


def _characters(line: bytes) -> int:
    """Characters of the text of a line: JSON with title and text, or `id <tab> text`."""
    text = line.decode("utf-8", "replace")
    try:
        found = json.loads(text)
        return len(f"{found.get('title') or ''} {found['text']}".strip())
    except (ValueError, KeyError, AttributeError, TypeError):
        return len(text.partition("\t")[2] or text)
