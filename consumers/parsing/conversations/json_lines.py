"""JSON lines: each line is a document, a message of one conversation, or a conversation."""

from collections.abc import Generator, Iterable

from consumers.failure_codes import FailureCode
from consumers.json_documents import parse_json, read_json_line
from consumers.parsing.conversations.days import Conversation, Message, documents_by_day
from consumers.parsing.conversations.json_exports import line_message, read_conversations
from consumers.parsing.limits import Limits
from consumers.part_uri import part_uri
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument

_MAX_MESSAGES = 1_000_000


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
