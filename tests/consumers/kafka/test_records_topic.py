"""Replicas of one records topic have the memory that the articles would give; invalid messages become dead letters."""

import asyncio
import random

import pytest

pytest.importorskip("confluent_kafka")

from consumers.kafka.record_publisher import RecordPublisher
from consumers.kafka.settings import KafkaSettings
from consumers.records.messages import to_messages
from daemon.fleet.record_maker import PositionedDocument, RecordMaker
from daemon.parser_pool.pool import ParserPool
from daemon.pipeline.ownership import Owners
from daemon.pipeline.pipeline import Pipeline
from daemon.pipeline.work_items import DeliveredDocument
from daemon.sources.kafka import records_source
from daemon.sources.kafka.declaration import KAFKA, KafkaSection
from daemon.sources.kafka.records_source import RecordsSource
from store.backup.local import backup, restore
from store.export.json_lines import export_lines
from store.store import Store
from store.types import State
from tests.consumers.kafka.cluster import Cluster, dead
from tests.daemon.pipeline.test_records import ENCODER, Reader, Refusing, Rules, article, at, parsed, removal, running

pytestmark = [pytest.mark.broker, pytest.mark.process]


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as cluster:
        yield cluster


async def records_of(documents):
    return await RecordMaker(Rules(), ENCODER).make([PositionedDocument(d, at(n)) for n, d in documents])


def publish(cluster, topic, records, max_bytes=900_000):
    settings = KafkaSettings(tuple(cluster.brokers.split(",")), ("unused",), options=cluster.sender_options)
    publisher = RecordPublisher(settings, topic)
    assert set(publisher.publish([to_messages(record, max_bytes) for record in records])) == {None}
    publisher.close()


class Replica:
    """A store, a pipeline that can neither extract nor encode, and the source."""

    def __init__(self, folder, cluster, topic, **more):
        self._folder = folder
        self._section = KafkaSection(
            brokers=tuple(cluster.brokers.split(",")),
            topics=(topic,),
            group=f"{topic}-{folder.name}",
            format="records",
            options={**cluster.options, "session_timeout_ms": 6000, "heartbeat_interval_ms": 500},
            **more,
        )

    async def __aenter__(self):
        self.store = Store(self._folder, ENCODER.identity)
        owners = Owners(KAFKA.claims(self._section))
        self.pipeline = Pipeline(self.store, Refusing(), Refusing(), Reader(), lambda *_, **__: None, 1, owners=owners)
        self.pool = ParserPool(1)
        self.pool.children.start()
        self.pipeline.start()
        self.source = RecordsSource(self._section, self.store, self.pipeline, self.pool)
        self.source.start()
        return self

    async def caught_up(self):
        await asyncio.wait_for(self.source.delivered(), 60)
        await self.pipeline.drained()
        return list(export_lines(self.store.snapshot()))

    async def __aexit__(self, *_):
        await self.pipeline.stop(5)
        await self.source.close()
        await self.pool.children.close()
        self.store.close()


def test_replica_matches_the_records_and_resumes_after_a_restart(cluster, tmp_path):
    topic, letters = cluster.topic(2), cluster.topic(1)
    history = [(n, article(n)) for n in range(8)] + [(8, article(1, 1)), (9, removal(2)), (10, removal(3))]
    last = {document.uri: document for _, document in history}

    async def scenario():
        records = await records_of(history)
        publish(cluster, topic, records[:5], max_bytes=6000)
        assert any(b"\x1f" in message.key() for message in cluster.read(topic)), "some are split"
        async with Replica(tmp_path / "a", cluster, topic) as replica:
            assert len(await replica.caught_up()) > 0 and len(replica.store.documents()) == 5
        # A worker that was presumed dead sends its records again, late; and an invalid message.
        publish(cluster, topic, [*records[5:], *random.Random(2).sample(records[:6], 4)], max_bytes=6000)
        cluster.send(topic, b"no record", key="u")
        cluster.send(topic, b"no key")
        cluster.flush()
        exports = []
        for name in ("a", "b"):
            async with Replica(tmp_path / name, cluster, topic, dead_letter=letters) as replica:
                exports.append(await replica.caught_up())
                lag = replica.source.status(0)
                assert lag.lag == 0 and sum(each.position or 0 for each in lag.partitions) == len(cluster.read(topic))
        assert len(dead(cluster.read(letters))) == 2, "each message once, whichever replica sends it"

        async def fresh(pipeline):
            for document in last.values():
                if not document.deleted:
                    await pipeline.deliver(DeliveredDocument(document.uri, document), "kafka")

        expected, _, _ = await running(tmp_path / "fresh", fresh, Rules(), ENCODER)
        assert exports == [expected, expected]

    asyncio.run(scenario())


