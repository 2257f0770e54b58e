"""A document that cannot be committed fails alone."""

import asyncio
import time
from datetime import timedelta

import numpy as np
import pytest
from structlog.testing import capture_logs

from daemon.pipeline.backpressure import DEFAULT_QUEUE_LIMITS
from daemon.pipeline.commit import committer as committing
from daemon.pipeline.commit.batching import make_batch
from daemon.pipeline.commit.commit_queue import CommitQueue
from daemon.pipeline.commit.committer import MAX_SAME_ERRORS, Committer
from daemon.pipeline.commit.content_index import DocumentsByFile
from daemon.pipeline.work_items import AddedDocument, DocumentChange, ExtractionsFound, Urgency, Work
from memory import batch_encoding
from memory.encoder import make_encoder
from memory.encoder.errors import EncoderRefused, EncoderServerDown
from store.errors import IncompleteBatch
from store.reencode.new_vectors import NewVectors, Target
from store.reencode.switch import NewEncoder
from store.store import Store
from store.types import (
    Calibration,
    Document,
    Extraction,
    ExtractionOutcome,
    ExtractionState,
    PassageRef,
    PassageText,
    State,
    passage_id,
)


class NothingFound:
    name = "none"

    async def extract(self, passages):
        return []


class Poisoned:
    """An encoder that always fails in the same way on a batch with this word."""

    def __init__(self, encoder, word, kind=RuntimeError):
        self.identity = encoder.identity
        self.encoder, self.word, self.kind = encoder, word, kind

    def encode(self, texts):
        if any(self.word in text for text in texts):
            raise self.kind(f"cannot encode {self.word}")
        return self.encoder.encode(texts)

    def encode_low_precision(self, texts):
        return self.encode(texts)


@pytest.fixture
def hurried(monkeypatch):
    monkeypatch.setattr(committing, "MAX_PAUSE_S", 0.001)


def make_committer(store, encoder, note, **options):
    """Returns a committer whose extractor finds nothing. `note` receives the changes of each commit."""
    documents_by_file = DocumentsByFile([])
    return Committer(
        store,
        encoder,
        NothingFound(),
        CommitQueue(DEFAULT_QUEUE_LIMITS),
        lambda changes: make_batch(store, documents_by_file, changes),
        store.commit,
        lambda changes, *_: note(changes),
        **options,
    )


def committed_all(store, encoder, outcomes):
    """Commits the outcomes, and returns the log of it."""

    async def scenario():
        finished: list[DocumentChange] = []
        committer = make_committer(
            store, encoder, lambda found: finished.extend(each for each in found if isinstance(each, DocumentChange))
        )
        extractions = [each for each in outcomes if isinstance(each, ExtractionsFound)]
        loop = asyncio.get_running_loop()
        commits: list[asyncio.Future[None]] = [loop.create_future() for _ in extractions]
        for each, committed in zip(extractions, commits, strict=True):
            each.committed = committed
        for each in outcomes:
            committer.queue.put_now(each)
        running = asyncio.create_task(committer.run())
        async with asyncio.timeout(60):
            while len(finished) < len(outcomes) - len(extractions) or not all(each.done() for each in commits):
                assert not running.done(), running.exception()
                await asyncio.sleep(0.01)
        running.cancel()
        assert committer.trouble is None

    with capture_logs() as logged:
        asyncio.run(scenario())
    return [entry for entry in logged if entry["event"] != "committed"]


def outcome(number, broken=False):
    """Returns the parser's outcome for one document; a broken one refers to a passage without text."""
    work = Work(f"added:{number}", AddedDocument(f"added:{number}", "{}"), "added")
    text = PassageText(passage_id("T", f"text {number}"), "T", f"text {number}")
    document = Document(work.key, "added", passages=(PassageRef(text.id),))
    return DocumentChange(work, [document], {} if broken else {text.id: text})


@pytest.mark.slow
def test_invalid_document_fails_alone_and_its_batch_is_committed(tmp_path):
    async def scenario():
        encoder = make_encoder("hash", "", 64, "cpu")
        finished: list[str] = []
        with Store(tmp_path, encoder.identity) as store:
            committer = make_committer(
                store, encoder, lambda outcomes: finished.extend(outcome.work.key for outcome in outcomes)
            )
            for number in range(6):
                committer.queue.put_now(outcome(number, broken=number == 3))
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
    """An encoder during whose work a purge of everything dead takes place."""

    def __init__(self, store, encoder):
        self.identity = encoder.identity
        self.store, self.encoder, self.purged = store, encoder, 0

    def encode(self, texts):
        return self.encoder.encode(texts)

    def encode_low_precision(self, texts):
        self.purged += self.store.purge(timedelta(0))
        return self.encoder.encode_low_precision(texts)


