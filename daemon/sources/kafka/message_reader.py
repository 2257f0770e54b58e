"""Kafka messages read in the worker processes, many at a time."""

from collections.abc import Sequence

from consumers.kafka.decode import unreadable_document
from consumers.kafka.message import KafkaMessage
from consumers.kafka.settings import MessageFormat
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument
from daemon.workers.pool import WorkerFailed, WorkerPool


class MessageReader:
    """Turns messages into documents. A message that costs a worker its life costs none of those beside it."""

    def __init__(
        self, pool: WorkerPool, message_format: MessageFormat, settings: SplitSettings, source: str = ""
    ) -> None:
        """`source`: whose share of the parsers they take."""
        self._pool = pool
        self._source = source
        self._message_format = message_format
        self._settings = settings

    async def read(self, messages: Sequence[KafkaMessage]) -> list[list[ParsedDocument]]:
        """Each message's documents, at least one, in the messages' order."""
        try:
            return await self._pool.parse_messages(messages, self._message_format, self._settings, self._source)
        except WorkerFailed as error:
            if len(messages) == 1:
                return [[unreadable_document(messages[0], str(error), error.code)]]
        # The worker ended at one of them: each is read alone.
        return [documents for message in messages for documents in await self.read([message])]
