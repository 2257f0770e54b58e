"""Kafka messages read in the worker processes, many at a time."""

from collections.abc import Sequence

from consumers.kafka.message import Message
from consumers.kafka.reading import Form, message_uri, place_of
from consumers.splitting import SplitSettings
from consumers.types import Document
from daemon.workers import WorkerPool


class MessageReader:
    """`read` gives each message's documents; what costs a worker its life costs one message, not those beside it."""

    def __init__(self, pool: WorkerPool, form: Form, settings: SplitSettings) -> None:
        self._pool = pool
        self._form = form
        self._settings = settings

    async def read(self, messages: Sequence[Message]) -> list[list[Document]]:
        """At least one document a message, in the messages' order."""
        found: dict[tuple[str, int, int], list[Document]] = {message.place: [] for message in messages}
        lost = None
        async for document in self._pool.parse_messages(messages, self._form, self._settings):
            if "kafka" in document.metadata:
                found[place_of(document)].append(document)
            else:
                lost = document
        if lost is None:
            return [found[message.place] for message in messages]
        if len(messages) == 1:
            return [[_lost(messages[0], lost)]]
        # The worker ended at one of them. Each is read alone, the finished ones too: their last may be cut short.
        return [documents for message in messages for documents in await self.read([message])]


def _lost(message: Message, lost: Document) -> Document:
    about = {"topic": message.topic, "partition": message.partition, "offset": message.offset}
    where = f"partition {message.partition}, offset {message.offset} of {message.topic}"
    return Document(message_uri(message), metadata={"kafka": about}, error=f"{where}: {lost.error}")
