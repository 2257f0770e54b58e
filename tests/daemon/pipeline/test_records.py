"""Records give the memory of their documents, in any order, without extracting or encoding anything again."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from consumers.json_documents import read_json_document
from consumers.records.reader import from_message
from consumers.records.record import PassageExtraction, Record, RecordError, SourcePosition
from consumers.records.writer import to_message, write_file
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument
from daemon.fleet.record_maker import PositionedDocument, RecordMaker
from daemon.pipeline import records as records_module
from daemon.pipeline.document_changes import delivered_change, to_store_document
from daemon.pipeline.document_reader import DocumentReader
from daemon.pipeline.pipeline import Pipeline
from daemon.pipeline.record_import import import_records, record_delivery
from daemon.pipeline.records import stored_position
from daemon.pipeline.work_items import DeliveredDocument, DocumentChange, Work
from memory.encoder import make_encoder
from memory.openie.rules.extractor import RulesExtractor
from memory.types import Encoder, Matrix
from store.export.json_lines import export_lines
from store.store import Store
from store.types import Extraction, ExtractionOutcome, PassageText
from tests.daemon.pipeline.any_owner import AnyOwner

ENCODER = make_encoder("hash", "64", 64, "cpu")
RULES = RulesExtractor()
STREAM = "kafka:articles/0"


class Rules:
    """The rules, in this process."""

    name = RulesExtractor.name

    def __init__(self) -> None:
        self.calls = 0

    async def extract(self, passages: Sequence[PassageText]) -> list[Extraction]:
        self.calls += len(passages)
        return RULES.extract(passages)


class Refusing(Encoder):
    """An extractor and an encoder that must not be called."""

    name = "refusing"
    identity = ENCODER.identity

    async def extract(self, passages: Sequence[PassageText]) -> list[Extraction]:
        raise AssertionError(f"nothing is to be extracted: {passages}")

    def encode(self, texts: Sequence[str]) -> Matrix:
        raise AssertionError(f"nothing is to be encoded: {texts}")

    def encode_query(self, text: str) -> NDArray[np.float32]:
        raise AssertionError(f"nothing is to be encoded: {text}")


class Reader(DocumentReader):
    """A parser for tasks of the intake that supports delivered documents only."""

    def __init__(self) -> None:
        """Has no parsing processes."""

    async def read(
        self, work: Work, is_superseded: Callable[[], bool] = lambda: False
    ) -> AsyncIterator[DocumentChange]:
        assert isinstance(work.task, DeliveredDocument)
        yield delivered_change(work, work.task)


async def running(folder, use, extractor=None, encoder=None, identity=ENCODER.identity):
    with Store(folder, identity) as store:
        extractor = extractor or Refusing()
        pipeline = Pipeline(
            store, encoder or Refusing(), extractor, Reader(), lambda *_, **__: None, 1, owners=AnyOwner()
        )
        pipeline.start()
        await use(pipeline)
        await pipeline.drained()
        await pipeline.stop(5)
        return list(export_lines(store.snapshot())), store.documents(), dict(store.positions)


def parsed(
    uri: str, title: str, text: str, triples: Sequence[Sequence[str]] | None = None, **more: Any
) -> ParsedDocument:
    value = {"id": "x", "title": title, "text": text, **more} | ({} if triples is None else {"triples": triples})
    return replace(read_json_document(value, "", None, SplitSettings(60, 10)), uri=uri)


NAMES = ("Ada Lovelace", "Lovelace Ada", "Charles Babbage", "Mary Somerville", "Sophia Frend")
PLACES = ("London", "Turin", "Paris")


def article(number, version=0):
    rng = random.Random(f"{number} {version}")
    who, whom, where = rng.choice(NAMES), rng.choice(NAMES), rng.choice(PLACES)
    text = f"{who} met {whom} in {where}. {whom} was born in {rng.choice(PLACES)}."
    long = "\n\n".join(f"{rng.choice(NAMES)} wrote letter {n} to {rng.choice(NAMES)} from {where}." for n in range(20))
    stated = [[who, "admired", whom]] if number % 5 == 4 else None
    same = "Ada Lovelace wrote the first program.\n\n" if number % 3 == 0 else ""
    return parsed(f"kafka://articles/{number}", f"Article {number % 4}", same + text + long, stated, labels=["a"])


def removal(number):
    return ParsedDocument(f"kafka://articles/{number}", deleted=True)


async def made(documents):
    maker = RecordMaker(Rules(), ENCODER)
    return [from_message(to_message(record)) for record in await maker.make(documents)]


def at(offset, stream=STREAM):
    return SourcePosition(stream, offset, offset)


def test_importing_records_gives_the_export_of_their_documents_without_encoding(tmp_path):
    documents = [article(number) for number in range(12)]
    documents.append(parsed("kafka://articles/none", "Stated by none", "The sea.", []))

    async def by_documents(pipeline):
        for document in documents:
            await pipeline.deliver(DeliveredDocument(document.uri, document), "kafka")

    async def by_records(pipeline):
        found = await made([PositionedDocument(d, at(n)) for n, d in enumerate(documents)])
        for record in random.Random(1).sample(found, len(found)):
            await pipeline.deliver(record_delivery(record), "records")

    async def both():
        return await running(tmp_path / "a", by_documents, Rules(), ENCODER), await running(tmp_path / "b", by_records)

    (lines, stored, _), (recorded_lines, recorded, _) = asyncio.run(both())
    assert any('"synonym"' in line for line in lines), "vectors decide something here"
    assert any('"mention"' in line for line in lines), "mention edges have no vectors"
    assert recorded_lines == lines
    for mine, theirs in zip(recorded, stored, strict=True):
        assert mine.metadata.pop("record") and (mine.uri, mine.title, mine.metadata) == (
            theirs.uri,
            theirs.title,
            theirs.metadata,
        )


def test_record_of_another_encoder_is_encoded_again(tmp_path):
    async def scenario(pipeline):
        [record] = await RecordMaker(Rules(), make_encoder("hash", "32", 64, "cpu")).make(
            [PositionedDocument(article(1), at(1))]
        )
        await pipeline.deliver(record_delivery(record), "records")

    lines, _, _ = asyncio.run(running(tmp_path / "a", scenario, encoder=ENCODER))
    assert lines


def test_passage_without_extraction_in_a_record_is_extracted(tmp_path):
    rules = Rules()

    async def scenario(pipeline):
        document = article(1)
        bare = Record(document, (None,) * len(document.passages), at(1))
        await pipeline.deliver(record_delivery(bare), "records")

    lines, _, _ = asyncio.run(running(tmp_path / "a", scenario, rules, ENCODER))
    assert rules.calls and any('"triple"' in line for line in lines)


class Failing:
    name = "llm/x"

    async def extract(self, passages):
        return [
            Extraction(p.id, "llm/x", status=ExtractionOutcome.FAILED, attempts=1, error="too long") for p in passages
        ]


def test_passage_whose_extraction_failed_in_the_worker_is_extracted_again(tmp_path):
    rules = Rules()

    async def scenario(pipeline):
        [record] = await RecordMaker(Failing(), ENCODER).make([PositionedDocument(article(1), at(1))])
        await pipeline.deliver(record_delivery(from_message(to_message(record))), "records")
        await pipeline.drained()
        states = set(pipeline._store.extraction_states().values())
        assert {(state.status, state.extractor, state.error) for state in states} == {("done", Rules.name, None)}
        assert pipeline._store.extraction_costs().keys() == {Rules.name}

    lines, _, _ = asyncio.run(running(tmp_path / "a", scenario, rules, ENCODER))
    assert rules.calls and any('"triple"' in line for line in lines)


def test_extraction_of_a_record_belongs_to_its_document_and_costs_count_once(tmp_path):
    """For any number of deliveries; an edit adds its cost. Other documents with the text do not get the record's triples."""

    def record(document, offset):
        found = PassageExtraction("llm/x", ("ada",), (("Ada", "met", "Mary"),), 10, 2)
        return Record(document, tuple(found for _ in document.passages), at(offset))

    async def scenario(pipeline):
        first, store = article(1), pipeline._store
        count = len(first.passages)
        for _ in range(2):
            await pipeline.deliver(record_delivery(record(first, 1)), "records")
            await pipeline.drained()
            assert store.extraction_costs() == {"llm/x": (count, 10 * count, 2 * count)}
        assert store.extraction_states() == {}
        [document] = store.documents()
        assert {(ref.triples, ref.extractor) for ref in document.passages} == {((("ada", "met", "mary"),), "llm/x")}
        second = article(1, 1)
        await pipeline.deliver(record_delivery(record(second, 2)), "records")
        await pipeline.drained()
        costs = count + len(second.passages)
        assert store.extraction_costs() == {"llm/x": (costs, 10 * costs, 2 * costs)}
        store.purge(timedelta(0))
        assert store.extraction_costs() == {"llm/x": (costs, 10 * costs, 2 * costs)}
        # The record's text as a separate document: the extractor processes it.
        own = replace(second, uri="added:own")
        await pipeline.deliver(DeliveredDocument(own.uri, own), "added")
        await pipeline.drained()
        assert store.extraction_states().keys() == {ref.passage for ref in store.document("added:own").passages}

    rules = Rules()
    asyncio.run(running(tmp_path / "a", scenario, rules, ENCODER))
    assert rules.calls


