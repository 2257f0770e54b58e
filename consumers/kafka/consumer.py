"""The Kafka consumer: one member of a consumer group, and its state, which `status` shows. The consumer's thread only fetches;
other threads and processes decode and index."""

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future
from dataclasses import dataclass

import structlog
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import (
    AuthorizationError,
    KafkaConfigurationError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    OffsetOutOfRangeError,
    SaslAuthenticationFailedError,
    UnknownBrokerIdError,
    UnsupportedSaslMechanismError,
)

from consumers.kafka.broker_offsets import GroupOffsets, OffsetQueries
from consumers.kafka.connect import ConnectionLog, await_partitions, open_consumer, reachable
from consumers.kafka.fetch_positions import FetchPositions, GroupPositions, RebalanceListener
from consumers.kafka.message import ConsumerEvent, MessagesFetched, Partition, PartitionOffsets
from consumers.kafka.settings import KafkaSettings, consumer_config

MAX_NAMED_PARTITIONS = 5
"""Maximum number of partitions that a state's detail names."""

POLL_MS = 200
REPORT_INTERVAL_S = 1.0
"""Interval at which the consumer commits the group's offsets and queries the end offsets of its partitions."""
ENDS_TIMEOUT_S = 5.0
"""Maximum time that `ends` waits for a partition's end, counted from the assignment of the partition. After that, the last
known end is used."""
PARTITIONS_TIMEOUT_S = 2.0
"""Maximum wait for the topics' partitions before the consumer joins the group: a topic may not exist."""
RETRY_DELAYS_S = (0.5, 1.0, 2.0)
"""Pauses after the first, second and every further consecutive failure."""
WORKS_AFTER_S = 30.0
"""If a consumer fails after this time, it has worked, and its failure counts as the first one."""
DENIED_RETRY_DELAY_S = 5.0
"""Pause after a refused login, because servers lock accounts that try too often."""
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ConsumerState:
    """`state`: "starting", "joining", "following", "unreachable", "missing" (a topic), "denied", "error" or "stopped"."""

    state: str = "starting"
    detail: str = ""


