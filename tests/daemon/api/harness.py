"""A real server on a real Unix socket in a separate thread, over simple ports.

These ports only produce edge cases of the API (waiting, failing, endless answers). Tests on a running daemon cover the API with
the real memory.
"""

import asyncio
import json
import socket
import tempfile
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import httpx2

from daemon.api.event_hub import EventHub
from daemon.api.ports import MemoryPorts, StartupGate, StartupPorts
from daemon.api.server import ApiServer
from daemon.api.settings import ApiLimits, ApiSettings
from daemon.app.lifecycle import add_service_routes
from daemon.contract.base import utc_time
from daemon.contract.choices import DocumentState, ExportFormat
from daemon.contract.documents import (
    AddResponse,
    DocumentEntry,
    DocumentList,
    ListRequest,
    RemoveResponse,
    RemoveSourceRequest,
    RemoveSourceResponse,
    RetryRequest,
    RetryResponse,
    ShowDocument,
)
from daemon.contract.query import QueryRequest, QueryResponse, RankedPassage, ScoredTriple, SeedPhrase
from daemon.contract.scope import Scope, ScopeCount, ScopeList
from daemon.contract.status import DaemonState, Edges, SourceStatus, Status
from daemon.contract.transfer import ImportResponse
from daemon.errors import NotConfigured, TimedOut
from daemon.page import routes as page_routes
from daemon.page.login import LoginMiddleware
from daemon.services.status import StatusService

SECRET = "the inside of the daemon"
PATIENCE_S = 90.0


@dataclass
class Memory(StatusService):
    """All ports except events. A query text that is a key of `queries` is answered by its function."""

    documents_by_uri: dict[str, dict[str, Any]] = field(default_factory=dict)
    stage: DaemonState = DaemonState.READY
    released: threading.Event = field(default_factory=threading.Event)
    queries_inside: int = 0
    waits_inside: int = 0
    cancelled: int = 0
    imported: int = 0
    export_chunks: int = 2
    exported: int = 0
    export_formats: list[ExportFormat] = field(default_factory=list)

    async def query(self, request: QueryRequest) -> QueryResponse:
        if request.query == "raise":
            raise RuntimeError(SECRET)
        if request.query == "unconfigured":
            raise NotConfigured("That mode needs an LLM; configure [llm].")
        self.queries_inside += 1
        try:
            while request.query == "hold" and not self.released.is_set():
                await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.queries_inside -= 1
        passage = RankedPassage(
            rank=1, score=0.5, id="a" * 32, title="T", text="x", document="u:1", location={"line": 3}
        )
        return QueryResponse(
            query=request.query,
            mode=request.mode or "hipporag2",
            commit=7,
            took_ms=0.1,
            passages=[passage] * min(request.k, 1),
            triples=[ScoredTriple(subject="s", predicate="p", object="o", score=1.0, kept=True)],
            seeds=[SeedPhrase(phrase="s", weight=0.25)],
        )

    async def add(self, documents: Any) -> AddResponse:
        uris = [str(document.get("id", number)) for number, document in enumerate(documents)]
        self.documents_by_uri.update(zip(uris, documents, strict=True))
        return AddResponse(accepted=len(uris), documents=uris)

    async def remove(self, uris: Any) -> RemoveResponse:
        missing = [uri for uri in uris if self.documents_by_uri.pop(uri, None) is None]
        return RemoveResponse(removed=len(uris) - len(missing), missing=len(missing), missing_uris=missing)

    async def remove_source(self, request: RemoveSourceRequest) -> RemoveSourceResponse:
        return RemoveSourceResponse(source=request.source, documents=[], removed=0)

    async def documents(self, request: ListRequest) -> DocumentList:
        uris = [uri for uri in sorted(self.documents_by_uri) if uri.startswith(request.prefix)]
        return DocumentList(documents=[entry(uri) for uri in uris[: request.limit]])

    async def scopes(self) -> ScopeList:
        return ScopeList(
            sources=[ScopeCount(name="drive", documents=len(self.documents_by_uri))], labels=[], folders=[]
        )

    async def show(self, key: str, limit: int, scope: Scope | None = None) -> ShowDocument | None:
        if key not in self.documents_by_uri:
            return None
        return ShowDocument(
            document=entry(key),
            source="added",
            metadata={},
            passages=[],
            phrases=[],
            triples=[],
            counts={"limit": limit},
        )

    async def retry(self, request: RetryRequest) -> RetryResponse:
        return RetryResponse(requeued=0 if request.uris is None else len(request.uris))

    def state(self) -> DaemonState:
        return self.stage

    async def status(self, scope: Scope | None = None) -> Status:
        return Status(
            state=self.stage,
            commit=7,
            pending=0,
            failed=0,
            documents=len(self.documents_by_uri),
            passages=0,
            phrases=0,
            triples=0,
            edges=Edges(relation=1, context=2, synonym=3),
            encoder="hash",
            openie="rules",
            sources=[SourceStatus(kind="folder", name="drive", state="following", lag=4)],
            uptime_s=1.5,
            rss_bytes=1,
        )

    async def wait(self, timeout_s: float | None, scope: Scope | None = None) -> Status:
        self.waits_inside += 1
        try:
            async with asyncio.timeout(timeout_s):
                while not self.released.is_set():
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise TimedOut(f"Not all was committed within {timeout_s} s.") from None
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.waits_inside -= 1
        return await self.status()

    async def export(self, format: ExportFormat, scope: Scope | None = None) -> AsyncGenerator[bytes, None]:
        self.export_formats.append(format)
        if self.export_chunks < 0:
            raise RuntimeError(SECRET)
        for number in range(self.export_chunks):
            self.exported += 1
            yield json.dumps({"kind": "phrase", "text": f"{number}" * 1000}).encode() + b"\n"
        if self.export_chunks == 1:
            raise RuntimeError(SECRET)

    async def import_openie(self, chunks: AsyncIterator[bytes]) -> ImportResponse:
        async for chunk in chunks:
            self.imported += len(chunk)
        return ImportResponse(passages=1, triples=2, skipped=3)


