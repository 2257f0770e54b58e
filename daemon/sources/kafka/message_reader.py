"""Parses Kafka messages in worker processes, many at a time."""

from collections.abc import Sequence

from consumers.kafka.decode import unreadable_document
from consumers.kafka.message import KafkaMessage
from consumers.kafka.settings import MessageFormat
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument
from daemon.workers.pool import WorkerFailed, WorkerPool


class MessageReader:
    """Turns messages into documents. If a message crashes its worker, the other messages are not affected."""

    def __init__(
        self, pool: WorkerPool, message_format: MessageFormat, settings: SplitSettings, source: str = ""
    ) -> None:
        """`source` is the source whose share of the workers is used."""
        self._pool = pool
        self._source = source
        self._message_format = message_format
        self._settings = settings

    async def read(self, messages: Sequence[KafkaMessage]) -> list[list[ParsedDocument]]:
        """Returns each message's documents, at least one, in the order of the messages."""
        try:
            return await self._pool.parse_messages(messages, self._message_format, self._settings, self._source)
        except WorkerFailed as error:
            if len(messages) == 1:
                return [[unreadable_document(messages[0], str(error), error.code)]]
        # One of the messages crashed the worker, so parse each separately.
        return [documents for message in messages for documents in await self.read([message])]
