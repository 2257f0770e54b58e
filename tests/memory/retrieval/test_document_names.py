"""A document is found by its names, which stand nowhere in its passages; they rank nothing that has other names."""

from pathlib import Path
from typing import Any

import pytest

from memory.batch_encoding import with_vectors
from memory.encoder import make_encoder
from memory.retrieval import name_words
from memory.retrieval.linking import query_titles
from memory.retrieval.retrieve import retrieve
from memory.retrieval.settings import RetrievalSettings
from store.links.names import own_names
from store.store import Store
from store.types import Batch, Document, PassageRef, PassageText, State, passage_id

ENCODER = make_encoder("hash", "64", 64, "cpu")
PAGES = {
    "Plugins/Search.md": (
        {"aliases": ["Find notes"]},
        ["Type words into the field.", "Terms may be quoted.", "Press enter."],
    ),
    "Plugins/Backlinks.md": ({"tags": ["graph"]}, ["Shows which pages lead here.", "Search is not needed for that."]),
    "Guides/Searching.md": ({}, ["How to search for words with the search field.", "Search again."]),
    "Meters/Zaehler 5571.pdf": ({}, ["Reading of March: 812.", "Reading of April: 830."]),
    "Meters/Zaehler 5572.pdf": ({}, ["Reading of March: 90.", "Reading of April: 97."]),
}


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory):
    with Store(tmp_path_factory.mktemp("names"), ENCODER.identity) as store:
        fill(store, PAGES)
        yield store


def fill(store, pages):
    documents, texts = [], []
    for path, (metadata, passages) in pages.items():
        found = [PassageText(passage_id("", text), "", text) for text in passages]
        texts += found
        uri = "file:///drive/" + path.replace(" ", "%20")
        refs = tuple(PassageRef(each.id, {}, ()) for each in found)
        documents.append(Document(uri, "/drive", Path(path).stem, State.INDEXED, metadata=metadata, passages=refs))
    store.commit(with_vectors(store, ENCODER, Batch(tuple(documents), (), tuple(texts))))


def first(memory, query, mode="fused"):
    hits = retrieve(memory.snapshot(), ENCODER, query, mode, 5, RetrievalSettings()).hits
    return memory.documents_with_passage(hits[0].id)[0].removeprefix("file:///drive/")


def test_only_documents_with_the_best_name_score_are_looked_for_in_the_query(tmp_path, monkeypatch):
    """All of them are called by the folder's name; only the one whose name scores more is looked for in the query."""
    monkeypatch.setattr(name_words, "MAX_NAMED_DOCUMENTS", 100)
    looked_at: list[object] = []

    def counted(names):
        looked_at.append(names)
        return own_names(names)

    monkeypatch.setattr(query_titles, "own_names", counted)
    notes: dict[str, Any] = {f"projects/r{at}.md": ({}, [f"Report {at} is about gauge {at}."]) for at in range(150)}
    with Store(tmp_path / "store", ENCODER.identity) as store:
        fill(store, notes)
        assert retrieve(store.snapshot(), ENCODER, "projects", "fused", 5, RetrievalSettings()).hits
        assert not looked_at
        fill(store, {"projects/Projects.md": ({}, ["What we do."])})
        assert first(store, "projects") == "projects/Projects.md"
        assert len(looked_at) == 1


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("Search", "Plugins/Search.md"),
        ("search", "Plugins/Search.md"),
        ("Backlinks", "Plugins/Backlinks.md"),
        ("Find notes", "Plugins/Search.md"),
        ("find notes", "Plugins/Search.md"),
        ("Zaehler 5571", "Meters/Zaehler%205571.pdf"),
        ("Zaehler 5572 April", "Meters/Zaehler%205572.pdf"),
    ],
)
def test_query_with_a_page_name_ranks_that_page_first(memory, query, page):
    assert first(memory, query) == page


def test_query_for_a_tag_finds_its_page(memory):
    hits = retrieve(memory.snapshot(), ENCODER, "graph", "fused", 3, RetrievalSettings()).hits
    assert any("Backlinks" in uri for hit in hits for uri in memory.documents_with_passage(hit.id))


def test_words_rank_the_passages_of_a_named_document(memory):
    hits = retrieve(
        memory.snapshot(), ENCODER, "What is the April reading of Zaehler 5571?", "fused", 5, RetrievalSettings()
    ).hits
    assert hits[0].text == "Reading of April: 830."


def test_bm25_does_not_match_document_names(memory):
    found = retrieve(memory.snapshot(), ENCODER, "Zaehler", "bm25", 5, RetrievalSettings())
    assert found.hits == ()
