"""Where partitions begin and end, asked so that one that gives no answer holds up no other."""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from typing import Any

from kafka import TopicPartition
from kafka.errors import KafkaTimeoutError, UnknownBrokerIdError

BROKER_TIMEOUT_MS = 1500
"""How long a broker may take to answer."""
ALL_ENDS_TIMEOUT_S = 3.0
"""How long asking for all ends may take; who is not asked by then is asked the next time."""
SILENT_LEADER_PAUSE_S = 2.0
"""How long a leader is left alone that did not answer: each question that stays without an answer takes its whole time."""


class OffsetQueries:
    """Of one consumer's partitions, on its thread.

    kafka-python answers for all that it is asked about or for none: a single partition without a leader would cost the
    others their answer. So each leader is asked for its own, and those whose leader did not answer are asked one by one.
    """

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer
        self._silent: dict[TopicPartition, float] = {}
        """When partitions were asked about that gave no answer."""
        self._rests: dict[int, float] = {}
        """Until when leaders are left alone."""

    def leader(self, tp: TopicPartition) -> int | None:
        """The broker that leads a partition, as far as the consumer knows; `None` where none does."""
        cluster = self._consumer._cluster
        leader = cluster.leader_for_partition(tp)
        if (
            leader is None or leader < 0 or cluster.broker_metadata(leader) is None
        ):  # brokers may name one that has gone
            return None
        return int(leader)

    def asked(self, tp: TopicPartition) -> float:
        """When it was asked about in vain; 0 where it was not. Whoever asks in this order leaves none out for ever."""
        return self._silent.get(tp, 0.0)

    def beginning(self, tp: TopicPartition) -> int | None:
        """`None` where there is no answer now, as with the following two."""
        return self._alone(tp, self._consumer.beginning_offsets)

    def end(self, tp: TopicPartition) -> int | None:
        return self._alone(tp, self._consumer.end_offsets)

    def committed(self, tp: TopicPartition) -> int | None:
        """The group's offset, -1 where it has none."""

        def ask(tps: Collection[TopicPartition], timeout_ms: int) -> dict[TopicPartition, int]:
            at = {each: self._consumer.committed(each, timeout_ms=timeout_ms) for each in tps}
            return {each: -1 if offset is None else offset for each, offset in at.items()}

        return self._alone(tp, ask)

    def ends(self, tps: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Of those that give an answer."""
        deadline = time.monotonic() + ALL_ENDS_TIMEOUT_S
        self._silent = {tp: at for tp, at in self._silent.items() if tp in tps}
        alone = sorted(self._silent, key=self.asked)
        groups: defaultdict[int, list[TopicPartition]] = defaultdict(list)
        for tp in tps:
            leader = self.leader(tp)
            if leader is None:
                self._consumer._cluster.request_update()  # it may have one by now
            elif tp not in self._silent:
                groups[leader].append(tp)
        found: dict[TopicPartition, int] = {}
        for group in groups.values():
            if time.monotonic() < deadline:
                found.update(self._ask(self._consumer.end_offsets, group))
        for tp in alone:
            if time.monotonic() < deadline and (end := self.end(tp)) is not None:
                found[tp] = end
        if (
            not found
        ):  # the brokers are away, which is no single partition's fault: when they are back, all are asked at once
            self._silent.clear()
            self._rests.clear()
        return found

    def _alone(self, tp: TopicPartition, ask: Callable[..., Mapping[TopicPartition, int]]) -> int | None:
        leader = self.leader(tp)
        if leader is None:
            self._consumer._cluster.request_update()
            return None
        if time.monotonic() < self._rests.get(leader, 0.0):
            return None
        answer = self._ask(ask, [tp])
        if not answer:
            self._rests[leader] = time.monotonic() + SILENT_LEADER_PAUSE_S
        return answer.get(tp)

    def _ask(
        self, ask: Callable[..., Mapping[TopicPartition, int]], tps: Collection[TopicPartition]
    ) -> dict[TopicPartition, int]:
        try:
            answers = {tp: int(offset) for tp, offset in ask(tps, timeout_ms=BROKER_TIMEOUT_MS).items()}
        except (KafkaTimeoutError, UnknownBrokerIdError, KeyError):  # a leader that goes meanwhile is a KeyError there
            self._silent.update(dict.fromkeys(tps, time.monotonic()))
            return {}
        for tp in answers:
            self._silent.pop(tp, None)
        return answers
