"""The built-in collections and the text that bases are fitted on."""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from itertools import combinations
from pathlib import Path

import pytest

from whencount.collections import open_collection, open_fit_passages, without_overlap
from whencount.collections.api_docs import summary_and_rest
from whencount.collections.fit_text import chunks
from whencount.collections.limit_words import FAMILY_NAMES, FIRST_NAMES, LIKES, MODIFIERS
from whencount.collections.model import Collection, Document
from whencount.collections.selection import sample_documents
from whencount.collections.wikitext import sections
from whencount.errors import InputError


@pytest.fixture(scope="module")
def wiki() -> Collection:
    pytest.importorskip("importlib.metadata").distribution("gensim")
    return open_collection("wiki-sections", {})


@pytest.fixture(scope="module")
def docs() -> Collection:
    return open_collection("api-docs", {"packages": ["scipy", "statsmodels"], "documents": 1500})


def test_wiki_sections_has_the_expected_size(wiki: Collection) -> None:
    """About 4,246 documents, 1,423 queries and 3,997 judgements, by an independent prototype."""
    assert sum(1 for _ in wiki.documents()) == pytest.approx(4246, rel=0.03)
    assert len(wiki.queries) == pytest.approx(1423, rel=0.03)
    assert len(wiki.qrels) == pytest.approx(3997, rel=0.03)
    assert len({document.id.split("-")[0] for document in wiki.documents()}) == pytest.approx(
        106, abs=12
    )


def test_wiki_sections_leaves_no_markup(wiki: Collection) -> None:
    texts = [document.text for document in wiki.documents()]
    assert not [text for text in texts if re.search(r"\{\{|\}\}|\[\[|\]\]|\{\||</|&nbsp;", text)]
    assert min(len(text.split()) for text in texts) >= 30


def test_wiki_sections_never_imports_gensim(wiki: Collection) -> None:
    assert wiki.queries
    assert "gensim" not in sys.modules


def test_wikitext_keeps_what_a_reader_sees() -> None:
    markup = (
        "{{Infobox|name={{lang|fr|x}}}}\n"
        "[[File:a.jpg|thumb|A [[cat|caption]]]]'''Owls''' are [[bird of prey|raptors]]"
        "<ref name=a>Book</ref><ref name=b/> of {{convert|30|cm}}.<!-- hidden -->\n"
        "== Hunting ==\nThey hunt at [[night]] &ndash; see [http://x.org here].\n* a list\n"
        "{| class=x\n| cell {{y}}\n{|\n| inner\n|}\n|}\nSilently.\n"
    )
    lead, hunting = sections(markup)
    assert lead.paragraphs == ["Owls are raptors of 30 cm."]
    assert hunting.heading == "Hunting"
    assert hunting.paragraphs == ["They hunt at night – see here.", "Silently."]


def test_the_summary_is_gone_from_the_rest() -> None:
    summary, rest = summary_and_rest(
        "Return the mean.  Of all\nvalues.\n\nMore. return the\n  mean. End."
    )
    assert summary == "Return the mean."
    assert "return the" not in rest.lower()
    assert rest.split() == ["Of", "all", "values.", "More.", "End."]


def test_api_docs_never_shows_a_query_in_its_document(docs: Collection) -> None:
    documents = {document.id: " ".join(document.text.split()) for document in docs.documents()}
    queries = {query.id: query.text for query in docs.queries}
    for query, document in zip(docs.qrels.query_ids, docs.qrels.document_ids, strict=True):
        assert queries[query].lower() not in documents[document].lower()


def test_api_docs_merges_duplicates(docs: Collection) -> None:
    documents = [" ".join(document.text.split()) for document in docs.documents()]
    assert len(set(documents)) == len(documents) == 1500
    assert len({query.text for query in docs.queries}) == len(docs.queries)
    # Some summaries do recur, so the merge is not vacuous.
    assert len(docs.qrels) > len(docs.queries)


def test_api_docs_draws_by_seed_alone() -> None:
    options = {"packages": ["scipy"], "documents": 100}
    drawn = [
        [
            document.id
            for document in open_collection("api-docs", options | {"seed": seed}).documents()
        ]
        for seed in (0, 0, 1)
    ]
    assert drawn[0] == drawn[1]
    assert drawn[0] != drawn[2]


def test_a_package_that_is_not_installed_is_named() -> None:
    with pytest.raises(InputError, match="'no-such-package-here' is not installed"):
        open_collection("api-docs", {"packages": ["no-such-package-here"]})


@pytest.mark.parametrize("relevant", [5, 46])
def test_limit_asks_for_every_pair_of_the_relevant_people(relevant: int) -> None:
    options = {"relevant_documents": relevant, "documents": 300, "likes": 50}
    collection = open_collection("limit", options)
    answers = defaultdict(set)
    for query, document in zip(
        collection.qrels.query_ids, collection.qrels.document_ids, strict=True
    ):
        answers[query].add(document)
    people = set().union(*answers.values())
    assert len(people) == relevant
    assert Counter(map(frozenset, answers.values())) == Counter(
        map(frozenset, combinations(people, 2))
    )


