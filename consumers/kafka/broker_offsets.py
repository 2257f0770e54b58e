"""Offsets at the brokers: queries for the beginning and end of partitions, which do not wait for a partition without an answer;
and commits of the store's positions as the consumer group's offsets."""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping

import structlog
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaTimeoutError, UnknownBrokerIdError
from kafka.structs import OffsetAndMetadata

from consumers.kafka.message import Partition

BROKER_TIMEOUT_MS = 1500
"""Timeout of a query to one broker."""
ALL_ENDS_TIMEOUT_S = 3.0
"""Timeout of a query for the ends of all partitions. The next query begins with the partitions that this query did not
reach."""
SILENT_LEADER_PAUSE_S = 2.0
"""Pause before a leader that did not answer is queried again: each unanswered query costs `BROKER_TIMEOUT_MS`."""

log = structlog.get_logger(__name__)


class OffsetQueries:
    """Offset queries for one consumer's partitions, on the consumer's thread.

    kafka-python answers a query for all its partitions or for none, so one partition without a leader would leave all
    partitions unanswered. Therefore each leader is queried for its own partitions, and a partition whose leader did not answer
    is queried alone.
    """

    def __init__(self, consumer: KafkaConsumer) -> None:
        self._consumer = consumer
        self._unanswered_since: dict[TopicPartition, float] = {}
        """Time of the last query (monotonic seconds) of each partition without an answer."""
        self._silent_until: dict[int, float] = {}
        """Time (monotonic seconds) until which a leader that did not answer is not queried again."""

    def leader(self, tp: TopicPartition) -> int | None:
        """Returns the leader of a partition; `None` if the consumer knows no leader."""
        cluster = self._consumer._cluster
        leader = cluster.leader_for_partition(tp)
        if (
            leader is None or leader < 0 or cluster.broker_metadata(leader) is None
        ):  # the brokers may name a former leader
            return None
        return int(leader)

    def unanswered_since(self, tp: TopicPartition) -> float:
        """Returns the time of the last unanswered query; 0 if there was none. Partitions are queried in the order of this time,
        so that no partition is neglected."""
        return self._unanswered_since.get(tp, 0.0)

    def beginning(self, tp: TopicPartition) -> int | None:
        """Returns the first offset of the partition, or `None` without an answer."""
        return self._offset_of_one(tp, self._consumer.beginning_offsets)

    def end(self, tp: TopicPartition) -> int | None:
        """Returns the offset after the last message, or `None` without an answer."""
        return self._offset_of_one(tp, self._consumer.end_offsets)

    def fetched_end(self, tp: TopicPartition) -> int:
        """Returns the end offset that came with the last fetched messages; 0 before the first fetch. Sends no request.

        Some brokers answer the query for the end with a lower offset: Tansu 0.6 counts only one message of the last
        batch.
        """
        position = self._consumer.position(tp, timeout_ms=0) or 0
        if (
            self._consumer.config["isolation_level"] == "read_committed"
        ):  # messages after the position may be uncommitted
            return int(position)
        return max(int(position), int(self._consumer.highwater(tp) or 0))

    def committed(self, tp: TopicPartition) -> int | None:
        """Returns the group's offset; -1 if the group has none; `None` while there is no answer."""

        def ask(tps: Collection[TopicPartition], timeout_ms: int) -> dict[TopicPartition, int]:
            at = {each: self._consumer.committed(each, timeout_ms=timeout_ms) for each in tps}
            return {each: -1 if offset is None else offset for each, offset in at.items()}

        return self._offset_of_one(tp, ask)

    def ends(self, tps: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Returns the end offsets of the partitions whose leaders answered."""
        deadline = time.monotonic() + ALL_ENDS_TIMEOUT_S
        self._unanswered_since = {tp: at for tp, at in self._unanswered_since.items() if tp in tps}
        alone = sorted(self._unanswered_since, key=self.unanswered_since)
        groups: defaultdict[int, list[TopicPartition]] = defaultdict(list)
        for tp in tps:
            leader = self.leader(tp)
            if leader is None:
                self._consumer._cluster.request_update()  # the partition may have a leader by now
            elif tp not in self._unanswered_since:
                groups[leader].append(tp)
        found: dict[TopicPartition, int] = {}
        for group in groups.values():
            if time.monotonic() < deadline:
                found.update(self._ask(self._consumer.end_offsets, group))
        for tp in alone:
            if time.monotonic() < deadline and (end := self.end(tp)) is not None:
                found[tp] = end
        if not found:  # no broker answers, so no partition is at fault: query all partitions together next time
            self._unanswered_since.clear()
            self._silent_until.clear()
        return found

    def _offset_of_one(self, tp: TopicPartition, ask: Callable[..., Mapping[TopicPartition, int]]) -> int | None:
        leader = self.leader(tp)
        if leader is None:
            self._consumer._cluster.request_update()
            return None
        if time.monotonic() < self._silent_until.get(leader, 0.0):
            return None
        answer = self._ask(ask, [tp])
        if not answer:
            self._silent_until[leader] = time.monotonic() + SILENT_LEADER_PAUSE_S
        return answer.get(tp)

    def _ask(
        self, ask: Callable[..., Mapping[TopicPartition, int]], tps: Collection[TopicPartition]
    ) -> dict[TopicPartition, int]:
        try:
            answers = {tp: int(offset) for tp, offset in ask(tps, timeout_ms=BROKER_TIMEOUT_MS).items()}
        except (KafkaTimeoutError, UnknownBrokerIdError, KeyError):  # KeyError: the leader has just disappeared
            self._unanswered_since.update(dict.fromkeys(tps, time.monotonic()))
            return {}
        for tp in answers:
            self._unanswered_since.pop(tp, None)
        return answers


class GroupOffsets:
    """Commits offsets and remembers them, so that only changed offsets are sent. For the consumer's thread.

    hippod itself uses these offsets only for partitions without a position in the store.
    """

    def __init__(self, source: str, stored: Callable[[Partition], int | None]) -> None:
        """`source` is the name of the source in the log. `stored(partition)` is the position in the store."""
        self._source = source
        self._stored = stored
        self._committed: dict[Partition, int] = {}

    def forget(self) -> None:
        """Makes the next commit send all offsets. Call it if another member may have had the partitions since the last
        commit."""
        self._committed.clear()

    def commit(self, consumer: KafkaConsumer, *, wait: bool = False) -> None:
        """Sends the offsets of the assigned partitions. With `wait`, waits at most 3 s for the group's answer."""
        offsets = {}
        for tp in consumer.assignment():
            partition = (tp.topic, tp.partition)
            offset = self._stored(partition)
            if offset is not None and self._committed.get(partition) != offset:
                offsets[tp] = OffsetAndMetadata(offset, "", -1)
                self._committed[partition] = offset
        if not offsets:
            return
        if wait:
            consumer.commit(offsets, timeout_ms=3000)
        else:
            consumer.commit_async(offsets, callback=self._on_answer)

    def _on_answer(self, offsets: dict[TopicPartition, OffsetAndMetadata], answer: object) -> None:
        if isinstance(answer, Exception):
            log.debug("kafka_group_offsets_not_committed", source=self._source, error=str(answer))
            for tp in offsets:
                self._committed.pop((tp.topic, tp.partition), None)
