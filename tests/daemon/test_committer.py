"""One document that cannot be committed costs itself alone."""

import asyncio
from dataclasses import replace

from daemon.pipeline.assembly import Containers, assemble
from daemon.pipeline.committer import Committer
from daemon.pipeline.pipeline import spoiled
from daemon.pipeline.work import Added, Outcome, Work
from memory.encoder import make_encoder
from store.keys import passage_id
from store.store import Store
from store.types import Document, PassageRef, PassageText, State


class NothingFound:
    name = "none"

    async def extract(self, passages):
        return []


def outcome(number, broken=False):
    """Reading's result for one document; a broken one refers to a passage whose text is not there."""
    work = Work(f"added:{number}", Added(f"added:{number}", "{}"), number, "added")
    text = PassageText(passage_id("T", f"text {number}"), "T", f"text {number}")
    document = Document(work.key, "added", passages=(PassageRef(text.id),))
    return Outcome(work, [document], {} if broken else {text.id: text})


def test_a_document_that_spoils_its_batch_fails_alone_and_the_others_are_committed(tmp_path):
    async def scenario():
        encoder = make_encoder("hash", "", 64, "cpu")
        finished = []
        with Store(tmp_path, encoder.identity) as store:
            containers = Containers([])
            committer = Committer(
                store,
                encoder,
                NothingFound(),
                lambda outcomes: replace(assemble(store, containers, outcomes)),
                lambda outcomes, _batch, _committed: finished.extend(outcome.work.key for outcome in outcomes),
                spoiled,
            )
            for number in range(6):
                committer.put_now(outcome(number, broken=number == 3))
            running = asyncio.create_task(committer.run())
            async with asyncio.timeout(60):
                while len(finished) < 6:
                    assert not running.done(), running.exception()
                    await asyncio.sleep(0.01)
            running.cancel()
            return {document.uri: document for document in store.documents()}

    documents = asyncio.run(scenario())
    assert [uri for uri, document in documents.items() if document.state is State.FAILED] == ["added:3"]
    assert "internal error" in documents["added:3"].error
    assert sum(document.state is State.INDEXED for document in documents.values()) == 5
