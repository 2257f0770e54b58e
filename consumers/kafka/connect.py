"""Whether any broker takes a connection: quicker and plainer than what a client says while it tries."""

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

_PATIENCE_S = 1.0
_PORT = 9092
_RECENT_S = 10.0


def reachable(settings: KafkaSettings) -> bool:
    """True as soon as one of the brokers answers; behind a proxy only the client itself can say, so it is let try."""
    if settings.options.get("proxy_url") or settings.options.get("socks5_proxy"):
        return True
    return any(_answers(*_split(broker)) for broker in settings.brokers)


class ConnectionLog(logging.Handler):
    """Keeps the last failure that one consumer's connections told of, and the last refusal among them.

    While it looks for its brokers the client tries on and raises nothing: what it logs is all that there is. Its lines do not
    say which client they are of, but each client connects in a thread of its own, which also logs them.
    """

    def __init__(self) -> None:
        super().__init__()
        self._consumer: Any = None
        self._failure = ("", 0.0)
        self._refusal = ("", 0.0)

    def listen(self, consumer: Any) -> None:
        """From now on to this one, which may still be in the making."""
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
        if any(isinstance(error, _REFUSALS) for error in errors):
            self._refusal = (str(errors[-1]), time.monotonic())

    def failure(self) -> str:
        """Why a connection failed within the last seconds, in the client's words; "" where none did."""
        return _recent(self._failure)

    def refusal(self) -> str:
        """Why a login was refused within the last seconds; "" where none was."""
        return _recent(self._refusal)


_REFUSALS = (SaslAuthenticationFailedError, UnsupportedSaslMechanismError, AuthorizationError)

# A broker that is away costs several lines a second there. Ours say it once, with these as the reason.
_connections = logging.getLogger("kafka.net")
_connections.propagate = False
_connections.setLevel(logging.WARNING)
_connections.addHandler(logging.NullHandler())  # without any, Python would write the lines to stderr


def open_consumer(config: Mapping[str, Any], connection_log: ConnectionLog | None = None) -> Any:
    """A consumer whose connections `connection_log` listens to. Ends the thread that kafka-python leaves where it fails."""
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


def _recent(said: tuple[str, float]) -> str:
    return said[0] if time.monotonic() - said[1] < _RECENT_S else ""


def _split(broker: str) -> tuple[str, int]:
    address = broker.rpartition("://")[2]
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit():
        return address.strip("[]"), _PORT
    return host.strip("[]"), int(port)


def _answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), _PATIENCE_S):
            return True
    except OSError:
        return False
