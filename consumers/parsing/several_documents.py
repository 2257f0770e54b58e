"""Files that contain several documents: JSON, JSON lines, chats as text, mailboxes, exports of notes and of wikis."""

import posixpath
from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from urllib.parse import unquote, urlsplit

from consumers.failure_codes import FailureCode
from consumers.json_documents import parse_json, read_json_line, read_json_value
from consumers.parsing.attachments import ParsePart
from consumers.parsing.conversations.days import Conversation, Message, documents_by_day
from consumers.parsing.conversations.json_exports import keep_note, line_message, read_conversations
from consumers.parsing.conversations.whatsapp import is_whatsapp, read_whatsapp
from consumers.parsing.decoding import decode
from consumers.parsing.file_name import stem_of
from consumers.parsing.formats.document_format import DocumentFormat
from consumers.parsing.formats.mail.mailbox import is_deleted, message_key, split_mailbox
from consumers.parsing.formats.registry import EVERNOTE, JSON, JSON_LINES, MAILBOX, TEXT, XML
from consumers.parsing.limits import Limits
from consumers.part_uri import part_uri, with_uris
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument

_SAMPLE = 4096
_CHAT_FILES = frozenset(("_chat", "chat", "data", "messages", "message_1", "result"))
"""Names that WhatsApp, signal-export, Google Chat, Messenger and Telegram give to every exported chat."""

_MAX_MESSAGES = 1_000_000


def read_collection(
    format: DocumentFormat,
    data: bytes,
    name: bytes,
    uri: str,
    settings: SplitSettings,
    limits: Limits,
    parse_part: ParsePart,
) -> Iterator[ParsedDocument] | None:
    """Returns the documents of a file that may contain several; None if the file is one document."""
    if format is JSON_LINES:
        return _json_lines(data, name, uri, settings, limits)
    if format is JSON:
        return _json(data, name, uri, settings, limits)
    if format is MAILBOX:
        return _mailbox(data, uri, parse_part)
    if format is EVERNOTE and b"<en-export" in data[:_SAMPLE]:
        return _notes(data, uri, parse_part)
    if format is XML and b"<mediawiki" in data[:_SAMPLE]:
        return _wiki_pages(data, uri, parse_part)
    if format is TEXT and is_whatsapp(data[:_SAMPLE].decode("utf-8", "replace")):
        return documents_by_day([read_whatsapp(decode(data), _chat_name(name, uri))], uri, settings)
    return None


def _folder(uri: str) -> str:
    return unquote(posixpath.basename(posixpath.dirname(urlsplit(uri).path)))


def _chat_name(name: bytes, uri: str) -> str:
    """Returns a name for an unnamed chat: the file's name, or the folder's name if the program gives all files the same
    name."""
    stem = stem_of(name)
    return (_folder(uri) or stem) if stem in _CHAT_FILES else stem


def _json_lines(
    data: bytes, name: bytes, uri: str, settings: SplitSettings, limits: Limits
) -> Iterator[ParsedDocument]:
    return read_lines(((line, True) for line in data.split(b"\n")), uri, _chat_name(name, uri), settings, limits)


def _is_message_line(line: bytes) -> bool:
    try:
        return line_message(parse_json(line)) is not None
    except ValueError:
        return False


def _json(data: bytes, name: bytes, uri: str, settings: SplitSettings, limits: Limits) -> Iterator[ParsedDocument]:
    try:
        value = parse_json(data)
    except ValueError as error:
        if _is_message_line(data.partition(b"\n")[0]):  # signal-export writes JSON lines under this ending
            return _json_lines(data, name, uri, settings, limits)
        return iter([ParsedDocument(uri, stem_of(name), error=str(error), code=FailureCode.JSON)])
    # A file of a Slack export contains one day of a channel; only its folder is named after the channel.
    if conversations := read_conversations(value, _folder(uri), _chat_name(name, uri)):
        return documents_by_day(conversations, uri, settings)
    note = keep_note(value)
    return read_json_value(value if note is None else note, uri, settings, stem_of(name))


def _notes(data: bytes, uri: str, parse_part: ParsePart) -> Iterator[ParsedDocument]:
    """Yields a document for each note, and for each file in a note. A note's URI is `<uri>#<title>`."""
    from consumers.parsing.formats.evernote import split_notes

    for note_uri, (_, note) in with_uris(uri, split_notes(data), lambda each: each[0]):
        yield from parse_part(note, b"note.enex", note_uri)


def _wiki_pages(data: bytes, uri: str, parse_part: ParsePart) -> Iterator[ParsedDocument]:
    """Yields a document for each page of a MediaWiki export, with the URI `<uri>#<title>`."""
    from consumers.parsing.formats.markup.wiki_export import split_export

    for page_uri, page in with_uris(uri, split_export(data), lambda each: each.title):
        for document in parse_part(page.content, page.name, page_uri):
            yield replace(
                document,
                title=page.title or document.title,
                metadata={**page.metadata, **document.metadata},
                left_out=(*document.left_out, *page.left_out),
            )


def _mailbox(data: bytes, uri: str, parse_part: ParsePart) -> Iterator[ParsedDocument]:
    """Yields a document for each message and attachment, with the URI `<uri>#<message id>`.

    For a message without an id, its number in the mailbox replaces the id.
    """
    for message_uri, message in with_uris(uri, split_mailbox(data), message_key):
        if is_deleted(message):
            reason = "deleted in the mail program, which keeps it until it compacts the folder"
            yield ParsedDocument(message_uri, error=reason, skipped=True, code=FailureCode.NOT_A_DOCUMENT)
        else:
            yield from parse_part(message, b"message.eml", message_uri)


def read_lines(
    lines: Iterable[tuple[bytes, bool]], uri: str, stem: str, settings: SplitSettings, limits: Limits
) -> Generator[ParsedDocument, None, bool]:
    """Yields the documents of a file's lines, given as (line, whether it is complete). Returns whether a line was not
    blank.

    An invalid line does not affect other lines. Lines that are messages form one conversation, which comes last.
    """
    found = False
    messages: list[Message] = []
    for number, (line, is_complete) in enumerate(lines, 1):
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
            if line[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\x00" in line[:64]:
                reason = "not UTF-8, as JSON lines must be; save it as UTF-8"
                yield ParsedDocument(uri, stem, error=reason, code=FailureCode.ENCODING)
                return True
        if not line.strip():
            continue
        found = True
        if not is_complete:
            reason = f"line {number} is longer than {limits.json_line_bytes:,} bytes; split its text up"
            yield ParsedDocument(part_uri(uri, f"line-{number}"), error=reason, code=FailureCode.TOO_LARGE)
            continue
        document = read_json_line(line, number, part_uri(uri, ""), settings)
        if document.code is FailureCode.JSON:
            try:
                value = parse_json(line)
            except ValueError:
                value = None
            message = line_message(value)
            if message is not None and len(messages) < _MAX_MESSAGES:
                messages.append(message)
                continue
            if isinstance(value, dict) and (conversations := read_conversations(value, stem, stem)):
                named = [Conversation(f"line-{number}", each.name, each.messages) for each in conversations]
                yield from documents_by_day(named, uri, settings)
                continue
        yield document
    if messages:
        yield from documents_by_day([Conversation("messages", stem, messages)], uri, settings)
    return found