def test_purge_during_a_commit_loses_no_passages(tmp_path):
    def documents(number, *texts):
        passages = [PassageText(passage_id("T", text), "T", text) for text in texts]
        work = Work("added:a", AddedDocument("added:a", "{}"), "added")
        document = Document("added:a", "added", passages=tuple(PassageRef(passage.id) for passage in passages))
        return DocumentChange(work, [document], {passage.id: passage for passage in passages})

    async def scenario():
        encoder = make_encoder("hash", "", 64, "cpu")
        with Store(tmp_path, encoder.identity) as store:
            finished = []
            purging = PurgingMeanwhile(store, encoder)
            committer = make_committer(store, purging, lambda outcomes: finished.extend(outcomes))
            running = asyncio.create_task(committer.run())
            # The third document uses a text of the first, dead by then, and a new one that needs encoding.
            for number, texts in enumerate((("one",), ("two",), ("one", "three"))):
                committer.queue.put_now(documents(number, *texts))
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


def test_document_without_vectors_fails_even_after_disk_errors(tmp_path, monkeypatch):
    """It fails alone after its attempts, however often the disk had refused before."""

    async def scenario():
        monkeypatch.setattr(committing, "MAX_PAUSE_S", 0.001)
        encoder = make_encoder("hash", "", 64, "cpu")
        with Store(tmp_path, encoder.identity) as store:
            real, refusals = store.commit, [OSError("no space left")] * (committing.MAX_COMPLETIONS + 1)

            def commit(batch):
                if refusals:
                    raise refusals.pop()
                if batch.passages:
                    raise IncompleteBatch("it came without its vector")
                return real(batch)

            monkeypatch.setattr(store, "commit", commit)
            finished = []
            committer = make_committer(store, encoder, lambda outcomes: finished.extend(outcomes))
            committer.queue.put_now(outcome(1))
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


@pytest.mark.parametrize("kind", [RuntimeError, RecursionError, EncoderRefused])
def test_unencodable_document_fails_alone_and_its_batch_is_indexed(tmp_path, hurried, kind):
    encoder = make_encoder("hash", "", 64, "cpu")
    with Store(tmp_path, encoder.identity) as store:
        logged = committed_all(store, Poisoned(encoder, "text 3", kind), [outcome(number) for number in range(6)])
        documents = {document.uri: document for document in store.documents()}
    assert [uri for uri, document in documents.items() if document.state is State.FAILED] == ["added:3"]
    assert documents["added:3"].next_try is not None
    assert sum(document.state is State.INDEXED for document in documents.values()) == 5
    # The same error occurs ten times, in the batch and alone, and is logged once before the batch is split.
    assert [entry["event"] for entry in logged] == ["commit_failed", "batch_split", "commit_failed_for_document"]


FULL = "lance error: LanceError(IO): No space left on device (os error 28), structural.rs:258:9"


@pytest.mark.parametrize(
    "error", [RuntimeError(FULL), OSError(28, "No space left on device"), EncoderServerDown("gone")]
)
def test_commit_is_retried_until_disk_and_server_recover_and_no_document_fails(tmp_path, hurried, monkeypatch, error):
    encoder = make_encoder("hash", "", 64, "cpu")
    with Store(tmp_path, encoder.identity) as store:
        real, refusals = store.commit, [error] * (4 * MAX_SAME_ERRORS)

        def commit(batch):
            if refusals:
                raise refusals.pop()
            return real(batch)

        monkeypatch.setattr(store, "commit", commit)
        logged = committed_all(store, encoder, [outcome(number) for number in range(6)])
        assert [document.state for document in store.documents()] == [State.INDEXED] * 6
    away = isinstance(error, EncoderServerDown)
    assert [entry["event"] for entry in logged] == ["encoder_unreachable" if away else "commit_failed"]
    assert logged[0]["error"] is error


@pytest.mark.slow
def test_commit_is_retried_if_the_failure_cannot_be_written_either(tmp_path, hurried, monkeypatch):
    """After an unknown fault of the store, the daemon keeps trying and does not end."""
    encoder = make_encoder("hash", "", 64, "cpu")
    with Store(tmp_path, encoder.identity) as store:
        real, refusals = store.commit, [RuntimeError("of a kind that nobody knows")] * (6 * MAX_SAME_ERRORS)

        def commit(batch):
            if refusals:
                raise refusals.pop()
            return real(batch)

        monkeypatch.setattr(store, "commit", commit)
        committed_all(store, encoder, [outcome(number) for number in range(6)])
        states = [document.state for document in store.documents()]
    assert (states.count(State.FAILED), states.count(State.INDEXED)) == (1, 5)


