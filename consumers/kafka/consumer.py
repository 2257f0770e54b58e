"""Follows topics as one member of a consumer group, in a thread of its own that does nothing but fetch."""

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future

import structlog
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import (
    KafkaError,
    OffsetOutOfRangeError,
    UnknownBrokerIdError,
)
from kafka.structs import OffsetAndMetadata

from consumers.kafka.connect import ConnectionLog, open_consumer, reachable
from consumers.kafka.consumer_state import ConsumerState, partition_names, state_after
from consumers.kafka.events import Event, MessagesFetched, Partition, PartitionOffsets, PartitionStarted
from consumers.kafka.message import KafkaMessage
from consumers.kafka.rebalance import RebalanceListener
from consumers.kafka.settings import KafkaSettings, consumer_config
from consumers.kafka.watermarks import OffsetQueries

POLL_MS = 200
REPORT_INTERVAL_S = 1.0
"""How often group offsets are committed and it is asked where the topics end."""
ENDS_TIMEOUT_S = 5.0
"""After which a partition whose end cannot be found out is taken to end where it did when last looked at."""
RETRY_DELAYS_S = (0.5, 1.0, 2.0)
"""Rests after failures one after the other."""
DENIED_RETRY_DELAY_S = 5.0
"""After a refused login: servers lock accounts that try too often."""

log = structlog.get_logger(__name__)


