"""Sends unreadable messages to the dead-letter topic, and only then lets their offsets be committed."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import structlog
from kafka.errors import KafkaError

from consumers.kafka.dead_letters import DeadLetters
from consumers.kafka.decode import message_uri
from consumers.kafka.message import KafkaMessage
from consumers.kafka.offset_tracker import MessageAcknowledgement
from consumers.kafka.settings import KafkaSettings
from consumers.types import ParsedDocument
from daemon.pipeline.outage import Dependency

MAX_PAUSE_S = 2.0
"""Maximum pause between attempts to send."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class UnreadableMessage:
    """A message that could not be decoded; `document` contains the error. `acknowledgements`: of this message, and of other
    messages that are complete when this message is complete.

    `read` contains the URIs of the documents that the message yielded despite the error.
    """

    message: KafkaMessage
    document: ParsedDocument
    acknowledgements: Sequence[MessageAcknowledgement]
    read: Sequence[str] = ()


Sent = Callable[[UnreadableMessage, ParsedDocument | None], Awaitable[None]]
"""Called after a message was sent. If the topic refuses it for good, the second argument is a document with the error."""


class DeadLetterQueue:
    """Queues unreadable messages. Use on the event loop only; a separate thread sends."""

    def __init__(self, settings: KafkaSettings, topic: str, sent: Sent) -> None:
        self._topic = topic
        self._letters = DeadLetters(settings, topic)
        self._sent = sent
        self._waiting: asyncio.Queue[UnreadableMessage] = asyncio.Queue()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="dead letters")
        self.brokers = Dependency(MAX_PAUSE_S)

    def put(self, unreadable: UnreadableMessage) -> None:
        self._waiting.put_nowait(unreadable)

    def close(self) -> None:
        self._thread.submit(self._letters.close)
        self._thread.shutdown(wait=False)

    async def run(self) -> None:
        """Sends messages until cancelled."""
        while True:
            letters = [await self._waiting.get()]
            while not self._waiting.empty():
                letters.append(self._waiting.get_nowait())
            refusals = await self._send([(each.message, each.document.error or "") for each in letters])
            for unreadable, refusal in zip(letters, refusals, strict=True):
                failed, uri = unreadable.document, message_uri(unreadable.message)
                document = None
                if refusal is not None:
                    log.warning("dead_letter_refused", topic=self._topic, uri=uri, error=refusal)
                    reason = f"{failed.error}; and {self._topic} refuses it: {refusal}"
                    document = ParsedDocument(uri, error=reason, code=failed.code)
                else:
                    log.info("dead_letter", topic=self._topic, uri=uri, reason=failed.code)
                await self._sent(unreadable, document)

    async def _send(self, letters: list[tuple[KafkaMessage, str]]) -> list[str | None]:
        send = partial(asyncio.get_running_loop().run_in_executor, self._thread, self._letters.send, letters)
        what = f"dead letters wait for {self._topic}"
        return await self.brokers.until_done(
            "dead_letters_wait", send, are_brokers_unreachable, what, topic=self._topic
        )


def are_brokers_unreachable(error: Exception) -> bool:
    return isinstance(error, KafkaError | OSError)
