"""Decodes messages of a topic of records. A child process checks the bytes before they are decoded here."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from consumers.failure_codes import FailureCode
from consumers.kafka.decode import unreadable_document
from consumers.kafka.message import KafkaMessage
from consumers.records.messages import Part, part_of, position_of, uri_of
from consumers.records.reader import from_message
from consumers.records.record import Record, RecordError, SourcePosition
from consumers.types import ParsedDocument
from daemon.workers.pool import WorkerPool


@dataclass(frozen=True, slots=True)
class RecordPart:
    """A part of a record. Only all parts together can be decoded."""

    uri: str
    part: Part
    position: SourcePosition | None


@dataclass(frozen=True, slots=True)
class PartRemoved:
    """A null for one part of a record; it does not remove the document."""


ReadMessage = Record | RecordPart | PartRemoved | ParsedDocument
"""A decoded message; a `ParsedDocument` contains the error of an unreadable one."""


class RecordReader:
    def __init__(self, pool: WorkerPool, source: str = "") -> None:
        """`source` is the source whose share of the workers is used."""
        self._pool = pool
        self._source = source

    async def read(self, messages: Sequence[KafkaMessage]) -> list[ReadMessage]:
        """Decodes each message, in order. If a message crashes its worker, the other messages are not affected."""
        found = [_outside(message) for message in messages]
        whole = [number for number, each in enumerate(found) if each is None]
        values = [messages[number].value or b"" for number in whole]
        for number, each in zip(whole, await self._values(values), strict=True):
            found[number] = self._checked(messages[number], each)
        return [each for each in found if each is not None]

    async def read_whole(self, message: KafkaMessage, value: bytes) -> Record | ParsedDocument:
        """Decodes a record that arrived in parts. `message` is the last part, `value` all parts joined."""
        [found] = await self._values([value])
        return self._checked(message, found)

    async def _values(self, values: Sequence[bytes]) -> list[Record | RecordError]:
        if not values:
            return []
        verdicts = await self._pool.check_records(values, self._source)
        good = [value for value, verdict in zip(values, verdicts, strict=True) if verdict is None]
        records = iter(await asyncio.to_thread(lambda: [from_message(value) for value in good]))
        return [next(records) if verdict is None else RecordError(verdict) for verdict in verdicts]

    def _checked(self, message: KafkaMessage, found: Record | RecordError) -> Record | ParsedDocument:
        if isinstance(found, Record):
            key = (message.key or b"").decode("utf-8", "replace")
            if found.uri == key or key.startswith(f"{found.uri}\x1f"):
                return found
            found = RecordError(f"its key is {key!r}, and its record that of {found.uri}")
        return unreadable_document(message, str(found), FailureCode.DAMAGED)


def _outside(message: KafkaMessage) -> ReadMessage | None:
    """Decodes a message without its value, if key and headers suffice; None if the value must be decoded."""
    try:
        uri = uri_of(message.key)
        position, part = position_of(message.headers), part_of(message.headers)
    except RecordError as error:
        return unreadable_document(message, str(error), FailureCode.DAMAGED)
    if message.value is None and (message.key or b"").decode() != uri:
        return PartRemoved()
    if message.value is None:
        return Record(ParsedDocument(uri, deleted=True), (), position)
    return None if part is None else RecordPart(uri, part, position)
