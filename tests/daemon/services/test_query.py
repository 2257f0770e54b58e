"""A query beside a commit: what it answers is held by a document, or another memory is asked."""

import asyncio
from pathlib import Path

from daemon.contract.query import QueryRequest
from daemon.services.query import QueryService
from memory.encoder.hashing import HashEncoder
from memory.retrieval.settings import RetrievalSettings
from store.passage_id import passage_id
from store.snapshot import Snapshot
from store.store import Store
from store.types import Batch, Document, PassageRef, PassageText

TEXTS = {"a": "The lamp of the attic was made by Orla Quill.", "b": "The harbour freezes in winter."}


def batch(encoder: HashEncoder) -> Batch:
    ids = {name: passage_id(name, text) for name, text in TEXTS.items()}
    passages = tuple(PassageText(ids[name], name, text) for name, text in TEXTS.items())
    vectors = encoder.encode([passage.full for passage in passages])
    return Batch(
        documents=tuple(Document(f"added:{name}", "test", passages=(PassageRef(ids[name], {}, ()),)) for name in TEXTS),
        passages=passages,
        passage_vectors={passage.id: vector for passage, vector in zip(passages, vectors, strict=True)},
    )


class Racing(Store):
    """Removes the best passage's document just after its first query has taken hold of the memory."""

    raced = False

    def snapshot(self) -> Snapshot:
        taken = super().snapshot()
        if not self.raced:
            self.raced = True
            self.commit(Batch(removed=("added:a",)))
        return taken


def test_what_a_commit_removes_meanwhile_is_not_answered_without_a_document(tmp_path: Path) -> None:
    encoder = HashEncoder(64)
    with Racing(tmp_path, encoder.identity) as store:
        store.commit(batch(encoder))
        service = QueryService(store, encoder, RetrievalSettings, lambda: "dense")
        answer = asyncio.run(service.query(QueryRequest(query="Who made the lamp?", mode="dense")))
        service.close()
        assert store.raced
        assert [passage.document for passage in answer.passages] == ["added:b"]
        assert answer.commit == store.snapshot().commit
