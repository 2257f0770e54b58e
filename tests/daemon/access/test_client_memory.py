"""Random documents, labels and clients: each client's answers equal those of a fresh memory of the documents that it sees."""

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from daemon.api.access.client import Client, Right
from daemon.contract.query import Mode, QueryRequest
from daemon.contract.scope import Scope
from daemon.services.query import QueryService
from daemon.services.scopes import ScopeService
from daemon.sources.base import SourceLabels
from memory.batch_encoding import EncodedAhead, with_vectors
from memory.encoder.hashing import HashEncoder
from memory.retrieval.settings import RetrievalSettings
from store.export.json_lines import export_lines
from store.store import Store
from store.types import Batch, Document, PassageRef, PassageText, passage_id

ENCODER = HashEncoder(64)
NAMES = ["orla quill", "the lamp", "the attic", "ternby", "the mill", "solveig aas"]
TEXTS = {
    f"{NAMES[i]} saw {NAMES[(i + step) % 6]} in {1900 + i}.": ((NAMES[i], "saw", NAMES[(i + step) % 6]),)
    for i in range(6)
    for step in (1, 2)
}
QUESTION = "Who saw the lamp in Ternby?"
URIS = ["file:///one/a", "file:///one/b", "file:///two/a", "added:x", "added:y", "kafka://t/1"]
SOURCES = {"file:///one": "one", "file:///two": "two", "added:": "added", "kafka:": "t"}
LABELS = ["hr", "board"]
labels_given = st.sets(st.sampled_from(LABELS)).map(sorted)

Made = tuple[tuple[str, ...], tuple[str, ...]]
"""Texts and own labels of a document."""


def source_of(uri: str) -> str:
    return next(name for begin, name in SOURCES.items() if uri.startswith(begin))


def batch(store: Store, documents: dict[str, Made], removed: tuple[str, ...] = ()) -> Batch:
    refs = {text: PassageRef(passage_id("", text), {}, triples) for text, triples in TEXTS.items()}
    records = tuple(
        Document(uri, source_of(uri), metadata={"labels": list(own)}, passages=tuple(refs[text] for text in texts))
        for uri, (texts, own) in documents.items()
    )
    texts = {text for made, _ in documents.values() for text in made}
    passages = tuple(PassageText(refs[text].passage, "", text) for text in sorted(texts))
    return with_vectors(store, ENCODER, Batch(records, removed, passages), EncodedAhead())


def service(store: Store, scopes: ScopeService) -> QueryService:
    return QueryService(store, ENCODER, RetrievalSettings, lambda: "fused", threads=1, scopes=scopes)


IN_ONE = Scope.model_validate({"in": ("/one",)})


def answer(service: QueryService, mode: Mode, scope: Scope | None, as_of: int | None = None) -> Any:
    request = QueryRequest(query=QUESTION, k=20, mode=mode, scope=scope, as_of=as_of, explain=True)
    found = asyncio.run(service.query(request))
    passages = [(p.id, round(p.score, 5), p.document, tuple(p.also_in)) for p in found.passages]
    triples = [(t.subject, t.object, round(t.score, 5), t.kept) for t in found.triples]
    return passages, triples, [(s.phrase, round(s.weight, 5)) for s in found.seeds]


