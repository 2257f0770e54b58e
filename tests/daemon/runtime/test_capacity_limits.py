"""From the configuration to the effective limits."""

import pytest

from consumers.kafka.offset_tracker import InFlight, OffsetTracker
from daemon.config import Config
from daemon.pipeline.backpressure import Capacity
from daemon.runtime.derived_settings import CONNECTIONS_MIN, RESERVED_FILES, api_settings, connections


@pytest.mark.parametrize(
    ("wanted", "sides", "files", "allowed"),
    [
        (512, 1, 65_536, 512),
        (512, 2, 1024, (1024 - RESERVED_FILES) // 2),
        (512, 2, 256, CONNECTIONS_MIN),
        (8, 2, 1024, 8),
    ],
)
def test_connection_limit_leaves_file_descriptors_for_other_files(
    wanted: int, sides: int, files: int, allowed: int
) -> None:
    assert connections(wanted, sides, files) == allowed


def test_documents_per_request_equals_inbox_documents() -> None:
    config = Config.model_validate({"daemon": {"inbox_documents": 7}})
    assert api_settings(config).limits.documents_per_request == 7


def test_capacity_limits_items_and_bytes_and_accepts_anything_if_empty() -> None:
    room = Capacity(3, 100)
    assert room.fits(50, 5_000)
    room.take(2, 90)
    assert room.fits(1, 10)
    assert not room.fits(2, 1)
    assert not room.fits(1, 11)
    before = room.free
    room.take(1, 0)
    assert (before, room.free) == (True, False)
    room.release(3, 90)
    assert (room.items, room.bytes) == (0, 0)


def test_kafka_intake_pauses_at_either_limit_until_half_is_done() -> None:
    in_flight = InFlight(4, 1_000)
    tracker = OffsetTracker("kafka:a/0", 0, in_flight)
    messages = []
    for offset in range(5):
        in_flight.add(10)
        messages.append(tracker.add(offset, 10))
        messages[-1].parts_left = 1
    assert (in_flight.counts, in_flight.limits) == ((5, 50), (4, 1_000))
    assert in_flight.should_pause()
    messages[0].done()
    messages[1].done()
    assert in_flight.should_pause()
    messages[2].done()
    assert not in_flight.should_pause()
    in_flight.add(2_000)
    assert in_flight.should_pause()
