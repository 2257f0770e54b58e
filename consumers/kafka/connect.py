"""Connections to the brokers: whether any broker can be reached, and why the client's connections fail."""

import contextlib
import logging
import socket
import time
from collections.abc import Mapping
from threading import current_thread
from typing import Any

from kafka import KafkaConsumer
from kafka.errors import AuthorizationError, KafkaError, SaslAuthenticationFailedError, UnsupportedSaslMechanismError

from consumers.kafka.settings import KafkaSettings

_CONNECT_TIMEOUT_S = 1.0
_DEFAULT_PORT = 9092
_REMEMBERED_S = 10.0


def reachable(settings: KafkaSettings) -> bool:
    """Whether one of the brokers accepts a connection. True behind a proxy, where only the client itself can find out."""
    if settings.options.get("proxy_url") or settings.options.get("socks5_proxy"):
        return True
    return any(_accepts_connection(*_host_and_port(broker)) for broker in settings.brokers)


class ConnectionLog(logging.Handler):
    """Keeps the last connection failure that one consumer logged, and the last refused login.

    While the client looks for its brokers, it raises nothing: its log is the only source. A log line does not say which
    client wrote it, but each client connects and logs in a thread of its own.
    """

    def __init__(self) -> None:
        super().__init__()
        self._consumer: Any = None
        self._failure = ("", 0.0)
        self._refusal = ("", 0.0)

    def listen(self, consumer: Any) -> None:
        """Listens to this consumer from now on; it may still be under construction."""
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
        """Why a connection failed within the last ten seconds, in the client's words; "" where none failed."""
        return _if_recent(self._failure)

    def refusal(self) -> str:
        """Why a login was refused within the last ten seconds; "" where none was refused."""
        return _if_recent(self._refusal)


_LOGIN_ERRORS = (SaslAuthenticationFailedError, UnsupportedSaslMechanismError, AuthorizationError)

# The client logs several lines a second while a broker is away. hippod logs it once, with the last of them as the reason.
_connections = logging.getLogger("kafka.net")
_connections.propagate = False
_connections.setLevel(logging.WARNING)
_connections.addHandler(logging.NullHandler())  # without any, Python would write the lines to stderr


def open_consumer(config: Mapping[str, Any], connection_log: ConnectionLog | None = None) -> Any:
    """A consumer that `connection_log` listens to. Where kafka-python fails, this ends the thread that it leaves behind."""
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