def test_unencodable_extraction_fails_only_its_passage(tmp_path, hurried):
    encoder = make_encoder("hash", "", 64, "cpu")
    with Store(tmp_path, encoder.identity) as store:
        committed_all(store, encoder, [outcome(number) for number in range(3)])
        ids = [passage_id("T", f"text {number}") for number in range(3)]
        found = {id: Extraction(id, "model", triples=((f"phrase {n}", "is", "known"),)) for n, id in enumerate(ids)}
        learned = ExtractionsFound(found)
        logged = committed_all(store, Poisoned(encoder, "phrase 1"), [learned])
        for id in (ids[0], ids[2]):
            assert store.extraction_state(id) == ExtractionState("model")
        failure = store.extraction_state(ids[1])
        assert failure is not None and failure.error is not None
        assert (failure.status, failure.attempts) == (ExtractionOutcome.FAILED, 1)
        assert "phrase 1" in failure.error
        assert [document.state for document in store.documents()] == [State.INDEXED] * 3
    assert [entry.get("passage") for entry in logged if entry["event"] == "commit_failed_for_passage"] == [ids[1]]


class Announcing:
    """An encoder that calls `meanwhile` during its second call."""

    def __init__(self, encoder, meanwhile):
        self.identity = encoder.identity
        self.encoder, self.meanwhile, self.calls, self.texts = encoder, meanwhile, 0, []

    def encode(self, texts):
        self.calls += 1
        self.texts += texts
        if self.calls == 2:
            self.meanwhile()
        return self.encoder.encode(texts)

    encode_low_precision = encode


def test_fresh_change_interrupts_a_long_bulk_batch(tmp_path, monkeypatch):
    monkeypatch.setattr(batch_encoding, "ENCODE_SLICE_CHARS", (1_000, 1_000))

    async def scenario():
        loop = asyncio.get_running_loop()
        committed = []
        committer: Committer
        encoder = Announcing(
            make_encoder("hash", "", 64, "cpu"),
            lambda: loop.call_soon_threadsafe(committer.queue.put_now, outcome(1)),
        )
        with Store(tmp_path, encoder.identity) as store:
            committer = make_committer(
                store, encoder, lambda found: committed.append([each.work.key for each in found])
            )
            texts = [
                PassageText(passage_id("T", text), "T", text) for text in (f"sentence {n} " * 20 for n in range(50))
            ]
            work = Work("added:2", AddedDocument("added:2", "{}"), "added", urgency=Urgency.BULK)
            refs = tuple(PassageRef(text.id) for text in texts)
            long = DocumentChange(work, [Document(work.key, "added", passages=refs)], {text.id: text for text in texts})
            committer.queue.put_now(long)
            running = asyncio.create_task(committer.run())
            async with asyncio.timeout(60):
                while len(committed) < 2:
                    assert not running.done(), running.exception()
                    await asyncio.sleep(0.01)
            running.cancel()
            assert {document.uri: len(document.passages) for document in store.documents()} == {
                "added:1": 1,
                long.work.key: 50,
            }
        assert encoder.calls > 3
        assert len(encoder.texts) == len(set(encoder.texts)), "nothing is encoded twice"
        return committed, long.work.key

    committed, key = asyncio.run(scenario())
    assert committed == [["added:1"], [key]]


def test_split_fresh_batch_keeps_the_order_of_an_interrupted_documents_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(batch_encoding, "ENCODE_SLICE_CHARS", (1_000, 1_000))

    def long_change(work, first, count):
        texts = [f"{work.key} {n} " * 20 for n in range(first, first + count)]
        passages = {(id := passage_id("T", text)): PassageText(id, "T", text) for text in texts}
        document = Document(f"{work.key}#{first}", "added", passages=tuple(map(PassageRef, passages)))
        return DocumentChange(work, [document], passages, final=first > 0)

    async def scenario():
        loop = asyncio.get_running_loop()
        committed: list[str] = []
        outer, fresh = (Work(key, AddedDocument(key, "{}"), "added") for key in ("added:outer", "added:fresh"))
        outer.urgency = Urgency.BULK

        def arrive():
            outer.urgency = Urgency.FRESH  # fresh work for the same document waits
            for change in (outcome(7, broken=True), long_change(fresh, 1, 12), long_change(outer, 40, 2)):
                loop.call_soon_threadsafe(committer.queue.put_now, change)

        encoder = Announcing(make_encoder("hash", "", 64, "cpu"), arrive)
        with Store(tmp_path, encoder.identity) as store:
            committer = make_committer(
                store, encoder, lambda found: committed.extend(uri for each in found for uri in uris(each))
            )
            committer.queue.put_now(long_change(outer, 0, 40))
            running = asyncio.create_task(committer.run())
            async with asyncio.timeout(60):
                while len(committed) < 4:
                    assert not running.done(), running.exception()
                    await asyncio.sleep(0.01)
            running.cancel()
        return committed

    def uris(change):
        return [document.uri for document in change.documents]

    assert asyncio.run(scenario()) == ["added:7", "added:fresh#1", "added:outer#0", "added:outer#40"]


