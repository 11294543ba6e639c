"""`wiki-sections`: find the paragraphs of a section by article title and heading.

The text is the 106 English Wikipedia articles (CC BY-SA) in the test data of the gensim package,
whose files are read in place; gensim itself is never imported.
"""

from __future__ import annotations

import bz2
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from whencount.collections.model import Collection, Document, Options, Qrels, Query
from whencount.collections.packages import installed
from whencount.collections.wikitext import Section, sections
from whencount.errors import InputError

PACKAGE = "gensim"
_DUMP_PREFIX = "enwiki-latest-pages-articles1.xml"
# Sections that hold lists of literature and links, not text on the article's subject.
_APPARATUS = {
    "references", "notes", "footnotes", "citations", "sources", "bibliography", "further reading",
    "external links", "see also", "notes and references", "references and notes", "gallery",
    "works cited", "literature", "primary sources", "secondary sources",
}  # fmt: skip


def open_wiki_sections(name: str, options: Mapping[str, Any]) -> Collection:
    """Open the collection.

    A document is a paragraph of at least `minimum_words` (default 30) words; a query is an article
    title and a section heading; relevant are the paragraphs directly below that heading. The
    paragraphs of leads are documents that no query asks for.

    Raises:
        InputError: the gensim package or the dump in it is not there, or an option is wrong.
    """
    taken = Options(name, options)
    minimum_words = taken.positive("minimum_words", 30)
    taken.finish()
    documents: list[Document] = []
    queries: dict[str, Query] = {}
    rows: list[tuple[str, str, int]] = []
    for page, (title, parts) in enumerate(_articles()):
        paragraphs = 0
        for section in parts:
            query = f"{title} {section.heading}"
            for text in section.paragraphs:
                if len(text.split()) < minimum_words:
                    continue
                document = Document(f"{page}-{paragraphs}", text)
                paragraphs += 1
                documents.append(document)
                if section.heading:
                    # Headings that an article repeats make one query.
                    number = f"{page}-{len(queries)}"
                    known = queries.setdefault(query, Query(number, query))
                    rows.append((known.id, document.id, 1))
    return Collection(
        name=name,
        documents=lambda: iter(documents),
        queries=list(queries.values()),
        qrels=Qrels.from_rows(rows),
        description="Paragraphs of 106 Wikipedia articles; queries are title and section heading",
        language="en",
        licence="CC-BY-SA-3.0",
        document_total=len(documents),
    )


@cache
def _articles() -> tuple[tuple[str, tuple[Section, ...]], ...]:
    return tuple((title, tuple(_prose(markup))) for title, markup in _pages(_dump()))


def _prose(markup: str) -> Iterator[Section]:
    for section in sections(markup):
        if section.heading.lower() not in _APPARATUS:
            yield section


def _dump() -> Path:
    for entry in installed(PACKAGE).files or ():
        if entry.name.startswith(_DUMP_PREFIX):
            return Path(str(entry.locate()))
    raise InputError(
        f"the installed {PACKAGE} carries no {_DUMP_PREFIX}* in its test data; install the version"
        " that requirements.lock pins"
    )


def _pages(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (title, markup) of every article of a dump; redirects are left out."""
    with bz2.open(path) as stream:
        for _, element in ElementTree.iterparse(stream):
            namespace, brace, tag = element.tag.rpartition("}")
            if tag != "page":
                continue
            name = f"{namespace}{brace}"
            markup = element.findtext(f"{name}revision/{name}text") or ""
            if element.find(f"{name}redirect") is None:
                yield element.findtext(f"{name}title") or "", markup
            element.clear()
