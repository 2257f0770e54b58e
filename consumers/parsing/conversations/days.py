"""Groups the messages of a conversation into one document per day. A message's text begins with its author and ends with its
time."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.decoding import clean_text
from consumers.parsing.invisible_characters import without_invisible_characters
from consumers.part_uri import with_uris
from consumers.splitting import PlacedLink, SplitSettings, TextBlock, split
from consumers.types import Link, ParsedDocument

_MAX_PARTICIPANTS = 100
UNDATED = "undated"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of an export. `attachments` are names of files that the export mentions but does not include.

    `answers` is the `identity` of the message that it answers, or of the first message of its thread.
    """

    author: str
    text: str
    sent_at: datetime | None = None
    attachments: tuple[str, ...] = ()
    identity: str = ""
    answers: str = ""
    left_out: tuple[str, ...] = ()
    """Omitted texts of the message, which `text` does not contain."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation. `key` identifies it within its file; `name` is the name that users see."""

    key: str
    name: str
    messages: Iterable[Message]
    left_out: tuple[str, ...] = ()
    """Omitted texts that concern the whole conversation. The first day's account of omissions contains them."""


def documents_by_day(
    conversations: Iterable[Conversation], uri: str, settings: SplitSettings
) -> Iterator[ParsedDocument]:
    """Yields one document per conversation and day, with the URI `<uri>#<conversation>/<day>`.

    A message without a time belongs to the day of the message before it.
    """
    for conversation_uri, conversation in with_uris(uri, conversations, lambda each: each.key):
        days: dict[str, list[Message]] = {}
        uris: dict[str, str] = {}
        day = UNDATED
        for message in conversation.messages:
            day = day if message.sent_at is None else message.sent_at.date().isoformat()
            days.setdefault(day, []).append(message)
            if message.identity:
                uris[message.identity] = f"{conversation_uri}/{day}"
        omissions = Omissions()
        for text in conversation.left_out:
            omissions.add_words(OmissionKind.METADATA, text)
        for day, messages in days.items():
            document_uri = f"{conversation_uri}/{day}"
            document = _document(conversation.name, day, messages, uris, document_uri, settings, omissions)
            if document is not None:
                yield document
                omissions = Omissions()


def _document(
    name: str,
    day: str,
    messages: list[Message],
    uris: Mapping[str, str],
    uri: str,
    settings: SplitSettings,
    omissions: Omissions,
) -> ParsedDocument | None:
    """Returns the document of a day, or None if it has no text. `uris` maps each message's identity to the URI of its
    document."""
    headings = () if day == UNDATED else (day,)
    blocks = []
    for message in messages:
        for attachment in message.attachments:
            omissions.add(OmissionKind.ATTACHMENT, attachment)
        for left_out in message.left_out:
            omissions.add_words(OmissionKind.METADATA, left_out)
        files = "".join(f" [{attachment}]" for attachment in message.attachments)
        text = clean_text(f"{message.text.strip()}{files}").strip()
        if text:
            author = " ".join(clean_text(message.author).split())
            time = "" if message.sent_at is None else f" ({message.sent_at:%H:%M})"
            answered = uris.get(message.answers, uri) if message.answers else uri
            links = () if answered == uri else (PlacedLink(0, Link(f"#{answered.partition('#')[2]}", text="reply")),)
            line = f"{author}: {text}{time}" if author else f"{text}{time}"
            blocks.append(TextBlock(line, headings, "\n", links=links))
    title, visible = without_invisible_characters(" ".join(clean_text(name).split()), blocks)
    passages = split(visible, title, settings)
    if not passages:
        return None
    omissions.add(OmissionKind.UNKNOWN_CHARACTER, count=sum(passage.text.count("\ufffd") for passage in passages))
    authors = dict.fromkeys(" ".join(clean_text(message.author).split()) for message in messages)
    metadata: dict[str, object] = {
        "format": "conversation",
        "participants": [author for author in authors if author][:_MAX_PARTICIPANTS],
    }
    if day != UNDATED:
        sent = min(message.sent_at for message in messages if message.sent_at is not None)
        metadata["published_at"] = (sent if sent.tzinfo else sent.replace(tzinfo=UTC)).isoformat()
    return ParsedDocument(uri, title, passages, metadata, left_out=omissions.done())