def test_first_slice_of_each_batch_is_short(tmp_path):
    """Other work on the processors may have changed since."""
    slices: dict[str, list[int]] = {"first": [], "second": []}

    class Watched(Poisoned):
        def encode(self, texts):
            slices["second" if "second" in texts[0] else "first"].append(sum(map(len, texts)))
            return self.encoder.encode(texts)

    def long_change(name):
        texts = [f"{name} {n} " + "word " * 100 for n in range(committing.BATCH_MAX_PASSAGES)]
        passages = {(id := passage_id("", text)): PassageText(id, "", text) for text in texts}
        work = Work(f"added:{name}", AddedDocument(f"added:{name}", "{}"), "added", urgency=Urgency.BULK)
        document = Document(work.key, "added", passages=tuple(map(PassageRef, passages)))
        return DocumentChange(work, [document], passages)

    encoder = make_encoder("hash", "", 64, "cpu")
    with Store(tmp_path, encoder.identity) as store:
        committed_all(store, Watched(encoder, "nothing"), [long_change("first"), long_change("second")])
    assert max(slices["first"]) > 3 * slices["first"][0], "slices grow where they are quick"
    assert slices["second"][0] == pytest.approx(slices["first"][0], abs=600)


@pytest.mark.slow
@pytest.mark.parametrize(("querying", "commits"), [(True, [1, 2]), (False, [1, 1, 1])])
def test_changes_during_a_pause_for_queries_are_committed_together(tmp_path, monkeypatch, querying, commits):
    monkeypatch.setattr(committing, "COMMIT_PAUSE_S", 3.0)

    async def scenario():
        encoder, finished = make_encoder("hash", "", 64, "cpu"), []
        with Store(tmp_path, encoder.identity) as store:
            committer = make_committer(
                store,
                encoder,
                lambda outcomes: finished.append([each.work.key for each in outcomes]),
                queries_run=lambda: querying,
            )
            running = asyncio.create_task(committer.run())
            async with asyncio.timeout(60):
                for number in range(3):
                    committer.queue.put_now(outcome(number))
                    until = time.monotonic() + 0.5  # time enough to be committed alone, unless the committer rests
                    resting = querying and number > 0
                    while sum(map(len, finished)) <= number and not (resting and time.monotonic() > until):
                        await asyncio.sleep(0.01)
                while sum(map(len, finished)) < 3:
                    assert not running.done(), running.exception()
                    await asyncio.sleep(0.01)
            running.cancel()
            return finished

    assert [len(each) for each in asyncio.run(scenario())] == commits


def test_batch_waiting_for_an_unreachable_encoder_uses_its_replacement(tmp_path, hurried):
    """As when the server of the store's encoder is gone: the batch began with vectors of the old encoder."""

    async def scenario():
        old, new = (make_encoder("hash", dim, 64, "cpu") for dim in ("32", "64"))
        away = Poisoned(old, "text 1", EncoderServerDown)
        committed: list[str] = []
        with Store(tmp_path, old.identity) as store:
            committer = make_committer(store, away, lambda found: committed.extend(each.work.key for each in found))
            for number in range(3):
                committer.queue.put_now(outcome(number))
            running = asyncio.create_task(committer.run())
            async with asyncio.timeout(60):
                while committer.trouble is None:
                    await asyncio.sleep(0.001)
                async with committer.paused():
                    before = store.snapshot().commit
                    vectors = NewVectors(tmp_path, Target(new.identity.name, 64))
                    switched = NewEncoder(vectors, Calibration(0.8, None), store.rule)
                    store.switch_encoder(switched, lambda _: committer.use(new))
                    vectors.close()
                while len(committed) < 3:
                    assert not running.done(), running.exception()
                    await asyncio.sleep(0.001)
            running.cancel()
            assert before < store.snapshot().commit and store.snapshot().dim == 64
            wanted = new.encode(["T\ntext 1"])[0]
            assert store.snapshot().passage_vectors.scores(wanted).max() > 0.999

    asyncio.run(scenario())
