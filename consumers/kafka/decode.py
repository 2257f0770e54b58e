"""What a Kafka message says: documents to index, documents to remove, or why it cannot be read."""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

from consumers.failures import FailureCode
from consumers.json_documents import parse_json, read_json_document
from consumers.kafka.message import KafkaMessage
from consumers.splitting import SplitSettings, split_text
from consumers.types import ParsedDocument

MessageFormat = Literal["json", "text"]
_MAX_ID_CHARS = 1024
_MAX_REASONS = 3
"""Faults of one message that its error names; a list of thousands of wrong documents needs no thousand sentences."""


NAMELESS_REMOVAL = "neither value nor key: nothing says which document to remove"


def read_message(message: KafkaMessage, message_format: MessageFormat, settings: SplitSettings) -> list[ParsedDocument]:
    """At least one document; each has the message's origin under `kafka` in its metadata, for people and scopes to see.

    A message with a fault gives one document with `error`, under the message's own URI and last, whatever id it names: what
    stands under that id stays until a message that can be read replaces it. Documents beside the fault are given too.
    """
    origin = _origin(message)
    good: list[ParsedDocument] = []
    faults: list[str] = []
    code = FailureCode.OTHER
    for document in _documents(message, message_format, settings):
        if document.error is not None and not document.skipped:
            faults.append(document.error)
            code = document.code or code
            continue
        metadata = {**document.metadata, "kafka": origin}
        if metadata.get("published_at") is None and message.timestamp >= 0:
            metadata["published_at"] = published_at(message.timestamp)
        good.append(replace(document, metadata=metadata, modified_at=_seconds(message)))
    if faults:
        more = f"; and {len(faults) - _MAX_REASONS} more" if len(faults) > _MAX_REASONS else ""
        good.append(unreadable(message, "; ".join(faults[:_MAX_REASONS]) + more, code))
    return good


def unreadable(message: KafkaMessage, reason: str, code: FailureCode) -> ParsedDocument:
    """The document that stands for a message that cannot be read, under a URI of the message's own."""
    where = f"partition {message.partition}, offset {message.offset} of {message.topic}"
    about = {"kafka": _origin(message)}
    error = f"{where}: {reason}"
    return ParsedDocument(message_uri(message), modified_at=_seconds(message), metadata=about, error=error, code=code)


def is_newer(metadata: Mapping[str, Any], message: KafkaMessage) -> bool:
    """Whether a document whose metadata `read_message` wrote came with a later message of the same partition."""
    origin = metadata.get("kafka", {})
    same = (origin.get("topic"), origin.get("partition")) == (message.topic, message.partition)
    return same and bool(origin.get("offset", -1) > message.offset)


def document_uri(topic: str, identity: str) -> str:
    """The URI of a document in the spelling of the other JSON documents; `#` and `?` would end its path."""
    return _closed(read_json_document({"id": identity}, _base(topic), None, SplitSettings()).uri, topic)


def message_uri(message: KafkaMessage) -> str:
    """The URI of a message that cannot be read; no document's URI has a fragment."""
    return f"kafka://{message.topic}#{message.partition}-{message.offset}"


def published_at(timestamp_ms: int) -> str:
    """RFC 3339 in UTC; the nearest year that can be written where a producer's clock is beyond all years."""
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        moment = datetime.max.replace(tzinfo=UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _documents(
    message: KafkaMessage, message_format: MessageFormat, settings: SplitSettings
) -> Iterator[ParsedDocument]:
    base = _base(message.topic)
    key, wrong_key = _key(message)
    if message.value is None:
        if key is None:
            yield ParsedDocument(base, error=wrong_key or NAMELESS_REMOVAL, code=FailureCode.JSON)
        else:
            yield _named({"id": key, "deleted": True}, message, None, settings)
        return
    if message_format == "text":
        yield (
            ParsedDocument(base, error=wrong_key, code=FailureCode.JSON) if wrong_key else _text(message, key, settings)
        )
        return
    try:
        value = parse_json(message.value)
    except ValueError as error:
        yield ParsedDocument(base, error=str(error), code=FailureCode.JSON)
        return
    if not isinstance(value, list):
        yield _named(value, message, key, settings, wrong_key)
        return
    if not value:
        yield ParsedDocument(base, error="an empty list: there is no document in it", code=FailureCode.NO_TEXT)
    for place, item in enumerate(value):
        yield _named(item, message, None if key is None else f"{key}/{place}", settings, wrong_key, f"/{place}")


def _named(
    value: Any,
    message: KafkaMessage,
    key: str | None,
    settings: SplitSettings,
    wrong_key: str | None = None,
    place: str = "",
) -> ParsedDocument:
    """The document of one JSON value: its id, else the key, else where the message stands."""
    if isinstance(value, dict) and value.get("id") is None:
        if wrong_key is not None:
            return ParsedDocument("", error=f'no "id", and {wrong_key}', code=FailureCode.JSON)
        if key is None and value.get("deleted") is True:
            return ParsedDocument(
                "", error='"deleted" without "id" or key: nothing says which document to remove', code=FailureCode.JSON
            )
    default = key or f"{message.partition}-{message.offset}{place}"
    document = read_json_document(value, _base(message.topic), default, settings)
    return replace(document, uri=_closed(document.uri, message.topic))


def _text(message: KafkaMessage, key: str | None, settings: SplitSettings) -> ParsedDocument:
    identity = key or f"{message.partition}-{message.offset}"
    uri = document_uri(message.topic, identity)
    try:
        text = (message.value or b"").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return ParsedDocument(uri, error=f"not UTF-8 at byte {error.start:,}", code=FailureCode.ENCODING)
    passages = split_text(text, "", settings)
    if not passages:
        return ParsedDocument(
            uri, identity, error="blank: there is nothing to index", skipped=True, code=FailureCode.NO_TEXT
        )
    return ParsedDocument(uri, identity, tuple(passages))


def _key(message: KafkaMessage) -> tuple[str | None, str | None]:
    """The key as text, and what is wrong with it as an id."""
    if not message.key:
        return None, None
    try:
        key = message.key.decode("utf-8")
    except UnicodeDecodeError:
        return None, "the key is not UTF-8, so it is no id"
    if not key.strip() or len(key) > _MAX_ID_CHARS:
        return None, f"the key is no id: it must have between 1 and {_MAX_ID_CHARS} characters"
    return key, None


def _origin(message: KafkaMessage) -> dict[str, Any]:
    origin: dict[str, Any] = {
        "topic": message.topic,
        "partition": message.partition,
        "offset": message.offset,
        "timestamp": message.timestamp,
    }
    if message.key is not None:
        origin["key"] = _as_text(message.key)
    if message.headers:
        headers: dict[str, Any] = {}
        for name, value in message.headers:
            shown = None if value is None else _as_text(value)
            if name in headers:
                held = headers[name]
                headers[name] = [*held, shown] if isinstance(held, list) else [held, shown]
            else:
                headers[name] = shown
        origin["headers"] = headers
    return origin


def _as_text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return "base64:" + base64.b64encode(value).decode("ascii")


def _seconds(message: KafkaMessage) -> float | None:
    return message.timestamp / 1000 if 0 <= message.timestamp < 253_402_300_800_000 else None


def _base(topic: str) -> str:
    return f"kafka://{topic}/"


def _closed(uri: str, topic: str) -> str:
    base = _base(topic)
    return base + uri[len(base) :].replace("#", "%23").replace("?", "%3F")
