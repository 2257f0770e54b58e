"""Mention edges take part in the walk, and are never encoded, linked to a query or shown as facts."""

import json
from pathlib import Path

import numpy as np
import pytest

from daemon.contract.documents import ShowDocument, ShowPassage, ShowPhrase
from daemon.pipeline.document_changes import normalised_triples
from daemon.services.documents.document_states import CurrentStates
from daemon.services.documents.show import show
from memory.answering.working_memory.subquery_retrieval import _nearest_triples
from memory.batch_encoding import with_vectors
from memory.encoder import make_encoder
from memory.explain.explain import context_edge, phrase_edge
from memory.explain.neighbourhood import EDGE_KINDS, node_neighbourhood, query_neighbourhood
from memory.phrase_normalisation import normalise_triple
from memory.retrieval.linking.triples import mention_scores
from memory.retrieval.modes import MODES
from memory.retrieval.query_context import QueryContext
from memory.retrieval.retrieve import retrieve
from memory.retrieval.settings import RetrievalSettings
from memory.types import Encoder
from store.export.json_lines import export_lines
from store.index.quantised.sample import RowSample
from store.index.vectors.matrix import Vectors
from store.snapshot import DocumentSnapshot, Snapshot
from store.store import Store
from store.types import MENTION, Batch, Document, PassageRef, PassageText, passage_id

HASH = make_encoder("hash", "64", 64, "cpu")
TEXTS = {
    "gauge": ("Heron gauge", "Ada Quill and Bo Ek stood by the Heron gauge."),
    "lamp": ("Quill lamp", "The Quill lamp lit Oslo."),
    "oslo": ("Oslo", "Oslo lies in Norway."),
}
TRIPLES = {
    "gauge": (("heron gauge", MENTION, "ada quill"), ("heron gauge", MENTION, "bo ek"), ("ada quill", "met", "bo ek")),
    "lamp": (("quill lamp", MENTION, "ada quill"), ("quill lamp", "lit", "oslo")),
    "oslo": (("oslo", "lies in", "norway"), ("oslo", MENTION, "norway")),
}
STATEMENTS = [triple for stated in TRIPLES.values() for triple in stated if triple[1]]
MENTIONS = [triple for stated in TRIPLES.values() for triple in stated if not triple[1]]


class CountingEncoder(Encoder):
    identity = HASH.identity
    encode_query = staticmethod(HASH.encode_query)

    def __init__(self) -> None:
        self.texts: list[str] = []

    def encode(self, texts):
        self.texts += texts
        return HASH.encode(texts)


class UnknownQuery(CountingEncoder):
    """An encoder that has words for no query: everything is compared by words."""

    @staticmethod
    def encode_query(text):
        return np.zeros(HASH.identity.dim, np.float32)


class NoStates(CurrentStates):
    """No work is in progress."""

    def __init__(self) -> None:
        """Needs no store."""


def phrase_row(snapshot: Snapshot, phrase: str) -> int:
    row = snapshot.phrase_row(phrase)
    assert row is not None
    return row


@pytest.fixture
def encoder():
    return CountingEncoder()


@pytest.fixture
def memory(tmp_path: Path, encoder):
    with Store(tmp_path / "store", encoder.identity) as store:
        passages = {name: PassageText(passage_id(*text), *text) for name, text in TEXTS.items()}
        documents = [
            Document(f"file:///{name}", "test", passages=(PassageRef(passages[name].id, {}, TRIPLES[name]),))
            for name in TEXTS
        ]
        batch = Batch(tuple(documents), passages=tuple(passages.values()))
        store.commit(with_vectors(store, encoder, batch))
        yield store


def test_mention_edges_are_not_encoded(memory: Store, encoder: CountingEncoder) -> None:
    phrases = {end for subject, _, object_ in [*STATEMENTS, *MENTIONS] for end in (subject, object_)}
    statements = {f"('{subject}', '{predicate}', '{object_}')" for subject, predicate, object_ in STATEMENTS}
    assert sorted(encoder.texts) == sorted(
        phrases | statements | {f"{title}\n{text}" for title, text in TEXTS.values()}
    )


@pytest.mark.parametrize("make", [CountingEncoder, UnknownQuery], ids=["by cosine", "by words"])
@pytest.mark.parametrize("mode", MODES)
def test_no_query_is_linked_to_a_mention_edge(memory: Store, mode: str, make: type[CountingEncoder]) -> None:
    settings = RetrievalSettings(top_triples=10)
    linked = set()
    for query in ("Where is the Heron gauge of Ada Quill?", "Quill lamp, Ada Quill and Bo Ek", "Oslo Norway"):
        found = retrieve(memory.snapshot(), make(), query, mode, 10, settings)
        linked |= {(triple.subject, triple.predicate, triple.object) for triple in found.triples}
    assert linked <= set(STATEMENTS)
    assert linked or mode not in ("fused", "hipporag2")