class TopicConsumer:
    """`start` and `stop` are for the owner; `emit` is called from the source's thread.

    `stored(partition)` is the position in the store; `should_pause()` is true while nothing more is to be fetched. Both are
    called from the source's thread. `known_topics`: topics of which the store has a position.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        stored: Callable[[Partition], int | None],
        known_topics: Iterable[str],
        should_pause: Callable[[], bool],
        emit: Callable[[Event], None],
    ) -> None:
        self._settings = settings
        self._stored = stored
        self._known_topics = set(known_topics)
        self._should_pause = should_pause
        self._emit = emit
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"kafka {settings.name}", daemon=True)
        self._fetched: dict[Partition, int] = {}
        self._ends: dict[Partition, int] = {}
        self._from_end: set[Partition] = set()
        """Partitions of topics that were new to us, which are read from their end whenever that can be found out."""
        self._unanswered: frozenset[TopicPartition] = frozenset()
        self._committed: dict[Partition, int] = {}
        self._asks: deque[tuple[float, Future[dict[Partition, int]]]] = deque()
        self._asked = threading.Event()
        self._next_report = 0.0
        self._connection_log = ConnectionLog()
        self.state = ConsumerState()
        self.paused = False
        """Whether nothing is fetched because too much is under way."""
        self.rebalances = 0
        """How often the group has given out its partitions anew to this member."""
        self._missing: frozenset[str] = frozenset()
        """Topics that the brokers did not have when last looked at."""

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_s: float = 8.0) -> None:
        """Commits the group's offsets and leaves it, if the brokers let it within the time."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def ends(self) -> "Future[dict[Partition, int]]":
        """Where this member's partitions end, asked for after this call; waits for brokers that are away.

        A single partition that gives no answer is not waited for: its end is the last that was known, if one was.
        """
        future: Future[dict[Partition, int]] = Future()
        self._asks.append((time.monotonic(), future))
        self._asked.set()
        return future

    # The thread.

    def _run(self) -> None:
        failures = 0
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                self._follow()
            except Exception as error:  # noqa: BLE001 - whatever the client raises, the topics are followed again
                self._set_state(*state_after(error, self._connection_log.refusal()))
                expected = isinstance(error, KafkaError | OSError)
                if failures == 0 or not expected:
                    log.warning("kafka_trouble", source=self._settings.name, error=self.state.detail)
            failures = 0 if time.monotonic() - began > 30 else failures + 1
            denied = self.state.state == "denied"
            self._stop.wait(DENIED_RETRY_DELAY_S if denied else RETRY_DELAYS_S[min(failures, len(RETRY_DELAYS_S) - 1)])
        self._connection_log.close()
        self._set_state("stopped")
        while self._asks:
            self._asks.popleft()[1].cancel()

    def _follow(self) -> None:
        if not reachable(self._settings):
            self._unreachable()
            return
        consumer = open_consumer(consumer_config(self._settings, KafkaConsumer.DEFAULT_CONFIG), self._connection_log)
        self._set_state("joining")
        member, offsets = RebalanceListener(consumer, self._known), OffsetQueries(consumer)
        self._committed.clear()
        try:
            consumer.subscribe(list(self._settings.topics), listener=member)
            while not self._stop.is_set():
                self._poll(consumer, member, offsets)
        finally:
            with contextlib.suppress(KafkaError):
                if self._stop.is_set():
                    self._commit(consumer, wait=True)
            consumer.close(autocommit=False, timeout_ms=2000)

    def _poll(self, consumer: KafkaConsumer, member: RebalanceListener, offsets: OffsetQueries) -> None:
        try:
            records = consumer.poll(timeout_ms=POLL_MS)
        except OffsetOutOfRangeError as error:
            self._out_of_range(consumer, offsets, dict(error.args[0]))
            records = {}
        except UnknownBrokerIdError as error:
            if not self._recover_lost_leader(consumer, member, offsets, error):
                raise
            records = {}
        if self.rebalances != member.rebalances:
            self.rebalances = member.rebalances
            self._committed.clear()
            self._next_report = 0.0
        self._place(consumer, member, offsets)
        messages = [
            KafkaMessage.from_record(record)
            for batch in records.values()
            for record in batch
            if record.offset >= self._fetched.get((record.topic, record.partition), 0)
        ]
        if messages:
            for message in messages:
                self._fetched[(message.topic, message.partition)] = message.offset + 1
            self._emit(MessagesFetched(tuple(messages)))
        self._pause_or_resume(consumer, member, offsets)
        if self._asked.is_set() or time.monotonic() >= self._next_report:
            self._report(consumer, member, offsets)

    def _known(self, partition: Partition) -> int | None:
        """Where fetching stood in this process, else where the store stands."""
        return self._fetched[partition] if partition in self._fetched else self._stored(partition)

    def _place(self, consumer: KafkaConsumer, member: RebalanceListener, offsets: OffsetQueries) -> None:
        """Partitions whose place has to be asked for, and the news of those that have one."""
        assigned = consumer.assignment()
        if self._settings.start == "latest":
            self._from_end |= {(tp.topic, tp.partition) for tp in assigned if tp.topic not in self._known_topics}
        self._known_topics |= {tp.topic for tp in assigned}
        for tp in sorted(member.take_new(), key=offsets.asked):
            if tp not in assigned:
                continue
            partition = (tp.topic, tp.partition)
            at = self._known(partition)
            if at is None:
                at = self._beginning(offsets, tp)
                if at is None:
                    continue  # it stays unplaced, and is tried again; the others go on
                consumer.seek(tp, at)
            if partition not in self._fetched:
                self._fetched[partition] = at
                self._emit(PartitionStarted(partition, at))
            member.placed(tp)

    def _beginning(self, offsets: OffsetQueries, tp: TopicPartition) -> int | None:
        """Where a partition begins that the store knows nothing of; `None` where that cannot be found out now."""
        if self._settings.start == "earliest":
            return offsets.beginning(tp)
        if (tp.topic, tp.partition) in self._from_end:
            return offsets.end(tp)
        # A partition that came later: what another member of the group has read is behind us, nothing else is.
        committed = offsets.committed(tp)
        return committed if committed is None or committed >= 0 else offsets.beginning(tp)

    def _out_of_range(self, consumer: KafkaConsumer, offsets: OffsetQueries, places: dict[TopicPartition, int]) -> None:
        for tp in places.keys() & consumer.assignment():
            begin, at = offsets.beginning(tp), int(places[tp])
            if begin is None:
                continue  # the next fetch says again that there is nothing at the position
            if begin > at:
                reason = f"the broker has deleted {begin - at} messages that were not read yet"
            else:
                reason = "the topic was made anew, or cut short"
            log.warning(
                "kafka_offset_gone", topic=tp.topic, partition=tp.partition, offset=at, goes_on_from=begin, error=reason
            )
            partition = (tp.topic, tp.partition)
            self._fetched[partition] = begin
            self._emit(PartitionStarted(partition, begin, recreated=True))
            consumer.seek(tp, begin)

    def _recover_lost_leader(
        self, consumer: KafkaConsumer, member: RebalanceListener, offsets: OffsetQueries, error: UnknownBrokerIdError
    ) -> bool:
        """Whether a poll failed because the brokers name a leader that they do not have any more; the others then go on.

        kafka-python 3.0 forgets what that poll had brought, and takes the leader to be asked already, for ever.
        """
        assigned = consumer.assignment()
        if all(offsets.leader(tp) is not None for tp in assigned):
            return False
        consumer._fetcher._nodes_with_pending_fetch_requests.discard(error.args[0])
        for tp in assigned - member.unplaced:
            at = self._known((tp.topic, tp.partition))
            if at is not None:
                consumer.seek(tp, at)
        return True

    def _pause_or_resume(self, consumer: KafkaConsumer, member: RebalanceListener, offsets: OffsetQueries) -> None:
        """Rests while too much is under way, and partitions while nobody leads them; polling goes on, which keeps the group."""
        assigned, paused = consumer.assignment(), consumer.paused()
        self.paused = self._should_pause()
        resting = assigned if self.paused else {tp for tp in assigned if offsets.leader(tp) is None}
        consumer.pause(*(resting - paused))
        consumer.resume(*((paused & assigned) - resting - member.unplaced))

    def _report(self, consumer: KafkaConsumer, member: RebalanceListener, offsets: OffsetQueries) -> None:
        self._next_report = time.monotonic() + REPORT_INTERVAL_S
        self._asked.clear()
        asked = time.monotonic()  # who asks from here on may mean a message that is later than the ends found now
        self._commit(consumer)
        mine = consumer.assignment()
        if not member.rebalances:
            if refused := self._connection_log.refusal():
                self._set_state("denied", f"the brokers refuse the login: {refused}")
            elif reachable(self._settings):
                self._set_state("joining", self._connection_log.failure())
            else:
                self._unreachable()
            return
        found = offsets.ends(mine)
        led = any(offsets.leader(tp) is not None for tp in mine)
        if mine and not found and (led or not reachable(self._settings)):
            self._next_report = time.monotonic() + REPORT_INTERVAL_S
            self._unreachable()
            return
        known = {(tp.topic, tp.partition): end for tp, end in found.items()}
        self._ends = {
            partition: end
            for partition, end in (self._ends | known).items()
            if TopicPartition(*partition) in mine  # where one gives no answer, the last end that was known
        }
        fetched = {}
        for tp in mine - member.unplaced:
            at = consumer.position(tp, timeout_ms=0)  # what is known without asking anybody
            if at is not None:
                fetched[(tp.topic, tp.partition)] = int(at)
        self._emit(PartitionOffsets(fetched, self._ends))
        self._report_state(consumer, offsets, frozenset((mine - found.keys()) | (mine & member.unplaced)))
        while self._asks and self._asks[0][0] < asked:
            if found.keys() != mine and asked < self._asks[0][0] + ENDS_TIMEOUT_S:
                break
            _, ask = self._asks.popleft()
            if ask.set_running_or_notify_cancel():  # not where whoever asked has given up
                ask.set_result(self._ends)

    def _report_state(
        self, consumer: KafkaConsumer, offsets: OffsetQueries, unanswered: frozenset[TopicPartition]
    ) -> None:
        """How it stands with those topics and partitions that are not followed; says nothing of a moment without answer."""
        missing = [topic for topic in self._settings.topics if not consumer._cluster.partitions_for_topic(topic)]
        if self._missing.difference(missing):
            # The library's own look at what the brokers have now and then misses that a topic came (kafka-python 3.0).
            consumer._coordinator.request_rejoin()
        self._missing = frozenset(missing)
        lasting = {tp for tp in unanswered & self._unanswered if tp.topic not in missing}
        self._unanswered = unanswered
        leaderless = {tp for tp in lasting if offsets.leader(tp) is None}
        said = []
        if missing:
            said.append(f"the brokers have no topic {', '.join(missing)}; it is followed as soon as it is there")
        if leaderless:
            said.append(f"no leader: {partition_names(leaderless)}; followed as soon as one is there")
        if mute := lasting - leaderless:
            said.append(f"no answer from the leader: {partition_names(mute)}; tried again")
        self._set_state("missing" if missing else "following", "; ".join(said))

    def _commit(self, consumer: KafkaConsumer, wait: bool = False) -> None:
        """Tells the group what the store holds, for those who watch the group."""
        offsets = {}
        for tp in consumer.assignment():
            partition = (tp.topic, tp.partition)
            at = self._stored(partition)
            if at is not None and self._committed.get(partition) != at:
                offsets[tp] = OffsetAndMetadata(at, "", -1)
                self._committed[partition] = at
        if not offsets:
            return
        if wait:
            consumer.commit(offsets, timeout_ms=3000)
        else:
            consumer.commit_async(offsets, callback=self._answered)

    def _answered(self, offsets: dict[TopicPartition, OffsetAndMetadata], answer: object) -> None:
        if isinstance(answer, Exception):
            log.debug("kafka_group_offsets_not_committed", source=self._settings.name, error=str(answer))
            for tp in offsets:
                self._committed.pop((tp.topic, tp.partition), None)

    def _unreachable(self) -> None:
        self._set_state("unreachable", f"no answer from {', '.join(self._settings.brokers)}; trying again")

    def _set_state(self, state: str, detail: str = "") -> None:
        if self.state.state != state or (state == "following" and self.state.detail != detail):
            log.info("kafka_state", source=self._settings.name, state=state, **({"detail": detail} if detail else {}))
        self.state = ConsumerState(state, detail)