def compacted(messages, aged):
    """Returns the last message of each key, in order, like compaction.

    Also drops null messages of keys in `aged`, which compaction deletes after `delete.retention.ms`.
    """
    last = {message.key(): message for message in messages}
    kept = [message for message in messages if last[message.key()] is message]
    return [message for message in kept if message.value() is not None or message.key().decode() not in aged]


def test_a_compacted_topic_gives_a_new_replica_the_same_memory(cluster, tmp_path, monkeypatch):
    """Compaction may leave some parts of replaced multi-part records; these parts do not block the reading."""
    monkeypatch.setattr("consumers.records.messages.ORPHAN_WAIT_S", 0.1)
    monkeypatch.setattr(records_source, "EXPIRY_INTERVAL_S", 0.1)
    topic, short = cluster.topic(1), cluster.topic(1)
    # 1 is replaced by a longer one, 2 by one in fewer parts, 3 and 4 are removed, 5 is added again; 6 and 7 stay unchanged.
    small = parsed("kafka://articles/2", "Small", "Ada Lovelace met Charles Babbage in London.")
    history = [*((n, article(n)) for n in range(8)), (8, article(1, 1)), (9, small)]
    history += [(10, removal(3)), (11, removal(4)), (12, removal(5)), (13, article(5, 1)), (14, removal(7))]

    async def scenario():
        publish(cluster, topic, await records_of(history), max_bytes=6000)
        messages = cluster.read(topic)
        left = compacted(messages, {"kafka://articles/3", "kafka://articles/7"})
        assert any(b"kafka://articles/7\x1f" in message.key() for message in left), "parts without their first"
        assert len(left) < len(messages) - 4
        for message in left:
            cluster.send(short, message.value(), key=message.key(), headers=message.headers())
        cluster.flush()
        async with Replica(tmp_path / "whole", cluster, topic) as replica:
            expected = await replica.caught_up()
        async with Replica(tmp_path / "new", cluster, short) as replica:
            assert await replica.caught_up() == expected
            assert len(replica.store.documents()) == 5
            assert replica.source.status(0).lag == 0

    asyncio.run(scenario())


def test_replica_restored_from_a_backup_resumes_at_the_positions_of_the_backup(cluster, tmp_path):
    topic = cluster.topic(2)

    async def scenario():
        records = await records_of([(n, article(n)) for n in range(8)] + [(8, article(1, 1)), (9, removal(2))])
        publish(cluster, topic, records[:6])
        async with Replica(tmp_path / "a", cluster, topic) as first:
            await first.caught_up()
            made = await asyncio.to_thread(backup, first.store, tmp_path / "backup")
            publish(cluster, topic, records[6:])
            expected = await first.caught_up()
        restore(tmp_path / "backup", tmp_path / "b")
        async with Replica(tmp_path / "b", cluster, topic) as second:
            assert second.store.snapshot().commit >= made.commit > 0
            assert await second.caught_up() == expected
            assert len(second.store.documents()) == 7

    asyncio.run(scenario())


def test_refused_record_fails_and_can_be_retried_once_the_topic_owns_it(cluster, tmp_path):
    topic = cluster.topic(1)
    whole = parsed("kafka://articles/1", "Small", "Ada Lovelace met Charles Babbage in London.")

    async def retried(replica):
        """Returns after each failed document was retried and sent again."""
        before = {document.uri: document.committed_at for document in replica.store.documents()}
        for document in replica.store.documents():
            assert replica.pipeline.retry(document)
        while any(document.committed_at == before.get(document.uri) for document in replica.store.documents()):
            await replica.pipeline.intake.changed_within(0.1)

    async def scenario():
        in_parts, small = await records_of([(0, article(2)), (1, whole)])
        publish(cluster, topic, [in_parts], max_bytes=6000)
        parts = len(cluster.read(topic))
        assert parts > 1
        publish(cluster, topic, [small])
        async with Replica(tmp_path, cluster, topic, uris=("kafka://notes/",)) as replica:
            await replica.caught_up()
            assert replica.source.status(0).lag == 0
            refused = {document.uri: document for document in replica.store.documents()}
            assert set(refused) == {f"kafka://{topic}#0-{parts - 1}", f"kafka://{topic}#0-{parts}"}
            assert {document.code for document in refused.values()} == {"ownership"}
            assert all("the source of added documents" in document.error for document in refused.values())
            await retried(replica)
            assert {(each.uri, each.state) for each in replica.store.documents()} == {
                (uri, State.FAILED) for uri in refused
            }
        async with Replica(tmp_path, cluster, topic, uris=("kafka://articles/",)) as replica:
            assert replica.pipeline.retry(refused[f"kafka://{topic}#0-{parts}"])
            while replica.store.document(whole.uri) is None:
                await replica.pipeline.intake.changed_within(0.1)
            await replica.pipeline.drained()
            assert replica.store.document(f"kafka://{topic}#0-{parts}") is None

    asyncio.run(asyncio.wait_for(scenario(), 60))
