"""Whether any broker takes a connection: quicker and plainer than what a client says while it tries."""

import contextlib
import logging
import socket
import time
from collections.abc import Mapping
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


def opened(config: Mapping[str, Any]) -> Any:
    """A consumer. Where making one fails, kafka-python leaves the thread behind that it had started; here it is ended."""
    consumer: Any = KafkaConsumer.__new__(KafkaConsumer)
    try:
        consumer.__init__(**config)
    except BaseException:
        client = getattr(consumer, "_client", None)
        if client is not None:
            with contextlib.suppress(KafkaError, OSError):
                client.close()
        raise
    return consumer


class _Heard(logging.Handler):
    """Keeps the last failure that the client told of its connections, and the last refusal among them.

    While it looks for its brokers the client tries on and raises nothing: what it logs is all that there is.
    """

    failure = ("", 0.0)
    refusal = ("", 0.0)

    def emit(self, record: logging.LogRecord) -> None:
        errors = [each for each in record.args or () if isinstance(each, Exception)]
        if errors:
            _Heard.failure = (record.getMessage(), time.monotonic())
        if any(isinstance(error, _REFUSALS) for error in errors):
            _Heard.refusal = (str(errors[-1]), time.monotonic())


_REFUSALS = (SaslAuthenticationFailedError, UnsupportedSaslMechanismError, AuthorizationError)

# A broker that is away costs several lines a second there. Ours say it once, with these as the reason.
_connections = logging.getLogger("kafka.net")
_connections.propagate = False
_connections.setLevel(logging.WARNING)
_connections.addHandler(_Heard())


def failure() -> str:
    """Why a connection failed within the last seconds, in the client's words; "" where none did."""
    said, at = _Heard.failure
    return said if time.monotonic() - at < _RECENT_S else ""


def refusal() -> str:
    """Why a login was refused within the last seconds; "" where none was."""
    said, at = _Heard.refusal
    return said if time.monotonic() - at < _RECENT_S else ""


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
