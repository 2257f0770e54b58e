"""Kafka messages read in the worker processes, many at a time."""

from collections.abc import Sequence

from consumers.kafka.decode import Form, unreadable
from consumers.kafka.message import Message
from consumers.splitting import SplitSettings
from consumers.types import Document
from daemon.workers.pool import WorkerFailed, WorkerPool


class MessageReader:
    """Turns messages into documents. A message that costs a worker its life costs none of those beside it."""

    def __init__(self, pool: WorkerPool, form: Form, settings: SplitSettings) -> None:
        self._pool = pool
        self._form = form
        self._settings = settings

    async def read(self, messages: Sequence[Message]) -> list[list[Document]]:
        """Each message's documents, at least one, in the messages' order."""
        try:
            return await self._pool.parse_messages(messages, self._form, self._settings)
        except WorkerFailed as error:
            if len(messages) == 1:
                return [[unreadable(messages[0], str(error), error.code)]]
        # The worker ended at one of them: each is read alone.
        return [documents for message in messages for documents in await self.read([message])]