def test_explained_edges_distinguish_mentions_from_relations(memory: Store) -> None:
    """The walk goes from "quill lamp" to the gauge's passage over a mention edge."""
    snapshot = memory.snapshot()
    rows = {text: phrase_row(snapshot, text) for text in ("quill lamp", "ada quill", "oslo", "norway")}
    edge = phrase_edge(snapshot, rows["quill lamp"], rows["ada quill"])
    assert (edge.kind, edge.weight, edge.triples) == ("mention", 1.0, ())
    # A pair with a statement has a relation edge too, and that is the one that a path names.
    stated = phrase_edge(snapshot, rows["oslo"], rows["norway"])
    assert (stated.kind, [each.triple for each in stated.triples]) == ("relation", [("oslo", "lies in", "norway")])
    gauge = snapshot.passage_row(passage_id(*TEXTS["gauge"]))
    assert gauge is not None
    about = context_edge(snapshot, rows["ada quill"], gauge)
    assert [each.triple for each in about.triples] == [("ada quill", "met", "bo ek")]


def test_mention_edges_are_exported_and_counted_as_edges_not_triples(memory: Store) -> None:
    snapshot = memory.snapshot()
    lines = [json.loads(line) for line in export_lines(snapshot)]
    triples = [(line["subject"], line["predicate"], line["object"]) for line in lines if line["kind"] == "triple"]
    assert triples == sorted(STATEMENTS)
    edges = [line for line in lines if line["kind"] == "edge"]
    assert [(e["source"], e["target"], e["weight"]) for e in edges if e["type"] == "mention"] == [
        ("ada quill", "heron gauge", 1.0),
        ("ada quill", "quill lamp", 1.0),
        ("bo ek", "heron gauge", 1.0),
        ("norway", "oslo", 1.0),
    ]
    assert snapshot.edges["mention"] == 4
    assert snapshot.edges["relation"] == sum(edge["type"] == "relation" for edge in edges) == 3
    assert snapshot.living_statements == 3


def test_show_and_graph_list_only_statements(memory: Store) -> None:
    snapshot = memory.snapshot()
    whole = DocumentSnapshot(
        snapshot, {each.uri: each for each in memory.documents()}, memory.document_snapshot().holders
    )

    def shown(key):
        answer = show(whole, lambda passage: None, key, 100, NoStates())
        assert isinstance(answer, ShowPassage | ShowPhrase | ShowDocument)
        assert answer.counts["triples"] == len(answer.triples)
        return [(each.subject, each.predicate, each.object) for each in answer.triples]

    assert shown(passage_id(*TEXTS["gauge"])) == [("ada quill", "met", "bo ek")]
    assert shown("Ada Quill") == [("ada quill", "met", "bo ek")]
    assert show(whole, lambda passage: None, json.dumps(MENTIONS[0]), 100, NoStates()) is None
    context = QueryContext(snapshot, HASH, "Who met Ada Quill?", RetrievalSettings(), k=3)
    for found in (
        query_neighbourhood(context, "fused", 50),
        node_neighbourhood(context, "fused", snapshot, phrase_row(snapshot, "ada quill"), 50),
    ):
        kinds = [EDGE_KINDS[kind] for kind in found.edges.kinds.tolist()]
        assert "mention" in kinds
        for kind, triples in zip(kinds, found.edges.triples, strict=True):
            assert bool(triples) == (kind == "relation") and set(triples) <= set(STATEMENTS)


def test_a_deep_answer_is_given_no_mention_edge(memory: Store) -> None:
    snapshot = memory.snapshot()
    entities = list(range(snapshot.n_phrases))
    found = _nearest_triples(snapshot, HASH.encode_query("Who met Ada Quill?"), entities, 10)
    assert {(each.subject, each.predicate, each.object) for each in found} == set(STATEMENTS)


def test_mention_edge_score_follows_its_nearer_end(memory: Store) -> None:
    snapshot = memory.snapshot()
    context = QueryContext(snapshot, HASH, "Who met Ada Quill?", RetrievalSettings())
    rows = np.flatnonzero(~snapshot.is_statement)
    ends = [[HASH.encode([end])[0] @ context.vector for end in snapshot.triple(row)[::2]] for row in rows.tolist()]
    assert len(rows) == len(MENTIONS)
    assert mention_scores(context, rows) == pytest.approx(0.9 * np.max(ends, axis=1), abs=1e-4)


def test_imported_triples_cannot_contain_mention_edges() -> None:
    stated = [("Ada", "", "Bo"), ("Ada", "?!", "Cy"), ("Ada", "part of", "Bo"), ("", "", "Bo")]
    assert normalised_triples(stated) == (("ada", "part of", "bo"),)
    assert normalised_triples(stated, mentions=True) == (("ada", MENTION, "bo"), ("ada", "part of", "bo"))
    assert normalise_triple(["Ada", "", "Bo"]) is None


def test_rows_without_a_vector_are_in_no_sample() -> None:
    """A sample of zero vectors would have to be taken apart again for each query."""
    vectors = Vectors(64)
    known = HASH.encode([f"word {i}" for i in range(30)])
    vectors.extend(np.concatenate([known, np.zeros((50, 64), np.float32)]))
    view = vectors.view()
    blocks = [block for _, block in view.coded_blocks()]
    assert RowSample(64).of(blocks, 80, 1 << 14).rows.tolist() == list(range(30))
