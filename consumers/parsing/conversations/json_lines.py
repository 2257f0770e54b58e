"""JSON lines: each line is a document, a message of one conversation, or a conversation."""

from collections.abc import Iterator

from consumers.failure_codes import FailureCode
from consumers.json_documents import parse_json, read_json_line
from consumers.parsing.conversations.days import Conversation, Message, documents_by_day
from consumers.parsing.conversations.json_exports import line_message, read_conversations
from consumers.part_uri import part_uri
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument

_MOST_MESSAGES = 1_000_000


class JsonLines:
    """Reads the lines of a file in order. The messages among them are one conversation, which `rest` returns at the end."""

    def __init__(self, uri: str, stem: str, settings: SplitSettings, modified_at: float | None) -> None:
        self.uri = uri
        self.stem = stem
        self.settings = settings
        self.modified_at = modified_at
        self.messages: list[Message] = []

    def read(self, line: bytes, number: int) -> Iterator[ParsedDocument]:
        """Yield the documents of a line; none if the line is a message."""
        document = read_json_line(line, number, part_uri(self.uri, ""), self.settings, self.modified_at)
        if document.code is FailureCode.JSON:
            try:
                value = parse_json(line)
            except ValueError:
                value = None
            message = line_message(value)
            if message is not None and len(self.messages) < _MOST_MESSAGES:
                self.messages.append(message)
                return
            if isinstance(value, dict) and (found := read_conversations(value, self.stem, self.stem)):
                named = [Conversation(f"line-{number}", each.name, each.messages) for each in found]
                yield from documents_by_day(named, self.uri, self.settings, self.modified_at)
                return
        yield document

    def rest(self) -> Iterator[ParsedDocument]:
        """Yield the documents of the messages that were read."""
        if self.messages:
            conversation = Conversation("messages", self.stem, self.messages)
            yield from documents_by_day([conversation], self.uri, self.settings, self.modified_at)
