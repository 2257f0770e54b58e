"""The pool of child processes that parse what comes from outside, and extract by rules.

A document that crashes, hangs or bloats its parser costs one child and becomes a document with an error; the child is
replaced. Children are started when they are needed and ended when they have grown or served long.
"""

import asyncio
import base64
import contextlib
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import asdict
from itertools import islice
from typing import Any, Literal

from consumers.document_codec import document_from_json
from consumers.failure_codes import FailureCode
from consumers.kafka.message import KafkaMessage
from consumers.kafka.settings import MessageFormat
from consumers.parsing import Limits, ParseSummary
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument
from daemon.observe.metrics import STAGE
from daemon.workers.child_process import Child, ChildLost
from daemon.workers.places import ParsePlaces

MIB = 1 << 20
Message = dict[str, Any]


class PoolClosed(Exception):
    """The pool was closed while the request was under way: nothing is known about its documents."""


class SetAside(Exception):
    """A document took so long that others needed its place: it has to be parsed again, as a slow one. Nothing of it was
    returned."""


class _Evicted(Exception):
    """Another source needed the place of this run."""


class WorkerFailed(Exception):
    """A request without a document behind it failed; the message says why."""

    def __init__(self, message: str, code: FailureCode) -> None:
        super().__init__(message)
        self.code = code


