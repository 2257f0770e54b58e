"""Decodes a Kafka message into documents to index, documents to remove, or the reason why it cannot be decoded."""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from consumers.failure_codes import FailureCode
from consumers.json_documents import parse_json, read_json_document
from consumers.kafka.message import KafkaMessage
from consumers.kafka.settings import MessageFormat
from consumers.splitting import SplitSettings, split_text
from consumers.types import ParsedDocument

_MAX_ID_CHARS = 1024
_MAX_REASONS = 3
"""Maximum number of faults that a message's error names: a list may contain thousands of invalid documents."""


NAMELESS_REMOVAL = "neither value nor key: it does not name the document to remove"


def read_message(message: KafkaMessage, message_format: MessageFormat, settings: SplitSettings) -> list[ParsedDocument]:
    """Decodes a message into at least one document. Each document has the message's origin as `kafka` in its metadata.

    The valid documents come first. If there are faults, one document with `error` follows, under the message's own URI. So an
    invalid item does not change the document that it names.
    """
    origin = _origin(message)
    documents: list[ParsedDocument] = []
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
        documents.append(replace(document, metadata=metadata, modified_at=_seconds(message)))
    if faults:
        more = f"; and {len(faults) - _MAX_REASONS} more" if len(faults) > _MAX_REASONS else ""
        documents.append(unreadable_document(message, "; ".join(faults[:_MAX_REASONS]) + more, code))
    return documents


def unreadable_document(message: KafkaMessage, reason: str, code: FailureCode) -> ParsedDocument:
    """Returns the failed document of an unreadable message, under the message's own URI."""
    where = f"partition {message.partition}, offset {message.offset} of {message.topic}"
    about = {"kafka": _origin(message)}
    error = f"{where}: {reason}"
    return ParsedDocument(message_uri(message), modified_at=_seconds(message), metadata=about, error=error, code=code)


def is_newer(metadata: Mapping[str, Any], message: KafkaMessage) -> bool:
    """Whether a document with this metadata came from a later message of the same partition."""
    origin = metadata.get("kafka", {})
    same = (origin.get("topic"), origin.get("partition")) == (message.topic, message.partition)
    return same and bool(origin.get("offset", -1) > message.offset)


def message_document_uri(topic: str, identity: str) -> str:
    """Returns the URI of the document `identity`, formed as for all JSON documents, with `#` and `?` encoded."""
    return _escape_path_end(read_json_document({"id": identity}, _base(topic), None, SplitSettings()).uri, topic)


def message_uri(message: KafkaMessage) -> str:
    """Returns the URI of an unreadable message. The URI has a fragment, which a document's URI never has."""
    return f"kafka://{message.topic}#{message.partition}-{message.offset}"


def published_at(timestamp_ms: int) -> str:
    """Formats the timestamp as RFC 3339 in UTC. A timestamp beyond the year 9999 becomes the latest representable time."""
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
            yield _keyed_document({"id": key, "deleted": True}, message, None, settings)
        return
    if message_format == "text":
        if wrong_key:
            yield ParsedDocument(base, error=wrong_key, code=FailureCode.JSON)
        else:
            yield _text_document(message, key, settings)
        return
    try:
        value = parse_json(message.value)
    except ValueError as error:
        yield ParsedDocument(base, error=str(error), code=FailureCode.JSON)
        return
    if not isinstance(value, list):
        yield _keyed_document(value, message, key, settings, wrong_key)
        return
    if not value:
        yield ParsedDocument(base, error="an empty list without a document", code=FailureCode.NO_TEXT)
    for place, item in enumerate(value):
        yield _keyed_document(
            item, message, None if key is None else f"{key}/{place}", settings, wrong_key, f"/{place}"
        )


def _keyed_document(
    value: Any,
    message: KafkaMessage,
    key: str | None,
    settings: SplitSettings,
    wrong_key: str | None = None,
    place: str = "",
) -> ParsedDocument:
    """Returns the document of one JSON value. The document's id is the value's "id", else the key, else partition and
    offset."""
    if isinstance(value, dict) and value.get("id") is None:
        if wrong_key is not None:
            return ParsedDocument("", error=f'no "id", and {wrong_key}', code=FailureCode.JSON)
        if key is None and value.get("deleted") is True:
            return ParsedDocument(
                "",
                error='"deleted" without "id" or key: it does not name the document to remove',
                code=FailureCode.JSON,
            )
    default = key or f"{message.partition}-{message.offset}{place}"
    document = read_json_document(value, _base(message.topic), default, settings)
    return replace(document, uri=_escape_path_end(document.uri, message.topic))


def _text_document(message: KafkaMessage, key: str | None, settings: SplitSettings) -> ParsedDocument:
    identity = key or f"{message.partition}-{message.offset}"
    uri = message_document_uri(message.topic, identity)
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
    """Returns (id, fault): `None` and no fault for a missing key; `None` and the reason for an invalid key."""
    if not message.key:
        return None, None
    try:
        key = message.key.decode("utf-8")
    except UnicodeDecodeError:
        return None, "the key is not UTF-8, so it is not an id"
    if not key.strip() or len(key) > _MAX_ID_CHARS:
        return None, f"the key is not an id: it must have between 1 and {_MAX_ID_CHARS} characters"
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
            decoded = None if value is None else _as_text(value)
            if name in headers:
                earlier = headers[name]
                headers[name] = [*earlier, decoded] if isinstance(earlier, list) else [earlier, decoded]
            else:
                headers[name] = decoded
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


def _escape_path_end(uri: str, topic: str) -> str:
    base = _base(topic)
    return base + uri[len(base) :].replace("#", "%23").replace("?", "%3F")
