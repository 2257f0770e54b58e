"""The pool of child processes that parse untrusted content and extract by rules.

If a document's parser crashes, hangs or needs too much memory, the document is returned with an error, and the child is
replaced. `daemon.parser_pool.children` starts and ends the children.
"""

import asyncio
import base64
import contextlib
import os
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any

from consumers.failure_codes import FailureCode
from consumers.kafka.decode import unreadable_document
from consumers.kafka.message import KafkaMessage
from consumers.kafka.settings import MessageFormat
from consumers.openat import ANY_FILE, FileAccess
from consumers.parsing import Limits, ParseSummary
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument
from daemon.observe.metrics import STAGE
from daemon.parser_pool.child_main import document_from_json
from daemon.parser_pool.children import Child, ChildLimits, ChildLost, Children
from daemon.parser_pool.places import ParsePlaces
from memory.openie.registry import WorkerBackend
from store.types import Extraction, PassageText

Message = dict[str, Any]


class PoolClosed(Exception):
    """The pool was closed during the request, so the result for its documents is unknown."""


class SetAside(Exception):
    """A document took so long that other documents needed its place, or a later version of it waits. No result was returned."""


class _Evicted(Exception):
    """Another source needed the place of this run."""


class ParserFailed(Exception):
    """A request failed that belongs to no single document; the message contains the reason."""

    def __init__(self, message: str, code: FailureCode) -> None:
        super().__init__(message)
        self.code = code


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Turn:
    """The conditions of a request. The request uses a share of the places of `source`.

    With `fresh`, the request does not wait for long documents. `slow` means that the document probably takes long. If other
    documents need the place of a document that takes long, `slow` determines what follows: False raises SetAside, None parses
    the document again in a slow place. With `recognise`, OCR reads pictures, in a separate place, so that no other document
    waits. The request raises SetAside before a picture if `is_superseded` returns true.
    """

    source: str = ""
    fresh: bool = False
    slow: bool | None = None
    recognise: bool = False
    is_superseded: Callable[[], bool] = _never