class ClientsMemory(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp(prefix="hippod-clients-"))
        self.store = Store(self.home / "whole", ENCODER.identity)
        self.labels: dict[str, list[str]] = {name: [] for name in SOURCES.values()}
        self.documents: dict[str, Made] = {}
        self.past: dict[int, dict[str, Made]] = {}
        self.scopes = ScopeService(
            self.store, lambda: tuple((name, SourceLabels(tuple(each))) for name, each in sorted(self.labels.items()))
        )
        self.queries = service(self.store, self.scopes)

    def teardown(self) -> None:
        self.queries.close()
        self.store.close()
        shutil.rmtree(self.home)

    def seen(self, uri: str, made: Made, client: Client) -> bool:
        return client.labels is None or not client.labels.isdisjoint({*made[1], *self.labels.get(source_of(uri), ())})

    def alone(self, documents: dict[str, Made], check: Callable[[Store, QueryService], None]) -> None:
        with tempfile.TemporaryDirectory(dir=self.home) as folder, Store(Path(folder), ENCODER.identity) as fresh:
            if documents:
                fresh.commit(batch(fresh, documents))
            queries = service(fresh, ScopeService(fresh, tuple))
            check(fresh, queries)
            queries.close()

    @rule(
        uri=st.sampled_from(URIS),
        texts=st.sets(st.sampled_from(sorted(TEXTS)), min_size=1, max_size=3).map(sorted),
        own=labels_given,
    )
    def add(self, uri: str, texts: list[str], own: list[str]) -> None:
        self.documents[uri] = tuple(texts), tuple(own)
        self.store.commit(batch(self.store, {uri: self.documents[uri]}))
        self.past[self.store.snapshot().commit] = dict(self.documents)

    @rule(uri=st.sampled_from(URIS))
    def remove(self, uri: str) -> None:
        if self.documents.pop(uri, None) is not None:
            self.store.commit(Batch(removed=(uri,)))
            self.past[self.store.snapshot().commit] = dict(self.documents)

    @rule(source=st.sampled_from([*SOURCES.values()]), labels=labels_given)
    def relabel(self, source: str, labels: list[str]) -> None:
        self.labels[source] = labels

    @rule(
        labels=st.none() | labels_given,
        asked=st.sampled_from([None, Scope(labels=("hr",)), Scope(source="added"), IN_ONE]),
        mode=st.sampled_from([Mode(name) for name in ("fused", "hipporag2", "bm25", "hipporag")]),
        back=st.integers(0, 2),
    )
    def ask(self, labels: list[str] | None, asked: Scope | None, mode: Mode, back: int) -> None:
        client = Client("c", None if labels is None else frozenset(labels), frozenset(Right))
        scope = client.limited(asked)

        def chosen(uri: str, made: Made) -> bool:
            if asked is None:
                return True
            if asked.labels:
                return self.seen(uri, made, Client("", frozenset(asked.labels), frozenset()))
            return source_of(uri) == asked.source if asked.source else uri.startswith("file:///one/")

        now = {uri: made for uri, made in self.documents.items() if self.seen(uri, made, client) and chosen(uri, made)}

        def compare(fresh: Store, queries: QueryService) -> None:
            assert answer(self.queries, mode, scope) == answer(queries, mode, None)
            memory = self.store.snapshot() if scope is None else self.scopes.memory(scope).snapshot
            assert list(export_lines(memory)) == list(export_lines(fresh.snapshot()))
            named = self.scopes.named(scope)
            assert sum(each.documents for each in named.sources) == len(now)

        self.alone(now, compare)
        commit = self.store.snapshot().commit - back
        if back and commit in self.past:
            then = {
                uri: made
                for uri, made in self.past[commit].items()
                if self.seen(uri, made, client)
                and chosen(uri, made)
                and (uri not in self.documents or self.seen(uri, self.documents[uri], client))
            }
            self.alone(then, lambda _, queries: self._same_then(queries, mode, scope, commit))

    def _same_then(self, queries: QueryService, mode: Mode, scope: Scope | None, commit: int) -> None:
        assert answer(self.queries, mode, scope, commit) == answer(queries, mode, None)

    @invariant()
    def a_client_of_no_label_sees_nothing(self) -> None:
        nobody = Client("n", frozenset(), frozenset(Right)).limited(None)
        assert nobody is not None
        assert not any(self.scopes.holds(nobody)(document) for document in self.store.documents())


@pytest.mark.slow
def test_answers_of_a_client_equal_those_of_a_memory_of_its_visible_documents() -> None:
    run_state_machine_as_test(
        ClientsMemory,
        settings=settings(
            max_examples=8,
            stateful_step_count=14,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            derandomize=True,
        ),
    )


def test_past_query_omits_documents_that_the_client_may_no_longer_see() -> None:
    memory = ClientsMemory()
    try:
        first, second, *_ = sorted(TEXTS)
        for uri in ("added:x", "added:y"):
            memory.documents[uri] = (first if uri == "added:x" else second,), ("hr",)
            memory.store.commit(batch(memory.store, {uri: memory.documents[uri]}))
        then = memory.store.snapshot().commit
        memory.store.commit(batch(memory.store, {"added:x": ((first,), ("board",))}))
        memory.store.commit(Batch(removed=("added:y",)))
        scope = Client("c", frozenset({"hr"}), frozenset(Right)).limited(None)
        assert scope is not None
        assert answer(memory.queries, Mode("dense"), scope)[0] == []
        past = answer(memory.queries, Mode("dense"), scope, then)[0]
        assert [document for _, _, document, _ in past] == ["added:y"]
    finally:
        memory.teardown()
