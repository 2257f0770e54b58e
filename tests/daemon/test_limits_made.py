"""From the configuration to the limits that hold."""

import pytest

from consumers.kafka.line import Backlog, Line
from daemon.config import Config
from daemon.limits import KEPT_FILES, LEAST_CONNECTIONS, api_settings, connections
from daemon.pipeline.room import Room


@pytest.mark.parametrize(
    ("wanted", "sides", "files", "given"),
    [
        (512, 1, 65_536, 512),
        (512, 2, 1024, (1024 - KEPT_FILES) // 2),
        (512, 2, 256, LEAST_CONNECTIONS),
        (8, 2, 1024, 8),
    ],
)
def test_connections_leave_room_for_other_files(wanted: int, sides: int, files: int, given: int) -> None:
    assert connections(wanted, sides, files) == given


def test_one_request_may_hold_as_many_lines_as_may_wait_to_be_indexed() -> None:
    config = Config.model_validate({"daemon": {"inbox_documents": 7}})
    assert api_settings(config).limits.lines == 7


def test_a_room_counts_items_and_bytes_and_takes_anything_when_it_is_empty() -> None:
    room = Room(3, 100)
    assert room.holds(50, 5_000)
    room.take(2, 90)
    assert room.holds(1, 10)
    assert not room.holds(2, 1)
    assert not room.holds(1, 11)
    assert room.free
    room.take(1, 0)
    assert not room.free
    room.give(3, 90)
    assert (room.items, room.bytes) == (0, 0)


def test_what_kafka_brings_rests_at_either_limit_until_half_is_done() -> None:
    backlog = Backlog(4, 1_000)
    line = Line("kafka:a/0", 0, backlog)
    marks = []
    for offset in range(5):
        backlog.arrive(10)
        marks.append(line.add(offset, 10))
    assert (backlog.held, backlog.most) == ((5, 50), (4, 1_000))
    assert backlog.full()
    backlog.leave(10)
    backlog.leave(10)
    assert backlog.full()
    backlog.leave(10)
    assert not backlog.full()
    backlog.arrive(2_000)
    assert backlog.full()
