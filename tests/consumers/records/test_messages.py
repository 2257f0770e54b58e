"""Records as Kafka messages: split if too large, and joined when all parts are present, in any order."""

from typing import TypeVar

import numpy as np
import pytest

from consumers.records.messages import (
    MAX_HELD_BYTES,
    ORPHAN_WAIT_S,
    WAIT_S,
    Assembled,
    Part,
    PartAssembler,
    RecordMessage,
    part_of,
    position_of,
    to_messages,
    uri_of,
)
from consumers.records.reader import from_message
from consumers.records.record import Record, RecordError, RecordVectors, SourcePosition
from consumers.types import ParsedDocument, Passage

Token = TypeVar("Token")


def record(uri="kafka://t/1", seed=0, offset=5):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(1, 4000)).astype(np.float32)
    vectors /= np.linalg.norm(vectors)
    document = ParsedDocument(uri, "T", (Passage("T", f"text {seed}"),))
    return Record(document, (None,), SourcePosition("kafka:in/0", offset, 7), RecordVectors("e", 4000, vectors))


def test_a_record_that_fits_is_one_message():
    [message] = to_messages(record(), 1_000_000)
    assert message.key == b"kafka://t/1" and part_of(message.headers) is None
    assert position_of(message.headers) == SourcePosition("kafka:in/0", 5, 7)


def test_removal_is_a_null_message_with_its_source_position():
    [message] = to_messages(Record(ParsedDocument("u", deleted=True), (), SourcePosition("s", 1)), 1_000_000)
    assert message.value is None and position_of(message.headers) == SourcePosition("s", 1)


def test_parts_in_any_order_or_repeated_give_the_record():
    messages = to_messages(record(), 4500)
    assert len(messages) > 2 and len({message.key for message in messages}) == len(messages)
    assert all(len(message.value or b"") + len(message.key) < 4500 for message in messages)
    for order in (messages, messages[::-1], [messages[0], *messages]):
        by_place: PartAssembler[int] = PartAssembler()
        found = [add(by_place, message, place) for place, message in enumerate(order)]
        assert [each.value for each in found[:-1]] == [None] * (len(order) - 1)
        assert document_of(found[-1]) == record().document
        assert found[-1].tokens == tuple(range(len(order))), "every message is acknowledged with the record"
        assert len(by_place) == by_place.held_bytes == 0


def add(parts: PartAssembler[Token], message: RecordMessage, token: Token) -> Assembled[Token]:
    part = part_of(message.headers)
    assert part is not None and message.value is not None
    return parts.add(uri_of(message.key), part, position_of(message.headers), message.value, token)


def document_of(found: Assembled[Token]) -> ParsedDocument:
    """Returns the document of the record that is now whole."""
    assert found.value is not None
    record = from_message(found.value)
    assert isinstance(record, Record)
    return record.document


def test_parts_of_another_version_give_way_to_the_newer_one():
    old, new = to_messages(record(seed=1, offset=5), 4500), to_messages(record(seed=2, offset=6), 4500)
    parts: PartAssembler[str | int] = PartAssembler()
    assert add(parts, old[0], "old").released == ()
    assert add(parts, new[0], "new").released == ("old",)
    assert add(parts, old[1], "late").released == ("late",), "an older part does not spoil a newer record"
    for number, message in enumerate(new[1:]):
        found = add(parts, message, number)
    assert found.value is not None and found.tokens[0] == "new"


def test_complete_record_discards_only_older_parts():
    parts: PartAssembler[str] = PartAssembler()
    add(parts, to_messages(record(offset=5), 4500)[0], "part")
    assert parts.supersede("kafka://t/1", SourcePosition("kafka:in/0", 4)) == ()
    assert parts.supersede("another", None) == ()
    assert parts.supersede("kafka://t/1", SourcePosition("kafka:in/0", 5)) == ("part",)