history = st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["write", "write", "remove"])), min_size=1, max_size=7)


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(history, st.randoms(use_true_random=False), st.booleans())
def test_an_older_record_never_replaces_a_newer_one_whatever_order_they_come_in(
    tmp_path_factory, events, rng, together
):
    """Each event has its offset; each document's last event must remain."""
    home = tmp_path_factory.mktemp("orders")

    async def scenario():
        positioned = [
            PositionedDocument(article(number, offset) if kind == "write" else removal(number), at(offset))
            for offset, (number, kind) in enumerate(events)
        ]
        records = [from_message(to_message(each)) for each in await RecordMaker(Rules(), ENCODER).make(positioned)]
        last = {record.uri: record for record in records}

        async def shuffled(pipeline):
            # Some arrive twice, as from a worker that was presumed dead and continues.
            for record in rng.sample(records + records[:2], len(records) + len(records[:2])):
                await pipeline.deliver(record_delivery(record), "records")
                if not together:
                    await pipeline.drained()

        async def at_once(pipeline):
            for record in last.values():
                await pipeline.deliver(record_delivery(record), "records")

        (lines, stored, _), (expected, _, _) = (
            await running(home / "shuffled", shuffled),
            await running(home / "once", at_once),
        )
        assert lines == expected
        assert {d.uri for d in stored} == {uri for uri, record in last.items() if not record.document.deleted}

    asyncio.run(scenario())


