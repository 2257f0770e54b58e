"""Requests about documents change exactly the documents that they name, into the documents that a source would give."""

import asyncio
import json
from contextlib import asynccontextmanager
from typing import Any

import pytest

from consumers.splitting import SplitSettings
from daemon.parser_pool.pool import ParserPool
from daemon.pipeline.document_reader import DocumentReader
from daemon.pipeline.ownership import ADDED, Owners
from daemon.pipeline.pipeline import Pipeline
from daemon.services.documents.document_service import DocumentService
from daemon.services.freshness import ClientPositions
from daemon.services.scopes import ScopeService
from store.store import Store
from store.types import Batch, Document, State
from tests.daemon.pipeline.test_records import ENCODER, Rules

TEXT = "\n\n".join(f"Ada Lovelace wrote letter {number} to Charles Babbage from Turin." for number in range(40))


@asynccontextmanager
async def service(store):
    pool = ParserPool()
    reader = DocumentReader(pool, SplitSettings(60, 10))
    pipeline = Pipeline(store, ENCODER, Rules(), reader, lambda *_, **__: None, 1, owners=Owners(()))
    scopes = ScopeService(store, tuple)
    pipeline.start()
    absent: Any = None  # neither states nor extractions are needed
    yield DocumentService(store, pipeline, absent, absent, scopes, ClientPositions(store.folder))
    await pipeline.drained()
    await pipeline.stop(5)
    await pool.children.close()


@pytest.mark.process
@pytest.mark.parametrize(
    ("id", "is_whole"), [("import/0123456789abcdef", True), ("import/notes", False), ("import/00000000000000ff", False)]
)
def test_only_an_imported_passage_stays_whole_if_it_is_retried(tmp_path, id, is_whole):
    uri, triples = f"added:{id}", [["ada", "wrote to", "charles"]]
    # The last id is a client's own, and its document not one of an import.
    own = {"author": "Ada"} if id.endswith("ff") else {"triples": triples}
    payload = json.dumps({"title": "Letters", "text": TEXT, **own})

    async def retry(store):
        async with service(store) as documents:
            assert await documents.retry_failed(lambda _document: True) == 1

    with Store(tmp_path / "store", ENCODER.identity) as store:
        failed = Document(uri, ADDED, state=State.FAILED, error="internal", attempts=1, payload=payload)
        store.commit(Batch(documents=(failed,)))
        asyncio.run(retry(store))
        document = store.document(uri)
    assert document is not None and document.state is State.INDEXED
    assert (len(document.passages) == 1) is is_whole


def test_remove_counts_a_repeated_uri_once(tmp_path):
    async def remove(store):
        async with service(store) as documents:
            return await documents.remove(["added:a", "added:a", "added:b", "added:b"])

    with Store(tmp_path / "store", ENCODER.identity) as store:
        store.commit(Batch(documents=(Document("added:a", ADDED),)))
        answer = asyncio.run(remove(store))
        assert store.document("added:a") is None
    assert (answer.removed, answer.missing, answer.missing_uris) == (1, 1, ["added:b"])
