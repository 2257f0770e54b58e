"""One document that cannot be committed costs itself alone."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import numpy as np

from daemon.pipeline import committer as committing
from daemon.pipeline.assembly import Containers, assemble
from daemon.pipeline.committer import Committer
from daemon.pipeline.pipeline import spoiled
from daemon.pipeline.work import Added, Outcome, Work
from memory.encoder import make_encoder
from store.errors import Incomplete
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
                lambda outcomes, *_: finished.extend(outcome.work.key for outcome in outcomes),
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


def living(snapshot):
    return sorted(snapshot.passage(int(row)).text for row in np.flatnonzero(snapshot.passage_alive))


class PurgingMeanwhile:
    """An encoder that lets a purge of everything dead come while it works."""

    def __init__(self, store, encoder):
        self.identity = encoder.identity
        self.store, self.encoder, self.purged = store, encoder, 0

    def encode(self, texts):
        return self.encoder.encode(texts)

    def encode_roughly(self, texts):
        self.purged += self.store.purge(timedelta(0))
        return self.encoder.encode_roughly(texts)


def test_a_purge_while_a_batch_is_completed_costs_no_document_its_passages(tmp_path):
    def documents(number, *texts):
        passages = [PassageText(passage_id("T", text), "T", text) for text in texts]
        work = Work("added:a", Added("added:a", "{}"), number, "added")
        document = Document("added:a", "added", passages=tuple(PassageRef(passage.id) for passage in passages))
        return Outcome(work, [document], {passage.id: passage for passage in passages})

    async def scenario():
        encoder = make_encoder("hash", "", 64, "cpu")
        with Store(tmp_path, encoder.identity) as store:
            containers, finished = Containers([]), []
            purging = PurgingMeanwhile(store, encoder)
            committer = Committer(
                store,
                purging,
                NothingFound(),
                lambda outcomes: assemble(store, containers, outcomes),
                lambda outcomes, *_: finished.extend(outcomes),
                spoiled,
            )
            running = asyncio.create_task(committer.run())
            # The third brings back a text of the first, dead by then, beside a new one that has to be encoded.
            for number, texts in enumerate((("one",), ("two",), ("one", "three"))):
                committer.put_now(documents(number, *texts))
                async with asyncio.timeout(60):
                    while len(finished) <= number:
                        assert not running.done(), running.exception()
                        await asyncio.sleep(0.01)
            running.cancel()
            assert purging.purged > 0
            return store.document("added:a"), living(store.snapshot())

    document, texts = asyncio.run(scenario())
    assert document.state is State.INDEXED, document.error
    assert texts == ["one", "three"]


def test_a_disk_that_refuses_first_does_not_hide_a_document_that_never_completes(tmp_path, monkeypatch):
    """It fails alone after its tries, however often the disk had refused before."""

    async def scenario():
        monkeypatch.setattr(committing, "PAUSE_S", 0.001)
        encoder = make_encoder("hash", "", 64, "cpu")
        with Store(tmp_path, encoder.identity) as store:
            real, refusals = store.commit, [OSError("no space left")] * (committing.COMPLETIONS + 1)

            def commit(batch):
                if refusals:
                    raise refusals.pop()
                if batch.passages:
                    raise Incomplete("it came without its vector")
                return real(batch)

            monkeypatch.setattr(store, "commit", commit)
            containers, finished = Containers([]), []
            committer = Committer(
                store,
                encoder,
                NothingFound(),
                lambda outcomes: assemble(store, containers, outcomes),
                lambda outcomes, *_: finished.extend(outcomes),
                spoiled,
            )
            committer.put_now(outcome(1))
            running = asyncio.create_task(committer.run())
            async with asyncio.timeout(60):
                while not finished:
                    assert not running.done(), running.exception()
                    await asyncio.sleep(0.01)
            running.cancel()
            return store.document("added:1")

    document = asyncio.run(scenario())
    assert document.state is State.FAILED
    assert "without its vector" in document.error
