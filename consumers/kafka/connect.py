"""Connections to the brokers: whether a broker is reachable, why connections fail, and which topics exist."""

import contextlib
import logging
import socket
import time
from collections.abc import Mapping, Sequence
from threading import Event, current_thread
from typing import Any

from kafka import KafkaConsumer
from kafka.errors import AuthorizationError, KafkaError, SaslAuthenticationFailedError, UnsupportedSaslMechanismError

from consumers.kafka.settings import KafkaSettings, reader_config

_CONNECT_TIMEOUT_S = 1.0
_DEFAULT_PORT = 9092
_REMEMBERED_S = 10.0

_LOGIN_ERRORS = (SaslAuthenticationFailedError, UnsupportedSaslMechanismError, AuthorizationError)

# The client logs several lines a second while a broker is unreachable. hippod logs one line, with the last message as the
# reason.
_connections = logging.getLogger("kafka.net")
_connections.propagate = False
_connections.setLevel(logging.WARNING)
_connections.addHandler(logging.NullHandler())  # without a handler, Python would write the lines to stderr


def reachable(settings: KafkaSettings) -> bool:
    """Whether one of the brokers accepts a connection. True if a proxy is configured, because only the client can check it."""
    if settings.options.get("proxy_url") or settings.options.get("socks5_proxy"):
        return True
    return any(_accepts_connection(*_host_and_port(broker)) for broker in settings.brokers)


class ConnectionLog(logging.Handler):
    """Log handler that keeps the last connection failure and the last refused login of one consumer.

    The client raises no error while it searches for its brokers; it only logs. A log line does not name its client, but each
    client logs on its own thread.
    """

    def __init__(self) -> None:
        super().__init__()
        self._consumer: KafkaConsumer | None = None
        self._failure = ("", 0.0)
        self._refusal = ("", 0.0)

    def listen(self, consumer: KafkaConsumer) -> None:
        """Starts to listen to this consumer, which may still be under construction."""
        self._consumer = consumer
        if self not in _connections.handlers:
            _connections.addHandler(self)

    def close(self) -> None:
        _connections.removeHandler(self)
        super().close()

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(getattr(self._consumer, "_net", None), "_io_thread", None) is not current_thread():
            return
        errors = [each for each in record.args or () if isinstance(each, Exception)]
        if errors:
            self._failure = (record.getMessage(), time.monotonic())
        if any(isinstance(error, _LOGIN_ERRORS) for error in errors):
            self._refusal = (str(errors[-1]), time.monotonic())

    def failure(self) -> str:
        """Returns the client's message about a connection failure in the last ten seconds, or ""."""
        return _if_recent(self._failure)

    def refusal(self) -> str:
        """Returns the message about a refused login in the last ten seconds, or ""."""
        return _if_recent(self._refusal)


def open_consumer(config: Mapping[str, Any], connection_log: ConnectionLog | None = None) -> KafkaConsumer:
    """Opens a consumer; `connection_log` listens to it. If the construction fails, ends the thread that kafka-python leaves
    running."""
    consumer: Any = KafkaConsumer.__new__(KafkaConsumer)
    if connection_log is not None:
        connection_log.listen(consumer)
    try:
        consumer.__init__(**config)
    except BaseException:
        client = getattr(consumer, "_client", None)
        if client is not None:
            with contextlib.suppress(KafkaError, OSError):
                client.close()
        raise
    return consumer


def _if_recent(logged: tuple[str, float]) -> str:
    return logged[0] if time.monotonic() - logged[1] < _REMEMBERED_S else ""


def _host_and_port(broker: str) -> tuple[str, int]:
    address = broker.rpartition("://")[2]
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit():
        return address.strip("[]"), _DEFAULT_PORT
    return host.strip("[]"), int(port)


def _accepts_connection(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), _CONNECT_TIMEOUT_S):
            return True
    except OSError:
        return False


def missing_topics(settings: KafkaSettings, topics: Sequence[str]) -> list[str]:
    """Returns the topics among `topics` that do not exist. Raises OSError if the brokers do not answer."""
    try:
        consumer = open_consumer(reader_config(settings, KafkaConsumer.DEFAULT_CONFIG))
        try:
            known = consumer.topics()
        finally:
            consumer.close(autocommit=False, timeout_ms=2000)
    except KafkaError as error:
        raise OSError(f"{type(error).__name__}: {error}") from error
    return [topic for topic in topics if topic not in known]


def await_partitions(consumer: KafkaConsumer, topics: Sequence[str], stop: Event, timeout_s: float) -> None:
    """Waits until `consumer` knows the partitions of its subscribed `topics`, `stop` is set, or `timeout_s` has passed.

    kafka-python 3.0 forgets the subscribed topics if `subscribe` is called while its first metadata request is pending. The
    member would then join its group without knowing the topics, assign no partition, and force the whole group to rejoin.
    """
    deadline = time.monotonic() + timeout_s
    while any(not consumer._cluster.partitions_for_topic(topic) for topic in topics) and time.monotonic() < deadline:
        consumer._cluster.request_update()
        if stop.wait(0.05):
            return