def test_limit_judges_exactly_those_who_like_the_thing() -> None:
    collection = open_collection("limit", {"relevant_documents": 46, "documents": 400})
    likes = {}
    for document in collection.documents():
        name, listed = document.text.removesuffix(".").split(" likes ")
        assert document.id == name.replace(" ", "_")
        likes[document.id] = set(listed.split(", "))
        assert len(likes[document.id]) == 50
    judged = set(zip(collection.qrels.query_ids, collection.qrels.document_ids, strict=True))
    for query in collection.queries:
        thing = query.text.removeprefix("Who likes ").removesuffix("?")
        assert {(query.id, name) for name, listed in likes.items() if thing in listed} == {
            pair for pair in judged if pair[0] == query.id
        }


def test_limit_refuses_more_than_it_has_words_for() -> None:
    with pytest.raises(InputError, match=r"need .* things, but there are"):
        open_collection("limit", {"relevant_documents": 400, "documents": 500})
    with pytest.raises(InputError, match="'documents' is 5"):
        open_collection("limit", {"relevant_documents": 6, "documents": 5})


def test_limit_words_are_distinct_and_suffice_for_the_published_size() -> None:
    for words in (FIRST_NAMES, FAMILY_NAMES, LIKES, MODIFIERS):
        assert len(set(words)) == len(words)
    assert len(FIRST_NAMES) * len(FAMILY_NAMES) >= 50_000
    assert len(LIKES) >= 46 * 45 // 2 + 380


def test_fit_passages_have_the_asked_length_and_are_distinct() -> None:
    options = {"source": "packages", "packages": ["networkx", "sqlalchemy"], "passages": 800}
    passages = list(open_fit_passages(options, 0).documents())
    assert len(passages) == 800
    assert len({passage.text for passage in passages}) == 800
    sizes = [len(passage.text.split()) for passage in passages]
    assert min(sizes) >= 30
    assert max(sizes) <= 150
    assert list(open_fit_passages(options, 0).documents()) == passages
    assert list(open_fit_passages(options, 1).documents()) != passages


def test_fit_passages_are_no_text_of_the_collections(wiki: Collection, docs: Collection) -> None:
    options = {"source": "packages", "packages": ["networkx", "sqlalchemy"], "passages": 800}
    passages = list(open_fit_passages(options, 0).documents())
    texts = [document.text for part in (wiki, docs) for document in part.documents()]
    # Stock phrases of docstrings may recur; whole passages may not.
    assert len(without_overlap(passages, texts)) >= 0.97 * len(passages)
    joined = "\n".join(" ".join(text.split()) for text in texts)
    assert not [passage for passage in passages if passage.text in joined]


def test_passages_that_share_eight_words_with_a_text_are_left_out() -> None:
    shared = "the quick brown fox jumps over lazy dogs"
    passages = [Document("a", f"Once {shared}, twice."), Document("b", shared[4:] + " again")]
    kept = without_overlap(passages, [f"They say THE quick-brown {shared[16:]}!"])
    assert [passage.id for passage in kept] == ["b"]


def test_chunks_drop_code_and_cut_what_is_long() -> None:
    prose = " ".join(["word"] * 20)
    text = f"{prose}\n\n>>> code()\n\n{prose}\n\n{' '.join(['long'] * 70)}\n\nshort"
    assert [len(chunk.split()) for chunk in chunks(text, 30, 50)] == [40, 50]


def test_a_sample_depends_on_the_documents_and_not_on_their_order(tmp_path: Path) -> None:
    documents = [Document(str(number), "x") for number in range(1000)]
    drawn = sample_documents(documents, 50, 3)
    again = sample_documents(reversed(documents), 50, 3)
    assert len(drawn) == 50
    assert {document.id for document in drawn} == {document.id for document in again}
    assert [int(document.id) for document in drawn] == sorted(int(d.id) for d in drawn)


def test_fit_passages_of_a_file_are_a_seeded_sample_of_its_positives(tmp_path: Path) -> None:
    path, qrels = tmp_path / "passages.tsv", tmp_path / "qrels.txt"
    path.write_text("".join(f"{number}\tpassage {number}\n" for number in range(40)))
    qrels.write_text("".join(f"q 0 {number} {number % 2}\n" for number in range(40)))
    options = {"source": "file", "documents": str(path), "qrels": str(qrels), "passages": 10}
    drawn = [int(document.id) for document in open_fit_passages(options, 5).documents()]
    assert len(drawn) == 10
    assert all(number % 2 for number in drawn)
    assert drawn == sorted(drawn)
