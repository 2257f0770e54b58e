"""Asks the brokers where partitions begin and end. A partition without an answer delays no other."""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from typing import Any

from kafka import TopicPartition
from kafka.errors import KafkaTimeoutError, UnknownBrokerIdError

BROKER_TIMEOUT_MS = 1500
"""How long a broker may take to answer."""
ALL_ENDS_TIMEOUT_S = 3.0
"""How long asking for all ends may take. Partitions not asked by then are asked the next time."""
SILENT_LEADER_PAUSE_S = 2.0
"""How long a leader that did not answer is not asked again: each such question costs `BROKER_TIMEOUT_MS`."""


class OffsetQueries:
    """Questions about one consumer's partitions, for the consumer's thread.

    kafka-python answers for all partitions of a question or for none, so one partition without a leader would cost the
    others their answer. Each leader is therefore asked for its own partitions, and a partition whose leader did not
    answer is asked for alone.
    """

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer
        self._unanswered_since: dict[TopicPartition, float] = {}
        """By partition without an answer: when it was last asked for."""
        self._silent_until: dict[int, float] = {}
        """By silent leader: until when it is not asked again."""

    def leader(self, tp: TopicPartition) -> int | None:
        """The broker that leads a partition, as far as the consumer knows; `None` where none does."""
        cluster = self._consumer._cluster
        leader = cluster.leader_for_partition(tp)
        if (
            leader is None or leader < 0 or cluster.broker_metadata(leader) is None
        ):  # brokers may name one that has gone
            return None
        return int(leader)

    def unanswered_since(self, tp: TopicPartition) -> float:
        """When the partition was last asked for in vain, 0 if never. Asking in this order leaves none out for ever."""
        return self._unanswered_since.get(tp, 0.0)

    def beginning(self, tp: TopicPartition) -> int | None:
        """The first offset that the partition has; `None` while there is no answer."""
        return self._offset_of_one(tp, self._consumer.beginning_offsets)

    def end(self, tp: TopicPartition) -> int | None:
        """The offset after the last message; `None` while there is no answer."""
        return self._offset_of_one(tp, self._consumer.end_offsets)

    def fetched_end(self, tp: TopicPartition) -> int:
        """The end as the last fetched messages named it, 0 before the first; asks no broker.

        Some brokers answer the question for the end with an older offset: Tansu 0.6 counts one message of the last batch.
        """
        position = self._consumer.position(tp, timeout_ms=0) or 0
        if (
            self._consumer.config["isolation_level"] == "read_committed"
        ):  # behind the end may be what is not committed yet
            return int(position)
        return max(int(position), int(self._consumer.highwater(tp) or 0))

    def committed(self, tp: TopicPartition) -> int | None:
        """The group's offset, -1 where it has none; `None` while there is no answer."""

        def ask(tps: Collection[TopicPartition], timeout_ms: int) -> dict[TopicPartition, int]:
            at = {each: self._consumer.committed(each, timeout_ms=timeout_ms) for each in tps}
            return {each: -1 if offset is None else offset for each, offset in at.items()}

        return self._offset_of_one(tp, ask)

    def ends(self, tps: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The ends of those partitions for which there is an answer."""
        deadline = time.monotonic() + ALL_ENDS_TIMEOUT_S
        self._unanswered_since = {tp: at for tp, at in self._unanswered_since.items() if tp in tps}
        alone = sorted(self._unanswered_since, key=self.unanswered_since)
        groups: defaultdict[int, list[TopicPartition]] = defaultdict(list)
        for tp in tps:
            leader = self.leader(tp)
            if leader is None:
                self._consumer._cluster.request_update()  # it may have one by now
            elif tp not in self._unanswered_since:
                groups[leader].append(tp)
        found: dict[TopicPartition, int] = {}
        for group in groups.values():
            if time.monotonic() < deadline:
                found.update(self._ask(self._consumer.end_offsets, group))
        for tp in alone:
            if time.monotonic() < deadline and (end := self.end(tp)) is not None:
                found[tp] = end
        if not found:  # all brokers are away, so no partition is to blame: ask for all at once when they are back
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
        except (KafkaTimeoutError, UnknownBrokerIdError, KeyError):  # a leader that goes meanwhile is a KeyError there
            self._unanswered_since.update(dict.fromkeys(tps, time.monotonic()))
            return {}
        for tp in answers:
            self._unanswered_since.pop(tp, None)
        return answers
