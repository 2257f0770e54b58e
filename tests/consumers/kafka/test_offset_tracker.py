"""A partition's offset passes a message only after that message and all before it are committed."""

import random
from collections import Counter

from consumers.kafka.offset_tracker import InFlight, OffsetTracker


def test_offset_advances_only_after_all_earlier_messages():
    tracker = OffsetTracker("kafka:t/0", 5, InFlight())
    messages = [tracker.add(offset) for offset in (5, 6, 9)]
    for message in messages:
        message.parts_left = 1
    assert tracker.positions([messages[1]]) == {}
    messages[1].done()
    assert tracker.offset == 5
    assert tracker.positions([messages[0]]) == {"kafka:t/0": {"offset": 7}}
    messages[0].done()
    assert tracker.offset == 7
    assert tracker.positions([messages[2]]) == {"kafka:t/0": {"offset": 10}}


def test_a_message_of_several_documents_is_done_with_the_last():
    tracker = OffsetTracker("kafka:t/0", 0, InFlight())
    message = tracker.add(0)
    assert tracker.positions([]) == {}
    message.parts_left = 3
    message.done()
    message.done()
    assert tracker.positions([message]) == {"kafka:t/0": {"offset": 1}}


def test_a_message_that_is_not_read_yet_holds_the_offset_back():
    tracker = OffsetTracker("kafka:t/0", 0, InFlight())
    tracker.add(0)
    later = tracker.add(1)
    later.parts_left = 1
    assert tracker.positions([later]) == {}
    later.done()
    assert tracker.offset == 0


def test_partition_of_a_recreated_topic_stores_no_position():
    tracker = OffsetTracker("kafka:t/0", 0, InFlight())
    message = tracker.add(0)
    message.parts_left = 1
    tracker.retired = True
    assert tracker.positions([message]) == {}


def test_offset_stays_before_the_first_uncommitted_message_in_any_order():
    rng = random.Random(4)
    for _ in range(200):
        tracker = OffsetTracker("k", 0, InFlight())
        parts = []
        for offset in range(20):
            message = tracker.add(offset)
            message.parts_left = rng.randint(1, 3)
            parts += [message] * message.parts_left
        rng.shuffle(parts)
        while parts:
            size = rng.randint(1, 6)
            batch, parts = parts[:size], parts[size:]
            stored = tracker.positions(batch)
            for message in batch:
                message.done()
            waiting = Counter(message.offset for message in parts)
            expected = min(waiting, default=20)
            assert tracker.offset == expected
            assert stored in ({}, {"k": {"offset": expected}})


def test_fetching_pauses_when_too_much_is_in_flight_until_half_is_done():
    in_flight = InFlight(max_messages=10, max_bytes=1000)
    for _ in range(11):
        in_flight.add(1)
    assert in_flight.should_pause()
    for _ in range(5):
        in_flight.remove(1)
    assert in_flight.should_pause()
    in_flight.remove(1)
    assert not in_flight.should_pause()
    in_flight.add(2000)
    assert in_flight.should_pause()