class ParserPool:
    """At most `size` children for parsing, one more for fresh work, one for OCR, and `size` for extraction.

    `daemon.parser_pool.places` distributes the parsing children among sources. Extraction has separate places, because a long
    document keeps its parsing child while its first passages are extracted. `children` starts and ends the children.
    """

    def __init__(self, size: int = 2, child: ChildLimits | None = None, *, limits: Limits | None = None) -> None:
        child = child or ChildLimits()
        self.limits = limits or Limits()
        self.places = ParsePlaces(size, child.timeout_s)
        self.children = Children(child)
        self.timeout_s = child.timeout_s
        self._extracting = asyncio.Semaphore(size)
        self._recognising = asyncio.Semaphore(1)

    async def parse(
        self,
        path: bytes,
        uri: str,
        settings: SplitSettings,
        turn: Turn = Turn(),
        access: FileAccess = ANY_FILE,
        *,
        name: bytes | None = None,
    ) -> AsyncGenerator[ParsedDocument | ParseSummary, None]:
        """Yields each document of a file when it is ready, and finally the summary if the file could be opened.

        `path` must be absolute. If the child is lost, yields a document with an error and the file's URI after the finished
        documents, and no summary. Wrap the generator in `contextlib.aclosing` if you may stop before its end.
        """
        limits = replace(self.limits, ocr="now") if turn.recognise and self.limits.ocr == "later" else self.limits
        request = {
            "op": "parse",
            "path": os.fsdecode(path),
            "uri": uri,
            "settings": asdict(settings),
            "limits": limits.to_json(),
            "access": access.to_json(),
            "name": None if name is None else os.fsdecode(name),
        }
        found = self._recognised(request, turn) if turn.recognise else self._messages(request, turn)
        async with aclosing(self._documents(found, uri)) as items:
            async for item in items:
                yield item

    async def parse_json(self, text: str, uri: str, settings: SplitSettings, turn: Turn = Turn()) -> ParsedDocument:
        """Returns the document of a JSON text; its URI is `uri`, whatever its id."""
        request = {"op": "json", "text": text, "uri": uri, "settings": asdict(settings)}
        async with aclosing(self._documents(self._messages(request, turn), uri)) as items:
            # If a child is lost after it sent the document, a second document, with an error, reports the loss.
            documents = [item async for item in items if isinstance(item, ParsedDocument)]
        return documents[0]

    async def parse_json_lines(
        self, text: str, base_uri: str, settings: SplitSettings, first_line: int = 1
    ) -> AsyncGenerator[ParsedDocument, None]:
        """Yields the document of each line. A document's URI is `base_uri` followed by the id. `first_line` is the first line's
        number in its file."""
        request = {
            "op": "json lines",
            "text": text,
            "base_uri": base_uri,
            "settings": asdict(settings),
            "first_line": first_line,
        }
        async with aclosing(self._documents(self._messages(request, Turn()), base_uri + "unnamed")) as items:
            async for item in items:
                if isinstance(item, ParsedDocument):
                    yield item

    async def parse_messages(
        self, messages: Sequence[KafkaMessage], form: MessageFormat, settings: SplitSettings, source: str = ""
    ) -> list[list[ParsedDocument]]:
        """Returns the documents of each Kafka message, at least one per message. A message that crashes its child affects no
        other."""
        request = {
            "op": "messages",
            "messages": [message.to_json() for message in messages],
            "form": form,
            "settings": asdict(settings),
        }
        documents: list[ParsedDocument] = []
        counts: list[int] = []
        try:
            with self._loss_as_failure("parsing", of_file=True):
                async with aclosing(self._decoded(self._messages(request, Turn(source, fresh=True)))) as items:
                    async for item in items:
                        if isinstance(item, ParsedDocument):
                            documents.append(item)
                        elif isinstance(item, list):
                            counts = item
        except ParserFailed as error:
            if len(messages) == 1:
                return [[unreadable_document(messages[0], str(error), error.code)]]
            return [found for each in messages for found in await self.parse_messages([each], form, settings, source)]
        rest = iter(documents)
        return [list(islice(rest, count)) for count in counts]

    async def check_records(self, values: Sequence[bytes], source: str = "") -> list[str | None]:
        """Checks records in a child; returns for each record why it is invalid, or None if it is valid. A record that crashes
        its child does not affect other records."""
        request = {"op": "records", "values": [base64.b64encode(value).decode() for value in values]}
        try:
            return await self._verdicts(request, source)
        except ParserFailed as error:
            if len(values) == 1:
                return [str(error)]
        return [verdict for value in values for verdict in await self.check_records([value], source)]

    async def check_record_file(self, path: str) -> str | None:
        """Returns why a file is not a valid file of records; None if it is valid."""
        try:
            [verdict] = await self._verdicts({"op": "record file", "path": path}, "import")
        except ParserFailed as error:
            return str(error)
        return verdict

    async def _verdicts(self, request: Message, source: str) -> list[str | None]:
        found: list[str | None] = []
        with self._loss_as_failure("reading"):
            async with aclosing(self._messages(request, Turn(source, fresh=True))) as messages:
                async for message in messages:
                    found.extend(message["verdicts"])
        return found

    async def request_extractions(self, request: Message, count: int) -> list[Message]:
        """Returns the JSON of `count` extractions. Raises ParserFailed if the child is lost."""
        found: list[Message] = []
        with self._loss_as_failure(f"extraction from {count} passages"):
            async with (
                self._extracting,
                self.children.borrow() as child,
                aclosing(self._answer(child, request)) as messages,
            ):
                async for message in messages:
                    found.extend(message["extractions"])
        return found

    @contextlib.contextmanager
    def _loss_as_failure(self, task: str, *, of_file: bool = False) -> Iterator[None]:
        """Raises ParserFailed, or PoolClosed, in place of ChildLost. The message begins with `task`, and ends in the remedy for
        a file if the task is `of_file`."""
        try:
            yield
        except ChildLost as error:
            if self.children.closed:
                raise PoolClosed("the parsers were stopped") from error
            remedy = f"; {error.remedy}" if of_file and error.remedy else ""
            raise ParserFailed(f"{task} {error}{remedy}", error.code) from error

    async def _documents(
        self, found: AsyncGenerator[Message, None], uri: str
    ) -> AsyncGenerator[ParsedDocument | ParseSummary, None]:
        try:
            with self._loss_as_failure("parsing", of_file=True):
                async with aclosing(self._decoded(found)) as items:
                    async for item in items:
                        if not isinstance(item, list):
                            yield item
        except ParserFailed as error:
            title = os.fsencode(uri).rsplit(b"/", 1)[-1].decode("utf-8", "replace")
            yield ParsedDocument(uri, title, error=str(error), code=error.code)

    async def _decoded(
        self, found: AsyncGenerator[Message, None]
    ) -> AsyncGenerator[ParsedDocument | ParseSummary | list[int], None]:
        """Yields a response's documents, summary of a file, or numbers of documents in Kafka messages. Raises ChildLost."""
        async with aclosing(found) as messages:
            whole: Message = {}
            async for message in messages:
                if "more" in message:  # a long document comes in several messages
                    whole = _assembled(whole, message)
                    if not message["more"]:
                        yield document_from_json(whole)
                        whole = {}
                for value in message.get("documents", ()):
                    yield document_from_json(value)
                if "summary" in message:
                    yield ParseSummary(**message["summary"])
                if "counts" in message:
                    yield list(message["counts"])

    async def _messages(self, request: Message, turn: Turn) -> AsyncGenerator[Message, None]:
        """Yields the messages of a response, except the last one.

        An evicted run starts again in a slow place, and skips the messages that it has already yielded.
        """
        given, slow = 0, turn.slow
        while True:
            try:
                async with aclosing(self._run(request, turn, bool(slow))) as messages:
                    number = 0
                    async for message in messages:
                        number += 1
                        if number > given:
                            given = number
                            yield message
                return
            except _Evicted:
                if slow is False and not given:
                    raise SetAside from None
                slow = True

    async def _recognised(self, request: Message, turn: Turn) -> AsyncGenerator[Message, None]:
        """Yields the messages of a run with OCR. The child sends a message before each picture, so that the time limit applies
        to each."""
        begun = False
        async with (
            self._recognising,
            self.children.borrow() as child,
            aclosing(self._answer(child, request)) as messages,
        ):
            async for message in messages:
                if "progress" not in message:
                    begun = True
                    yield message
                elif not begun and turn.is_superseded():
                    raise SetAside

    async def _run(self, request: Message, turn: Turn, slow: bool) -> AsyncGenerator[Message, None]:
        """Yields the messages of one run. Raises _Evicted if another source needed the place."""
        async with self.places.place(turn.source, fresh=turn.fresh, slow=slow) as run, self.children.borrow() as child:
            run.kill = child.interrupt
            self.places.await_message(run)
            try:
                async with aclosing(self._answer(child, request)) as messages:
                    async for message in messages:
                        await self.places.give_way(run)
                        yield message
                        self.places.await_message(run)
            except ChildLost:
                if run.evicted:
                    raise _Evicted from None
                raise

    async def _answer(self, child: Child, request: Message) -> AsyncGenerator[Message, None]:
        """Yields the child's messages. The time limit counts only while a message is awaited."""
        await child.send(request, self.timeout_s)
        while True:
            message = await child.receive(self.timeout_s)
            if "error" in message:
                raise child.lost(message["error"])
            if "done" in message:
                child.end_request(message["rss"])
                for stage, seconds in message["took"].items():
                    STAGE.labels(stage).observe(seconds)
                return
            yield message


def _assembled(whole: Message, part: Message) -> Message:
    if "document" in part:
        return dict(part["document"])
    whole["passages"] += part["passages"]
    return whole


class PooledExtractor:
    """A `PassageExtractor` that runs an OpenIE backend in the pool's children, because its Python code would delay queries."""

    def __init__(self, pool: ParserPool, backend: WorkerBackend) -> None:
        self._pool = pool
        self._backend = backend.name
        self.name = backend.extractor_name("")

    async def extract(self, passages: Sequence[PassageText]) -> list[Extraction]:
        """Returns the extraction of each passage. Raises ParserFailed if the child is lost."""
        request = {"op": "extract", "backend": self._backend, "passages": [asdict(each) for each in passages]}
        found = await self._pool.request_extractions(request, len(passages))
        return [
            Extraction(
                passage.id,
                fields["extractor"],
                entities=tuple(fields["entities"]),
                triples=tuple((s, p, o) for s, p, o in fields["triples"]),
                took_ms=float(fields.get("took_ms", 0.0)),
            )
            for passage, fields in zip(passages, found, strict=True)
        ]
