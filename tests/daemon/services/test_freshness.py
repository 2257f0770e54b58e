"""A query that asks for a position waits until the memory has it, or is told how far the memory is."""

import asyncio
from dataclasses import replace

import pytest

from daemon.contract.query import QueryRequest
from daemon.contract.scope import ClientScope
from daemon.errors import Invalid, TimedOut
from daemon.fleet.record_maker import PositionedDocument
from daemon.pipeline.record_import import record_delivery
from daemon.pipeline.work_items import DeliveredDocument
from daemon.services.freshness import Freshness
from tests.daemon.pipeline.test_records import ENCODER, Rules, article, at, made, parsed, removal, running


class Position:
    """An acknowledgement that stores one position."""

    def __init__(self, key, offset):
        self._stored = {f"kafka:{key}": {"offset": offset}}

    @property
    def tracker(self):
        return self

    def positions(self, parts):
        return self._stored

    def done(self):
        pass


def asking(after, timeout_s=0.0, **more):
    return QueryRequest(query="who", after=after, after_timeout_s=timeout_s, **more)


def errors_of(refused):
    return {each.field: each.message for each in refused.value.errors}


def test_a_position_that_comes_is_waited_for_and_one_that_does_not_is_told_of(tmp_path):
    async def scenario(pipeline):
        fresh = Freshness(pipeline._store, pipeline)
        [record, gone] = await made([PositionedDocument(article(1), at(7)), PositionedDocument(removal(2), at(8))])
        with pytest.raises(TimedOut) as refused:
            await fresh.wait(asking({"records/0": 41, record.uri: 7}))
        assert all("has nothing of it" in message for message in errors_of(refused).values())

        waiting = asyncio.create_task(fresh.wait(asking({"records/0": 41, record.uri: 7, gone.uri: 8}, 30.0)))
        await asyncio.sleep(0)
        await pipeline.deliver(record_delivery(record), "records", acknowledgement=Position("records/0", 41))
        await pipeline.drained()
        assert not waiting.done(), "41 is the next message, not the last"
        await pipeline.deliver(record_delivery(gone), "records", acknowledgement=Position("records/0", 42))
        await asyncio.wait_for(waiting, 30)

        with pytest.raises(TimedOut) as refused:
            await fresh.wait(asking({"records/0": 42, record.uri: 9}))
        assert errors_of(refused) == {
            "after.records/0": "asked for 42; the memory is at 41",
            f"after.{record.uri}": "asked for 9; the memory is at 7",
        }
        client = ClientScope(visible=("a",), client="ada")
        with pytest.raises(Invalid):
            await fresh.wait(asking({record.uri: 7}).model_copy(update={"scope": client}))

    asyncio.run(running(tmp_path / "a", scenario))


def test_a_document_of_a_followed_topic_is_known_by_its_message(tmp_path):
    async def scenario(pipeline):
        stated = parsed("kafka://articles/1", "T", "Text.", [])
        document = replace(stated, metadata={"kafka": {"topic": "articles", "offset": 5}})
        await pipeline.deliver(DeliveredDocument(document.uri, document), "articles")
        await Freshness(pipeline._store, pipeline).wait(asking({document.uri: 5}, 30.0))

    asyncio.run(running(tmp_path / "a", scenario, Rules(), ENCODER))


def test_what_was_added_is_waited_for(tmp_path):
    async def scenario(pipeline):
        fresh = Freshness(pipeline._store, pipeline)
        for ticket in (1, 2, 3, 4):
            pipeline.inbox._expect(ticket, (0, 0))
        for ticket in (1, 2, 4):
            del pipeline.inbox._weights[ticket]
        await fresh.wait(asking({"added": 2}))
        with pytest.raises(TimedOut) as refused:
            await fresh.wait(asking({"added": 4}))
        assert errors_of(refused) == {"after.added": "asked for 4; the memory is at 2"}
        del pipeline.inbox._weights[3]
        await fresh.wait(asking({"added": 4}))

    asyncio.run(running(tmp_path / "a", scenario))
