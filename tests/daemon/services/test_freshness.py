"""A query with a position waits until the memory has reached it, or learns how far the memory is."""

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.contract.query import QueryRequest
from daemon.contract.scope import ClientScope
from daemon.contract.status import SourceStatus
from daemon.errors import Invalid, TimedOut
from daemon.fleet.record_maker import PositionedDocument
from daemon.pipeline.record_import import record_delivery
from daemon.pipeline.work_items import DeliveredDocument
from daemon.services.freshness import ClientPositions, Freshness
from daemon.services.scopes import ScopeService
from daemon.sources.base import Source, SourceLabels
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


class Topics(Source):
    """A source that follows topics and delivers nothing."""

    kind = "kafka"

    def __init__(self, name: str, topics: Sequence[str]) -> None:
        self.name, self.topics = name, topics

    def start(self) -> None: ...

    def status(self, pending: int) -> SourceStatus:
        return SourceStatus(kind=self.kind, name=self.name, state="following", lag=pending)

    async def delivered(self) -> None: ...


def asking(after, timeout_s=0.0, **more):
    return QueryRequest(query="who", after=after, after_timeout_s=timeout_s, **more)


def freshness(pipeline, labels=(), topics=()):
    """`labels`: by source name, its labels. `topics`: by source, its topics."""
    store = pipeline._store
    scopes = ScopeService(store, lambda: labels)
    sources = [Topics(name, followed) for name, followed in topics]
    return Freshness(store, pipeline, scopes, ClientPositions(store.folder), sources)


def asking_as(client, after):
    return asking(after).model_copy(update={"scope": ClientScope(visible=(client,), client=client)})


def errors_of(refused):
    return {each.field: each.message for each in refused.value.errors}


def test_query_waits_for_its_positions_and_times_out_with_the_current_ones(tmp_path):
    async def scenario(pipeline):
        fresh = freshness(pipeline)
        [record, gone] = await made([PositionedDocument(article(1), at(7)), PositionedDocument(removal(2), at(8))])
        with pytest.raises(TimedOut) as refused:
            await fresh.wait(asking({"records/0": 41, record.uri: 7}))
        assert all("does not contain it" in message for message in errors_of(refused).values())

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
            "after.records/0": "position 42 is not reached; the memory is at 41",
            f"after.{record.uri}": "position 9 is not reached; the memory is at 7",
        }
        client = ClientScope(visible=("a",), client="ada")
        with pytest.raises(Invalid):
            await fresh.wait(asking({record.uri: 7}).model_copy(update={"scope": client}))

    asyncio.run(running(tmp_path / "a", scenario))


def test_position_of_a_topic_document_is_its_message_offset(tmp_path):
    async def scenario(pipeline):
        stated = parsed("kafka://articles/1", "T", "Text.", [])
        document = replace(stated, metadata={"kafka": {"topic": "articles", "offset": 5}})
        await pipeline.deliver(DeliveredDocument(document.uri, document), "articles")
        await freshness(pipeline).wait(asking({document.uri: 5}, 30.0))

    asyncio.run(running(tmp_path / "a", scenario, Rules(), ENCODER))


def test_query_waits_for_all_documents_added_up_to_its_position(tmp_path):
    async def scenario(pipeline):
        fresh = freshness(pipeline)
        for ticket in (1, 2, 3, 4):
            pipeline.inbox._expect(ticket, (0, 0))
        for ticket in (1, 2, 4):
            del pipeline.inbox._weights[ticket]
        await fresh.wait(asking({"added": 2}))
        with pytest.raises(TimedOut) as refused:
            await fresh.wait(asking({"added": 4}))
        assert errors_of(refused) == {"after.added": "position 4 is not reached; the memory is at 2"}
        del pipeline.inbox._weights[3]
        await fresh.wait(asking({"added": 4}))

    asyncio.run(running(tmp_path / "a", scenario))


NOTHING = "does not contain it"