def entry(uri: str) -> DocumentEntry:
    return DocumentEntry(
        uri=uri, title=uri, state=DocumentState.INDEXED, passages=1, attempts=1, committed_at=utc_time(1_700_000_000.0)
    )


@dataclass
class Served:
    """A running server: `client` connects to its Unix socket."""

    server: ApiServer
    memory: Memory
    hub: EventHub
    path: Path
    client: httpx2.Client
    run: Callable[[Any], Any]

    def connect(self) -> socket.socket:
        """Returns a raw connection, for requests that no HTTP library would send."""
        plain = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        plain.settimeout(PATIENCE_S)
        plain.connect(str(self.path))
        return plain


def memory_ports(memory: Memory, asks: Any = None) -> MemoryPorts:
    """Returns the ports, without those that no edge-case test uses: calling one of them fails the test."""
    unused: Any = dict.fromkeys(each.name for each in fields(MemoryPorts))
    return MemoryPorts(**unused | {"queries": memory, "documents": memory, "transfer": memory, "asks": asks})


def api_server(
    memory: Memory,
    hub: EventHub,
    settings: ApiSettings,
    inherited: socket.socket | None = None,
    asks: Any = None,
    **more: Any,
) -> ApiServer:
    """Yields a server with an open memory and the page."""
    gate = StartupGate()
    gate.open(memory_ports(memory, asks))
    more = {
        "more_routes": [page_routes.add_routes, add_service_routes],
        "tcp_middleware": [LoginMiddleware],
        **more,
    }
    return ApiServer(StartupPorts(memory, hub), gate, settings, inherited, **more)


@contextmanager
def loop_in_thread() -> Iterator[Callable[[Any], Any]]:
    """Yields a function that runs a coroutine on a loop in another thread and returns its result."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def run(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(PATIENCE_S)

    try:
        yield run
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE_S)
        loop.close()


@contextmanager
def socket_folder() -> Iterator[Path]:
    """Yields a folder whose path is short enough for a Unix socket, wherever pytest's folder is."""
    with tempfile.TemporaryDirectory(prefix="hippod-", dir="/tmp") as folder:
        yield Path(folder)


@contextmanager
def served(
    limits: ApiLimits | None = None,
    asks: Any = None,
    hub: EventHub | None = None,
    tcp: tuple[str, int] | None = None,
    token_file: Path | None = None,
    **more: Any,
) -> Iterator[Served]:
    memory, hub = Memory(), hub or EventHub()
    with socket_folder() as folder, loop_in_thread() as run:
        path = folder / "s"
        settings = ApiSettings(path, tcp=tcp, token_file=token_file, limits=limits or ApiLimits())

        async def make() -> ApiServer:
            return api_server(memory, hub, settings, asks=asks, **more)

        server = run(make())
        run(server.start())
        transport = httpx2.HTTPTransport(uds=str(path))
        try:
            with httpx2.Client(transport=transport, base_url="http://hippod", timeout=PATIENCE_S) as client:
                yield Served(server, memory, hub, path, client, run)
        finally:
            memory.released.set()
            run(server.stop(5.0))


def until(reached: Callable[[], bool], what: str) -> None:
    """Returns once `reached()` is true; fails after a time limit."""
    deadline = time.monotonic() + PATIENCE_S
    while not reached():
        assert time.monotonic() < deadline, f"it never came to: {what}"
        time.sleep(0.005)


def read_all(plain: socket.socket) -> bytes:
    """Reads until the connection ends, in any way."""
    found = b""
    while True:
        try:
            chunk = plain.recv(65536)
        except ConnectionResetError:
            return found
        if not chunk:
            return found
        found += chunk


def read_one(plain: socket.socket) -> bytes:
    """Reads one answer with a Content-Length; the connection stays open."""
    found = b""
    while b"\r\n\r\n" not in found:
        chunk = plain.recv(65536)
        assert chunk, "the connection ended before the answer's head did"
        found += chunk
    head, _, body = found.partition(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    while len(body) < length:
        chunk = plain.recv(65536)
        assert chunk, "the connection ended before the answer did"
        body += chunk
    return head + b"\r\n\r\n" + body