def test_a_newer_record_that_is_under_way_is_not_replaced_by_an_older_one(tmp_path):
    async def scenario(pipeline):
        newer, older = await made([PositionedDocument(article(1), at(2)), PositionedDocument(article(1, 1), at(1))])
        await asyncio.gather(
            pipeline.deliver(record_delivery(newer), "records"), pipeline.deliver(record_delivery(older), "records")
        )
        await pipeline.drained()
        assert stored_position(pipeline._store, newer.uri) == at(2)

    asyncio.run(running(tmp_path / "a", scenario))


def test_removal_blocks_older_records_until_the_removal_limit_is_exceeded(tmp_path, monkeypatch):
    monkeypatch.setattr(records_module, "REMEMBERED_REMOVALS", 2)
    monkeypatch.setattr(records_module.RemovedRecords.__init__, "__defaults__", (2,))

    async def scenario(pipeline):
        for number in range(3):
            await pipeline.deliver(record_delivery(Record(removal(number), (), at(10))), "records")
            await pipeline.drained()
        for number in range(3):
            [late] = await made([PositionedDocument(article(number), at(5))])
            await pipeline.deliver(record_delivery(late), "records")

    _, stored, positions = asyncio.run(running(tmp_path / "a", scenario))
    assert [document.uri for document in stored] == ["kafka://articles/0"]
    assert sorted(positions) == ["removed:kafka://articles/1", "removed:kafka://articles/2"]


def test_record_file_import_counts_records_and_unreadable_rows(tmp_path):
    async def scenario(pipeline):
        records = await made([PositionedDocument(article(n), at(n)) for n in range(5)])
        broken = Record(replace(records[0].document, uri=""), records[0].extractions)
        write_file(tmp_path / "a.parquet", [*records, broken])
        counts = await import_records(pipeline, tmp_path / "a.parquet")
        assert (counts.records, counts.unreadable) == (5, 1)
        assert counts.passages == sum(len(record.document.passages) for record in records)
        assert len(pipeline._store.documents()) == 5, "it returns once all are committed"

    asyncio.run(running(tmp_path / "a", scenario))


def test_record_position_in_author_metadata_is_ignored(tmp_path):
    with pytest.raises(RecordError):
        SourcePosition.from_json({"stream": 1})
    document, _ = to_store_document(parsed("u", "T", "Text.", [], record={"stream": "x"}), "added")
    assert document.metadata == {"id": "x", "record_": {"stream": "x"}}
