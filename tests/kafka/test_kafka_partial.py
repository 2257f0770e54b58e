"""Part of it is away: one of two clusters. The rest is followed, and told apart."""

import contextlib
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("confluent_kafka")

from consumers.kafka.events import Event
from consumers.kafka.settings import KafkaSettings
from consumers.kafka.source import KafkaSource
from tests.e2e.running import until
from tests.kafka.refusing import Refusing

LOGIN = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_plain_username": "ada",
    "sasl_plain_password": "not-the-word",
}


class Followed(KafkaSource):
    """A source whose events are kept; its store holds nothing."""

    def __init__(self, settings: KafkaSettings) -> None:
        self.events: list[Event] = []
        super().__init__(settings, lambda partition: None, (), lambda: False, self.events.append)


@contextlib.contextmanager
def followed(brokers: str, *topics: str, start: Any = "earliest", **options: Any) -> Iterator[Followed]:
    settings = KafkaSettings(tuple(brokers.split(",")), topics, f"group-{topics[0]}", start=start, options=options)
    source = Followed(settings)
    source.start()
    try:
        yield source
    finally:
        source.stop()


def test_a_login_that_one_cluster_refuses_is_not_said_of_another():
    with Refusing() as strict, socket.create_server(("127.0.0.1", 0)) as silent:
        mute = f"127.0.0.1:{silent.getsockname()[1]}"
        version = {"api_version": (2, 3)}
        with followed(strict.brokers, "one", **version, **LOGIN) as refused, followed(mute, "two", **version) as other:
            until(lambda: refused.state.state == "denied", "the login is refused")
            before, told = other.state, set()
            until(lambda: told.add(other.state.state) or other.state is not before, "the other has looked again")
            since = time.monotonic()
            until(lambda: told.add(other.state.state) or time.monotonic() > since + 3, "and some times more")
            assert "denied" not in told
            assert "wrong password" not in other.state.detail
            assert "wrong password" in refused.state.detail