def test_parts_of_two_copies_of_one_position_may_be_mixed():
    one, two = to_messages(record(seed=1), 10_500), to_messages(record(seed=2), 10_500)
    assert len(one) == len(two) == 2
    parts: PartAssembler[str] = PartAssembler()
    for message, token in ((one[0], "A0"), (two[0], "B0")):
        found = add(parts, message, token)
        assert found.value is None and found.released == ()
    found = add(parts, one[1], "A1")
    assert document_of(found) == record(seed=1).document
    assert found.tokens == ("A0", "A1") and found.released == ()
    assert parts.supersede("kafka://t/1", SourcePosition("kafka:in/0", 5)) == ("B0",), "no copy is waited for"
    found = add(parts, two[1], "B1")
    assert document_of(found) == record(seed=2).document, "the one that comes last counts"
    assert found.tokens == ("B1",) and len(parts) == parts.held_bytes == 0


def test_a_newer_part_or_record_voids_every_older_copy():
    one, two, new = (to_messages(record(seed=n, offset=5 + n // 3), 9500) for n in (1, 2, 3))
    parts: PartAssembler[str] = PartAssembler()
    add(parts, one[0], "A0")
    add(parts, two[0], "B0")
    assert add(parts, new[0], "C0").released == ("A0", "B0") and len(parts) == 1
    assert parts.supersede("kafka://t/1", SourcePosition("kafka:in/0", 7)) == ("C0",)
    assert len(parts) == parts.held_bytes == 0


def test_copies_without_a_position_may_be_mixed_too_until_a_whole_record_comes():
    parts: PartAssembler[int] = PartAssembler()
    assert parts.add("a", Part(0, 2, "d"), None, b"1", 1).released == ()
    assert parts.add("a", Part(0, 2, "e"), None, b"1", 2).released == ()
    assert parts.supersede("a", None) == (1, 2) and parts.held_bytes == 0


def test_incomplete_parts_expire():
    now = [0.0]
    parts: PartAssembler[str | int] = PartAssembler(lambda: now[0])
    add(parts, to_messages(record(), 4500)[0], "part")
    now[0] = WAIT_S - 1
    assert parts.expired(lambda _: True) == ()
    now[0] = WAIT_S + 1
    assert parts.expired(lambda _: True) == ("part",) and parts.held_bytes == 0


def test_parts_without_the_first_expire_and_complete_if_it_arrives_later():
    now = [0.0]
    parts: PartAssembler[str | int] = PartAssembler(lambda: now[0])
    first, *others = to_messages(record(), 4500)
    for number, message in enumerate(others):
        assert add(parts, message, number).value is None
    now[0] = ORPHAN_WAIT_S - 1
    assert parts.expired(lambda _: True) == ()
    now[0] = ORPHAN_WAIT_S + 1
    assert parts.expired(lambda token: token == 0) == (), "the first may still be among what was not read"
    assert parts.expired(lambda _: True) == tuple(range(len(others)))
    assert parts.expired(lambda _: True) == ()
    found = add(parts, first, "first")
    assert document_of(found) == record().document and found.tokens == ("first",)


def test_buffered_parts_are_limited_in_bytes():
    parts: PartAssembler[int] = PartAssembler()
    chunk = b"x" * (MAX_HELD_BYTES // 2 + 1)
    assert parts.add("a", Part(0, 2, "d"), None, chunk, 1).released == ()
    assert parts.add("b", Part(0, 2, "d"), None, chunk, 2).released == (1,)


def test_parts_with_a_wrong_digest_are_reported_as_broken():
    parts: PartAssembler[int] = PartAssembler()
    parts.add("a", Part(0, 2, "wrong"), None, b"1", 1)
    found = parts.add("a", Part(1, 2, "wrong"), None, b"2", 2)
    assert found.broken and found.value is None and found.tokens == (1, 2)


@pytest.mark.parametrize(
    "headers",
    [
        (("hippod-part", b"{"),),
        (("hippod-part", b'{"number": 2, "count": 2, "digest": "d"}'),),
        (("hippod-part", b"[]"),),
    ],
)
def test_invalid_part_headers_are_refused(headers):
    with pytest.raises(RecordError):
        part_of(headers)


def test_message_without_a_valid_key_is_refused():
    for key in (None, b"", b"\xff"):
        with pytest.raises(RecordError):
            uri_of(key)