def test_position_of_a_stream_not_fully_visible_to_the_client_is_unknown(tmp_path):
    async def scenario(pipeline):
        labels = (
            ("deals", SourceLabels(("board",))),
            ("news", SourceLabels(("public",))),
            ("unlabelled", SourceLabels()),
        )
        topics = [("deals", ("deals",)), ("news", ("news",)), ("unlabelled", ("mixed",))]
        fresh = freshness(pipeline, labels, topics)
        for topic in ("deals", "news", "mixed", "left"):
            delivery = DeliveredDocument(f"kafka://{topic}/1", parsed(f"kafka://{topic}/1", "T", f"Text {topic}.", []))
            await pipeline.deliver(delivery, topic, acknowledgement=Position(f"{topic}/0", 42))
        await pipeline.drained()
        await fresh.wait(asking({f"{topic}/0": 41 for topic in ("deals", "news", "mixed", "left")}))
        await fresh.wait(asking_as("public", {"news/0": 41}))
        await fresh.wait(asking_as("board", {"deals/0": 41}))
        for wanted in (-5, 0, 41, 99):
            hidden = {f"{topic}/0": wanted for topic in ("deals", "mixed", "left", "nowhere")}
            with pytest.raises(TimedOut) as refused:
                await fresh.wait(asking_as("public", hidden))
            assert errors_of(refused) == {
                f"after.{key}": f"position {wanted} is not reached; the memory {NOTHING}" for key in hidden
            }
        narrowed = asking_as("public", {"news/0": 41})
        scope = narrowed.scope.model_copy(update={"source": "elsewhere"})
        await fresh.wait(narrowed.model_copy(update={"scope": scope}))

    asyncio.run(running(tmp_path / "a", scenario, Rules(), ENCODER))


def test_client_can_use_only_added_positions_issued_to_it(tmp_path):
    async def scenario(pipeline):
        fresh, positions = freshness(pipeline), ClientPositions(pipeline._store.folder)
        for ticket in (1, 2, 3):
            pipeline.inbox._expect(ticket, (0, 0))
        for ticket in (1, 2):
            del pipeline.inbox._weights[ticket]
        mine, late = positions.position("ada", 2), positions.position("ada", 3)
        await fresh.wait(asking_as("ada", {"added": mine}))
        assert positions.ticket("bob", mine) is None
        for client, position in (("ada", late), ("bob", mine), *(("ada", number) for number in range(-1, 200))):
            with pytest.raises(TimedOut) as refused:
                await fresh.wait(asking_as(client, {"added": position}))
            assert errors_of(refused) == {"after.added": f"position {position} is not reached; the memory {NOTHING}"}
        del pipeline.inbox._weights[3]
        await fresh.wait(asking_as("ada", {"added": late}))

    asyncio.run(running(tmp_path / "a", scenario))


@given(st.text(max_size=5), st.integers(1, 2**32 - 1), st.integers(-(2**60), 2**60))
def test_client_position_is_stable_over_restarts_and_below_2_to_the_53(tmp_path_factory, client, ticket, guess):
    folder = tmp_path_factory.getbasetemp()
    position = ClientPositions(folder).position(client, ticket)
    assert 0 <= position < 2**53
    again = ClientPositions(folder)
    assert again.ticket(client, position) == ticket
    named = again.ticket(client, guess)
    assert named is None or again.position(client, named) == guess
    assert (folder / "positions.key").stat().st_mode & 0o777 == 0o600


def test_client_positions_do_not_reveal_ticket_numbers(tmp_path):
    found = [ClientPositions(tmp_path).position("ada", ticket) for ticket in range(1, 100)]
    assert found != sorted(found)
    assert min(abs(a - b) for a, b in itertools.pairwise(found)) > 1_000
    (tmp_path / "positions.key").write_bytes(b"short")
    assert ClientPositions(tmp_path).ticket("ada", found[0]) is None