class WorkerPool:
    """At most `size` children that parse, one more for what is fresh, and `size` that extract, each bound to `memory_bytes`
    of address space and `timeout_s` seconds a document. `daemon.workers.places` shares them between sources (`source`).

    Extraction has places of its own: whoever reads a long document holds a parser while its first passages are extracted.
    `recycle_after` requests, or `recycle_rss_bytes` of resident memory, and a child is replaced by a fresh one.
    """

    def __init__(
        self,
        size: int = 2,
        memory_bytes: int = 1024 * MIB,
        timeout_s: float = 60.0,
        *,
        limits: Limits | None = None,
        recycle_after: int = 2_000,
        recycle_rss_bytes: int = 256 * MIB,
        follow_symlinks: bool = False,
    ) -> None:
        self.size = size
        self.memory_bytes = memory_bytes
        self.timeout_s = timeout_s
        self.limits = limits or Limits()
        self.recycle_after = recycle_after
        self.recycle_rss_bytes = recycle_rss_bytes
        self.follow_symlinks = follow_symlinks
        self.places = ParsePlaces(size, timeout_s)
        self._extracting = asyncio.Semaphore(size)
        self._idle: list[Child] = []
        self._all: set[Child] = set()
        self._closed = False
        self._first: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to start the first child; does not wait for it. The others start when the first is busy."""
        self._first = asyncio.create_task(self._start_first())

    async def close(self) -> None:
        """End every child at once, whatever it does; requests under way fail."""
        self._closed = True
        if self._first is not None:
            self._first.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._first
        await asyncio.gather(*(child.kill() for child in tuple(self._all)))
        self._idle.clear()
        self._all.clear()

    @property
    def pids(self) -> tuple[int, ...]:
        """The children alive now."""
        return tuple(child.pid for child in self._all)

    async def parse(
        self,
        path: bytes,
        uri: str,
        settings: SplitSettings,
        *,
        follow_symlinks: bool | None = None,
        name: bytes | None = None,
        root: bytes | None = None,
        checked_inode: int | None = None,
        max_bytes: int | None = None,
        source: str = "",
        fresh: bool = False,
        slow: bool | None = None,
    ) -> AsyncGenerator[ParsedDocument | ParseSummary, None]:
        """The documents of a file as they are ready, and last the summary of what was read, if it could be opened.

        `path` is absolute. A child that is lost gives one document with an error, under the file's URI, after those that
        were ready; no summary follows it. A consumer that may stop early wraps this in `contextlib.aclosing`. `root` and
        `checked_inode` keep what is opened within a folder, see `consumers.openat`. Of a file that is larger than `max_bytes`
        the beginning is read. `fresh`: long documents that are being
        parsed are not waited for. `slow`: whether it is expected to take long; with False it raises SetAside where it proves to
        and others need its place, with None it is parsed again here.
        """
        request = {
            "op": "parse",
            "path": os.fsdecode(path),
            "uri": uri,
            "settings": asdict(settings),
            "limits": asdict(self.limits),
            "follow_symlinks": self.follow_symlinks if follow_symlinks is None else follow_symlinks,
            "name": None if name is None else os.fsdecode(name),
            "root": None if root is None else os.fsdecode(root),
            "checked_inode": checked_inode,
            "max_bytes": max_bytes,
        }
        async with aclosing(self._documents(request, uri, source, fresh, slow)) as items:
            async for item in items:
                yield item

    async def parse_json(
        self,
        text: str,
        base_uri: str,
        settings: SplitSettings,
        *,
        default_id: str | None = None,
        form: Literal["document", "lines", "corpus"] = "document",
        first_line: int = 1,
        source: str = "",
        fresh: bool = False,
        slow: bool | None = None,
    ) -> AsyncGenerator[ParsedDocument, None]:
        """The documents of a JSON text: one, one a line, or those of a HippoRAG corpus. URIs are `base_uri` + id.

        `first_line`: the number of the text's first line in the file that it is cut from.
        """
        request = {
            "op": "json",
            "text": text,
            "base_uri": base_uri,
            "settings": asdict(settings),
            "default_id": default_id,
            "form": form,
            "first_line": first_line,
        }
        async with aclosing(
            self._documents(request, base_uri + (default_id or "unnamed"), source, fresh, slow)
        ) as items:
            async for item in items:
                if isinstance(item, ParsedDocument):
                    yield item

    async def parse_messages(
        self, messages: Sequence[KafkaMessage], form: MessageFormat, settings: SplitSettings, source: str = ""
    ) -> list[list[ParsedDocument]]:
        """The documents of Kafka messages, a list for each. Raises WorkerFailed where the child was lost."""
        request = {
            "op": "messages",
            "messages": [message.to_json() for message in messages],
            "form": form,
            "settings": asdict(settings),
        }
        documents: list[ParsedDocument] = []
        counts: list[int] = []
        try:
            async with aclosing(self._decoded(request, source, fresh=True)) as items:
                async for item in items:
                    if isinstance(item, ParsedDocument):
                        documents.append(item)
                    elif isinstance(item, list):
                        counts = item
        except ChildLost as error:
            if self._closed:
                raise PoolClosed("the parsers were stopped") from error
            raise WorkerFailed(f"parsing it {error}", error.code) from error
        rest = iter(documents)
        return [list(islice(rest, count)) for count in counts]

    async def check_records(self, values: Sequence[bytes], source: str = "") -> list[str | None]:
        """Reads records, for what that may cost: for each why it is none, None for a record. Raises WorkerFailed."""
        request = {"op": "records", "values": [base64.b64encode(value).decode() for value in values]}
        return await self._verdicts(request, source)

    async def check_record_file(self, path: str) -> str | None:
        """Why a file cannot be read as one of records. Raises WorkerFailed."""
        [verdict] = await self._verdicts({"op": "record file", "path": path}, "import")
        return verdict

    async def _verdicts(self, request: Message, source: str) -> list[str | None]:
        found: list[str | None] = []
        try:
            async with aclosing(self._messages(request, source, fresh=True)) as messages:
                async for message in messages:
                    found.extend(message["verdicts"])
        except ChildLost as error:
            if self._closed:
                raise PoolClosed("the parsers were stopped") from error
            raise WorkerFailed(f"reading it {error}", error.code) from error
        return found

    async def extract(self, backend: str, passages: Sequence[Mapping[str, str]]) -> list[Message]:
        """Extractions of passages `{"id", "title", "text"}`, in order, each the fields of `store.types.Extraction`.

        `backend` names a `WorkerBackend` of `memory.openie.registry`. Raises WorkerFailed where the child was lost; then none
        of the passages has been extracted.
        """
        found: list[Message] = []
        try:
            request = {"op": "extract", "backend": backend, "passages": [dict(item) for item in passages]}
            async with self._extracting, self._child() as child, aclosing(self._answer(child, request)) as messages:
                async for message in messages:
                    found.extend(message["extractions"])
        except ChildLost as error:
            if self._closed:
                raise PoolClosed("the parsers were stopped") from error
            raise WorkerFailed(f"extraction of {len(passages)} passages {error}", error.code) from error
        return found

    async def _documents(
        self, request: Message, uri: str, source: str, fresh: bool, slow: bool | None
    ) -> AsyncGenerator[ParsedDocument | ParseSummary, None]:
        try:
            async with aclosing(self._decoded(request, source, fresh, slow)) as items:
                async for item in items:
                    if not isinstance(item, list):
                        yield item
        except ChildLost as error:
            if self._closed:
                raise PoolClosed("the parsers were stopped") from error
            title = os.fsencode(uri).rsplit(b"/", 1)[-1].decode("utf-8", "replace")
            yield ParsedDocument(uri, title, error=f"parsing it {error}", code=error.code)

    async def _decoded(
        self, request: Message, source: str, fresh: bool, slow: bool | None = None
    ) -> AsyncGenerator[ParsedDocument | ParseSummary | list[int], None]:
        """An answer's documents, a file's summary, or how many documents each Kafka message gave. Raises ChildLost."""
        async with aclosing(self._messages(request, source, fresh, slow)) as messages:
            whole: Message = {}
            async for message in messages:
                if "more" in message:  # a long document's passages come in parts
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

    async def _messages(
        self, request: Message, source: str, fresh: bool = False, slow: bool | None = None
    ) -> AsyncGenerator[Message, None]:
        """The messages of one answer but its last. A run that is evicted starts again in a slow place, and passes over what it
        has given already."""
        given = 0
        while True:
            try:
                async with aclosing(self._run(request, source, fresh, bool(slow))) as messages:
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

    async def _run(self, request: Message, source: str, fresh: bool, slow: bool) -> AsyncGenerator[Message, None]:
        """Raises _Evicted where another source needed the place."""
        async with self.places.place(source, fresh=fresh, slow=slow) as run, self._child() as child:
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
        """The clock runs only while a message is awaited."""
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

    @asynccontextmanager
    async def _child(self) -> AsyncIterator[Child]:
        """A child of one's own. It goes back to the pool only when its answer was read to the end."""
        child = await self._ready_child()
        try:
            yield child
        finally:
            keep = child.between_requests and not (self._closed or child.interrupted or self._worn(child))
            if keep:
                self._idle.append(child)
            else:
                self._all.discard(child)
                await asyncio.shield(child.kill())

    async def _ready_child(self) -> Child:
        if self._first is not None and not self._first.done():
            await asyncio.shield(self._first)
        while self._idle:
            child = self._idle.pop()
            if child.alive:
                return child
            self._all.discard(child)
            await child.kill()
        return await self._start()

    def _worn(self, child: Child) -> bool:
        return child.requests >= self.recycle_after or child.rss >= self.recycle_rss_bytes

    async def _start_first(self) -> None:
        with contextlib.suppress(ChildLost):  # whoever needs one next tries again and is told
            self._idle.append(await self._start())  # without taking a place: whoever has one may wait for this

    async def _start(self) -> Child:
        if self._closed:
            raise ChildLost("was cancelled, because the parsers were stopped", FailureCode.OTHER)
        child = await Child.start(self.memory_bytes, self.timeout_s)
        self._all.add(child)
        return child


def _assembled(whole: Message, part: Message) -> Message:
    if "document" in part:
        return dict(part["document"])
    whole["passages"] += part["passages"]
    return whole
