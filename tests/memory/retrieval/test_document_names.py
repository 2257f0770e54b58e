"""A document is found by its names, which stand nowhere in its passages; they rank nothing that has other names."""

from pathlib import Path

import pytest

from memory.batch_encoding import with_vectors
from memory.encoder import make_encoder
from memory.retrieval.retrieve import retrieve
from memory.retrieval.settings import RetrievalSettings
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
        documents, texts = [], []
        for path, (metadata, passages) in PAGES.items():
            found = [PassageText(passage_id("", text), "", text) for text in passages]
            texts += found
            uri = "file:///drive/" + path.replace(" ", "%20")
            refs = tuple(PassageRef(each.id, {}, ()) for each in found)
            documents.append(Document(uri, "/drive", Path(path).stem, State.INDEXED, metadata=metadata, passages=refs))
        store.commit(with_vectors(store, ENCODER, Batch(tuple(documents), (), tuple(texts))))
        yield store


def first(memory, query, mode="fused"):
    hits = retrieve(memory.snapshot(), ENCODER, query, mode, 5, RetrievalSettings()).hits
    return memory.documents_with_passage(hits[0].id)[0].removeprefix("file:///drive/")


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
def test_a_name_finds_its_page(memory, query, page):
    assert first(memory, query) == page


def test_a_tag_is_a_word_of_its_page(memory):
    hits = retrieve(memory.snapshot(), ENCODER, "graph", "fused", 3, RetrievalSettings()).hits
    assert any("Backlinks" in uri for hit in hits for uri in memory.documents_with_passage(hit.id))


def test_words_rank_the_passages_of_a_named_document(memory):
    hits = retrieve(
        memory.snapshot(), ENCODER, "What is the April reading of Zaehler 5571?", "fused", 5, RetrievalSettings()
    ).hits
    assert hits[0].text == "Reading of April: 830."


def test_bm25_compares_the_words_of_passages_alone(memory):
    found = retrieve(memory.snapshot(), ENCODER, "Zaehler", "bm25", 5, RetrievalSettings())
    assert found.hits == ()