class TopicConsumer:
    """Fetches messages on its own thread and reports them through `emit`. Other threads call `start`, `stop` and `ends`.

    The thread calls `emit`, `stored` and `should_pause`. `stored(partition)` returns the partition's position in the store.
    While `should_pause()` returns true, nothing is fetched. `known_topics` are the topics with a position in the store.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        stored: Callable[[Partition], int | None],
        known_topics: Iterable[str],
        should_pause: Callable[[], bool],
        emit: Callable[[ConsumerEvent], None],
        disown: Callable[[Partition], None] | None = None,
    ) -> None:
        """With `disown`, fetching continues at the group's offsets instead of the store's positions.

        `stored(partition)` is then the offset to commit to the group. `disown` is called, on any thread, with each
        partition that is revoked or assigned.
        """
        self._settings = settings
        self._should_pause = should_pause
        self._emit = emit
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"kafka {settings.name}", daemon=True)
        self._positions = (
            FetchPositions(settings, stored, known_topics, emit)
            if disown is None
            else GroupPositions(settings, stored, disown, emit)
        )
        self._group_offsets = GroupOffsets(settings.name, stored)
        self._ends: dict[Partition, int] = {}
        self._reported: tuple[frozenset[TopicPartition], float] = frozenset(), 0.0
        """The partitions of the last report, and the time (monotonic seconds) of their assignment."""
        self._unanswered: frozenset[TopicPartition] = frozenset()
        self._end_requests: deque[tuple[float, Future[dict[Partition, int]]]] = deque()
        self._report_requested = threading.Event()
        self._next_report = 0.0
        self._connection_log = ConnectionLog()
        self.state = ConsumerState()
        self.paused = False
        """Whether fetching is paused because too many messages are in flight."""
        self.rebalances = 0
        """Number of times that the group has assigned partitions to this member."""
        self._missing: frozenset[str] = frozenset()
        """Topics that did not exist at the last report."""

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_s: float = 8.0) -> None:
        """Commits the group's offsets and leaves the group. Gives up after `timeout_s`."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def ends(self) -> "Future[dict[Partition, int]]":
        """Returns a future of the end offsets of this member's partitions. The brokers are queried after this call.

        While all brokers are unreachable, the future stays open. A partition without an answer delays the result by at most
        `ENDS_TIMEOUT_S`; the result then has the partition's last known end, if any. The same limit applies if the group
        assigns no partition to this member.
        """
        future: Future[dict[Partition, int]] = Future()
        self._end_requests.append((time.monotonic(), future))
        self._report_requested.set()
        return future

    # The other methods run on the consumer's thread.

    def _run(self) -> None:
        failures = 0
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                self._follow()
            except Exception as error:  # noqa: BLE001 - the topics are followed again after any error of the client
                if time.monotonic() - began > WORKS_AFTER_S:
                    failures = 0
                self._set_state(*state_after(error, self._connection_log.refusal()))
                expected = isinstance(error, KafkaError | OSError)
                if failures == 0 or not expected:
                    log.warning("kafka_unavailable", source=self._settings.name, error=self.state.detail)
            denied = self.state.state == "denied"
            self._stop.wait(DENIED_RETRY_DELAY_S if denied else RETRY_DELAYS_S[min(failures, len(RETRY_DELAYS_S) - 1)])
            failures += 1
        self._connection_log.close()
        self._set_state("stopped")
        while self._end_requests:
            self._end_requests.popleft()[1].cancel()

    def _follow(self) -> None:
        if not reachable(self._settings):
            self._unreachable()
            return
        consumer = open_consumer(consumer_config(self._settings, KafkaConsumer.DEFAULT_CONFIG), self._connection_log)
        self._set_state("joining")
        listener, offsets = RebalanceListener(consumer, self._positions), OffsetQueries(consumer)
        self._group_offsets.forget()
        try:
            consumer.subscribe(list(self._settings.topics), listener=listener)
            await_partitions(consumer, self._settings.topics, self._stop, PARTITIONS_TIMEOUT_S)
            while not self._stop.is_set():
                self._poll(consumer, listener, offsets)
        finally:
            with contextlib.suppress(KafkaError):
                if self._stop.is_set():
                    self._group_offsets.commit(consumer, wait=True)
            consumer.close(autocommit=False, timeout_ms=2000)

    def _poll(self, consumer: KafkaConsumer, listener: RebalanceListener, offsets: OffsetQueries) -> None:
        try:
            records = consumer.poll(timeout_ms=POLL_MS)
        except OffsetOutOfRangeError as error:
            self._positions.seek_existing(consumer, offsets, dict(error.args[0]))
            records = {}
        except UnknownBrokerIdError as error:
            if not self._positions.seek_after_lost_leader(consumer, listener, offsets, error):
                raise
            records = {}
        if self.rebalances != listener.rebalances:
            self.rebalances = listener.rebalances
            self._group_offsets.forget()
            self._next_report = 0.0
        self._positions.seek_assigned(consumer, listener, offsets)
        messages = self._positions.new_messages(records)
        if messages:
            self._emit(MessagesFetched(messages))
        self._pause_or_resume(consumer, listener, offsets)
        if self._report_requested.is_set() or time.monotonic() >= self._next_report:
            self._report(consumer, listener, offsets)

    def _pause_or_resume(self, consumer: KafkaConsumer, listener: RebalanceListener, offsets: OffsetQueries) -> None:
        """Pauses all partitions while too many messages are in flight, and single partitions while they have no leader.

        Polling continues meanwhile, because it keeps the consumer in its group.
        """
        assigned, paused = consumer.assignment(), consumer.paused()
        self.paused = self._should_pause()
        resting = assigned if self.paused else {tp for tp in assigned if offsets.leader(tp) is None}
        consumer.pause(*(resting - paused))
        consumer.resume(*((paused & assigned) - resting - listener.unplaced))

    def _report(self, consumer: KafkaConsumer, listener: RebalanceListener, offsets: OffsetQueries) -> None:
        self._next_report = time.monotonic() + REPORT_INTERVAL_S
        self._report_requested.clear()
        queried = time.monotonic()  # later requests may concern messages after the ends that are found now
        self._group_offsets.commit(consumer)
        assigned = consumer.assignment()
        if not listener.rebalances:
            if refused := self._connection_log.refusal():
                self._set_state("denied", f"the brokers refuse the login: {refused}")
            elif reachable(self._settings):
                self._set_state("joining", self._connection_log.failure())
            else:
                self._unreachable()
            return
        if assigned != self._reported[0]:
            self._reported = frozenset(assigned), queried
        found = offsets.ends(assigned)
        led = any(offsets.leader(tp) is not None for tp in assigned)
        if not assigned and not reachable(self._settings):
            # Without partitions and brokers, the client's `poll` returns at once: a busy loop. The error makes `_run`
            # open a new client.
            raise KafkaConnectionError(f"no answer from {', '.join(self._settings.brokers)}")
        if assigned and not found and (led or not reachable(self._settings)):
            self._next_report = time.monotonic() + REPORT_INTERVAL_S
            self._unreachable()
            return
        known = {(tp.topic, tp.partition): max(end, offsets.fetched_end(tp)) for tp, end in found.items()}
        self._ends = {
            partition: end
            for partition, end in (self._ends | known).items()
            if TopicPartition(*partition) in assigned  # the last known end of a partition without an answer is kept
        }
        fetched = {}
        for tp in assigned - listener.unplaced:
            offset = consumer.position(tp, timeout_ms=0)  # sends no request
            if offset is not None:
                fetched[(tp.topic, tp.partition)] = int(offset)
        self._emit(PartitionOffsets(fetched, self._ends))
        self._report_state(consumer, offsets, frozenset((assigned - found.keys()) | (assigned & listener.unplaced)))
        # Not complete without an assignment: the group assigns no partition to a member whose client does not know the topics'
        # partitions yet.
        complete = found.keys() == assigned and bool(assigned or self._missing)
        while self._end_requests and self._end_requests[0][0] < queried:
            # Joining the group may take longer than the timeout, which therefore begins at the request or the assignment,
            # whichever is later.
            if not complete and queried < max(self._end_requests[0][0], self._reported[1]) + ENDS_TIMEOUT_S:
                break
            _, request = self._end_requests.popleft()
            if request.set_running_or_notify_cancel():  # false if the caller has cancelled the request
                request.set_result(self._ends)

    def _report_state(
        self, consumer: KafkaConsumer, offsets: OffsetQueries, unanswered: frozenset[TopicPartition]
    ) -> None:
        """Sets the state, with the topics and partitions that are not followed. A partition is named after two reports without
        an answer."""
        missing = [topic for topic in self._settings.topics if not consumer._cluster.partitions_for_topic(topic)]
        if self._missing.difference(missing):
            # kafka-python 3.0 sometimes does not notice a new topic, so the consumer joins the group again.
            consumer._coordinator.request_rejoin()
        self._missing = frozenset(missing)
        lasting = {tp for tp in unanswered & self._unanswered if tp.topic not in missing}
        self._unanswered = unanswered
        leaderless = {tp for tp in lasting if offsets.leader(tp) is None}
        details = []
        if missing:
            details.append(f"the brokers have no topic {', '.join(missing)}; it is followed as soon as it exists")
        if leaderless:
            details.append(f"no leader: {partition_names(leaderless)}; followed once it has one")
        if silent := lasting - leaderless:
            details.append(f"no answer from the leader: {partition_names(silent)}; tried again")
        self._set_state("missing" if missing else "following", "; ".join(details))

    def _unreachable(self) -> None:
        self._set_state("unreachable", f"no answer from {', '.join(self._settings.brokers)}; trying again")

    def _set_state(self, state: str, detail: str = "") -> None:
        if self.state.state != state or (state == "following" and self.state.detail != detail):
            log.info("kafka_state", source=self._settings.name, state=state, **({"detail": detail} if detail else {}))
        self.state = ConsumerState(state, detail)


def partition_names(tps: Collection[TopicPartition]) -> str:
    named = [f"{tp.topic}/{tp.partition}" for tp in sorted(tps)]
    more = f" and {len(named) - MAX_NAMED_PARTITIONS} more" if len(named) > MAX_NAMED_PARTITIONS else ""
    return ", ".join(named[:MAX_NAMED_PARTITIONS]) + more


def state_after(error: Exception, refused: str) -> tuple[str, str]:
    """Returns the state after an error, and its detail. `refused` is the brokers' message about a recently refused
    login, or ""."""
    reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    reason = reason.replace(f"{type(error).__name__}: {type(error).__name__}", type(error).__name__)
    if isinstance(error, SaslAuthenticationFailedError | UnsupportedSaslMechanismError) or refused:
        return "denied", f"the brokers refuse the login: {refused or reason}"
    if isinstance(error, AuthorizationError):
        return "denied", f"the brokers refuse access: {reason}"
    if isinstance(error, KafkaConfigurationError):
        return "error", f"the brokers cannot be followed with these options: {reason}"
    if isinstance(error, KafkaTimeoutError | OSError):
        return "unreachable", reason
    return "error", reason
