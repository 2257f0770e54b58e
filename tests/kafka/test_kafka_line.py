"""A partition's position moves over a message only when that message and all before it are committed."""

import random
from collections import Counter

from consumers.kafka.line import Backlog, Line, positions, settle


def test_the_position_waits_for_the_messages_before():
    line = Line("kafka:t/0", 5, Backlog())
    marks = [line.add(offset) for offset in (5, 6, 9)]
    for mark in marks:
        mark.left = 1
    assert positions([marks[1]]) == {}
    settle([marks[1]])
    assert line.position == 5
    assert positions([marks[0]]) == {"kafka:t/0": {"offset": 7}}
    settle([marks[0]])
    assert line.position == 7
    assert positions([marks[2]]) == {"kafka:t/0": {"offset": 10}}


def test_a_message_of_several_documents_is_done_with_the_last():
    line = Line("kafka:t/0", 0, Backlog())
    mark = line.add(0)
    assert positions([]) == {}
    mark.left = 3
    settle([mark, mark])
    assert positions([mark]) == {"kafka:t/0": {"offset": 1}}


def test_a_message_that_is_not_read_yet_holds_the_position():
    line = Line("kafka:t/0", 0, Backlog())
    line.add(0)
    later = line.add(1)
    later.left = 1
    assert positions([later]) == {}
    settle([later])
    assert line.position == 0


def test_a_line_whose_topic_was_made_anew_stores_nothing():
    line = Line("kafka:t/0", 0, Backlog())
    mark = line.add(0)
    mark.left = 1
    line.retired = True
    assert positions([mark]) == {}


def test_in_whatever_order_messages_are_done_the_position_is_never_beyond_one_that_is_not():
    rng = random.Random(4)
    for _ in range(200):
        line = Line("k", 0, Backlog())
        marks = [line.add(offset) for offset in range(20)]
        parts = []
        for mark in marks:
            mark.left = rng.randint(1, 3)
            parts += [mark] * mark.left
        rng.shuffle(parts)
        while parts:
            size = rng.randint(1, 6)
            batch, parts = parts[:size], parts[size:]
            told = positions(batch)
            settle(batch)
            waiting = Counter(mark.offset for mark in parts)
            expected = min(waiting, default=20)
            assert line.position == expected
            assert told in ({}, {"k": {"offset": expected}})


def test_fetching_rests_when_too_much_is_under_way_until_half_is_done():
    backlog = Backlog(most=10, most_bytes=1000)
    for _ in range(11):
        backlog.arrive(1)
    assert backlog.full()
    for _ in range(5):
        backlog.leave(1)
    assert backlog.full()
    backlog.leave(1)
    assert not backlog.full()
    backlog.arrive(2000)
    assert backlog.full()
