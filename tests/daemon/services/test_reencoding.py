"""Encoding the content anew: refusals, errors of the encoder, and what an earlier run has left."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from daemon.errors import Conflict, UpstreamFailed
from daemon.fleet.record_maker import PositionedDocument, RecordMaker
from daemon.pipeline.backpressure import Burst
from daemon.pipeline.pipeline import Pipeline
from daemon.pipeline.record_import import record_delivery
from daemon.services import reencoding as module
from daemon.services.progress import ProgressBoard
from daemon.services.reencoding import ConfiguredEncoder, Reencoding
from memory.batch_encoding import with_vectors
from memory.encoder.errors import EncoderRefused, EncoderServerDown, EncoderUnavailable
from memory.encoder.hashing import HashEncoder
from memory.types import Encoder, Matrix
from store.export.json_lines import export_lines
from store.reencode.new_vectors import NewVectors, Target, discard, target_of
from store.store import Store
from store.types import Batch, Calibration, Document, Extraction, PassageRef, PassageText, SynonymRule, passage_id
from store.verify.verify import verify
from tests.daemon.pipeline import test_records as records

OLD, NEW = HashEncoder(32), HashEncoder(48)
TEXTS = [f"Ada Quill measured the gauge {number} in Aldersund" for number in range(30)]


class Queue:
    burst = Burst()

    def __len__(self) -> int:
        return 0


class FakeCommitter:
    def __init__(self) -> None:
        self.encoder: Encoder = OLD

    @asynccontextmanager
    async def paused(self) -> AsyncIterator[None]:
        yield


class Flawed(HashEncoder):
    """Fails with each of `errors` once, and refuses texts with the word "7"."""

    def __init__(self, errors: Sequence[Exception] = ()) -> None:
        super().__init__(48)
        self.errors = list(errors)

    def encode(self, texts: Sequence[str]) -> Matrix:
        if self.errors:
            raise self.errors.pop()
        if any("gauge 7 " in text for text in texts):
            raise EncoderRefused("too long")
        return super().encode(texts)

    encode_low_precision = encode


def fill(store: Store, encoder: Encoder, texts: Sequence[str] = TEXTS) -> None:
    passages = [PassageText(passage_id("T", text), "T", text) for text in texts]
    documents = tuple(Document(each.id, "s", passages=(PassageRef(each.id),)) for each in passages)
    triples = {each.id: ((each.text[:9].lower(), "measured", each.text[19:].lower()),) for each in passages}
    found = tuple(Extraction(each.id, "rules", triples=triples[each.id]) for each in passages)
    store.commit(with_vectors(store, encoder, Batch(documents, passages=tuple(passages), extractions=found)))


def reencoding(store: Store, load: Callable[[], Encoder], encoder: str = NEW.identity.name) -> Reencoding:
    committer = FakeCommitter()

    def switched(encoder: Encoder, _calibration: Calibration, _since: int) -> None:
        committer.encoder = encoder

    wanted = ConfiguredEncoder(
        encoder, "new", "old", lambda: (load(), Calibration(0.7, None), SynonymRule(0.7)), "prefix", 64
    )
    board = ProgressBoard(Queue(), Queue())
    return Reencoding(store, cast("Any", committer), board, wanted, switched, lambda: False)


async def finished(work: Reencoding) -> None:
    async with asyncio.timeout(60):
        while work.unapplied:
            await asyncio.sleep(0.005)
    await work.stop()


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PAUSE_S", 0.001)


def test_reencode_reports_remaining_work_and_replaces_all_vectors(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        work = reencoding(store, lambda: HashEncoder(48))
        [difference] = work.unapplied
        assert (difference.content, difference.configured, difference.command) == ("old", "new", "hippoctl reencode")
        begun = await work.reencode()
        assert begun.configured == "new" and begun.disk_bytes > 0
        await finished(work)
        assert [(each.passages, each.left_s) for each in work.shares()] == [(30, None)]
        again = await work.reencode()
        assert (again.running, again.texts, again.disk_bytes, again.configured) == (False, 0, 0, None)
        assert not verify(store).problems and store.snapshot().dim == 48

    with (
        Store(tmp_path / "store", OLD.identity) as store,
        Store(tmp_path / "new", NEW.identity, SynonymRule(0.7)) as new,
    ):
        fill(store, OLD)
        fill(new, NEW)
        run(scenario(store))
        assert list(export_lines(store.snapshot())) == list(export_lines(new.snapshot()))


def test_too_little_disk_space_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(store: Store) -> None:
        work = reencoding(store, lambda: HashEncoder(48))
        monkeypatch.setattr(module, "free_bytes", lambda _: 1_000)
        with pytest.raises(Conflict, match=r"bytes on the disk.*make room"):
            await work.reencode()
        assert target_of(store.folder) is None
        await work.stop()

    with Store(tmp_path, OLD.identity) as store:
        fill(store, OLD)
        run(scenario(store))


def test_an_encoder_that_cannot_be_loaded_is_refused(tmp_path: Path) -> None:
    def load() -> Encoder:
        raise EncoderUnavailable("not installed")

    async def scenario(store: Store) -> None:
        work = reencoding(store, load)
        with pytest.raises(UpstreamFailed, match="not installed"):
            await work.reencode()
        await work.stop()

    with Store(tmp_path, OLD.identity) as store:
        run(scenario(store))


def test_errors_are_tried_again_and_a_refused_text_has_no_vector(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        work = reencoding(store, lambda: Flawed([EncoderServerDown("away"), OSError(28, "full"), RuntimeError("bug")]))
        await work.reencode()
        await finished(work)
        known = store.snapshot().passage_vectors.known
        assert (int(known.sum()), len(known)) == (29, 30)
        assert not verify(store).problems

    with Store(tmp_path, OLD.identity) as store:
        fill(store, OLD)
        run(scenario(store))


def test_earlier_run_is_resumed_for_the_same_encoder_and_deleted_for_another(tmp_path: Path) -> None:
    async def scenario(store: Store) -> None:
        work = reencoding(store, lambda: HashEncoder(48), encoder="another")
        NewVectors(store.folder, Target(NEW.identity.name, 48)).close()
        work.resume()
        assert target_of(store.folder) is None and work.unapplied
        await work.stop()
        work = reencoding(store, lambda: HashEncoder(48))
        work.resume()  # nothing has begun: only the command begins
        assert not (await asyncio.to_thread(lambda: work.shares()[1:]))
        NewVectors(store.folder, Target(NEW.identity.name, 48)).close()
        work.resume()
        await finished(work)
        assert store.snapshot().dim == 48 and target_of(store.folder) is None

    with Store(tmp_path, OLD.identity) as store:
        fill(store, OLD)
        run(scenario(store))


def test_stop_after_the_switch_waits_for_deletion_of_the_vectors_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, deleted = asyncio.Event(), []

    async def scenario(store: Store) -> None:
        loop = asyncio.get_running_loop()

        def slow(folder: Path) -> None:
            loop.call_soon_threadsafe(began.set)
            time.sleep(0.2)
            discard(folder)
            deleted.append(folder)

        monkeypatch.setattr(module, "discard", slow)
        work = reencoding(store, lambda: HashEncoder(48))
        await work.reencode()
        async with asyncio.timeout(60):
            await began.wait()
        await work.stop()
        assert deleted == [store.folder] and target_of(store.folder) is None

    with Store(tmp_path, OLD.identity) as store:
        fill(store, OLD)
        run(scenario(store))


def test_replica_reencoded_during_catch_up_equals_one_with_the_new_encoder(tmp_path: Path) -> None:
    """Its topic has records with vectors of the old encoder, of the new one, and of none that it uses."""
    documents = [records.article(number) for number in range(9)]
    other = HashEncoder(40)

    async def deliver(pipeline: Pipeline, numbers: range, encoder: Encoder) -> None:
        maker = RecordMaker(records.Rules(), encoder)
        positioned = [PositionedDocument(documents[number], records.at(number)) for number in numbers]
        for record in await maker.make(positioned):
            await pipeline.deliver(record_delivery(record), "records")
        await pipeline.drained()

    async def across(pipeline: Pipeline) -> None:
        await deliver(pipeline, range(3), records.ENCODER)
        store, committer = pipeline._store, pipeline.committer

        def load() -> tuple[Encoder, Calibration, SynonymRule]:
            return NEW, Calibration(0.8, None), store.rule

        work = Reencoding(
            store,
            committer,
            ProgressBoard(Queue(), Queue()),
            ConfiguredEncoder(NEW.identity.name, "new", "old", load, "prefix", 64),
            lambda encoder, _calibration, _since: committer.use(encoder),
            lambda: False,
        )
        await work.reencode()
        await finished(work)
        await deliver(pipeline, range(3, 5), records.ENCODER)
        await deliver(pipeline, range(5, 7), NEW)
        await deliver(pipeline, range(7, 9), other)

    async def of_the_new(pipeline: Pipeline) -> None:
        await deliver(pipeline, range(9), NEW)

    async def both() -> None:
        old = await records.running(tmp_path / "old", across, records.Rules(), records.ENCODER)
        new = await records.running(tmp_path / "new", of_the_new, records.Rules(), NEW, NEW.identity)
        assert old[0] == new[0] and any('"synonym"' in line for line in new[0])

    run(both())
