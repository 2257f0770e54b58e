"""The consumer follows its topics again after a failure, and logs the first failure after it has worked."""

import time

import pytest
from kafka.errors import KafkaError
from structlog.testing import capture_logs

from consumers.kafka import consumer
from consumers.kafka.consumer import TopicConsumer
from consumers.kafka.settings import KafkaSettings
from tests.e2e.real_hippod import until


class FailingConsumer(TopicConsumer):
    """Works for the given seconds before each failure."""

    def __init__(self, *works_s: float) -> None:
        self.works_s = list(works_s)
        self.pauses_s: list[float] = []
        self._failed_at = 0.0
        settings = KafkaSettings(("127.0.0.1:1",), ("news",), "group")
        super().__init__(settings, lambda partition: None, (), lambda: False, lambda event: None)

    def _follow(self) -> None:
        self.pauses_s.append(time.monotonic() - self._failed_at)
        self._stop.wait(self.works_s.pop(0) if self.works_s else 60)
        self._failed_at = time.monotonic()
        raise KafkaError("the connection is lost")


def test_pauses_follow_the_list_of_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer, "RETRY_DELAYS_S", (0.0, 2.0))
    failing = FailingConsumer(0, 0)
    failing.start()
    until(lambda: len(failing.pauses_s) == 3, "the consumer has failed twice")
    failing.stop(60)
    assert failing.pauses_s[1] < 2 <= failing.pauses_s[2]


def test_failure_is_logged_again_after_the_consumer_has_worked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer, "RETRY_DELAYS_S", (0.0,))
    monkeypatch.setattr(consumer, "WORKS_AFTER_S", 0.5)
    failing = FailingConsumer(0, 0, 0.6)
    with capture_logs() as logged:
        failing.start()
        until(lambda: len(failing.pauses_s) == 4, "the consumer has failed three times")
        failing.stop(60)
    assert [event["event"] for event in logged].count("kafka_unavailable") == 2
