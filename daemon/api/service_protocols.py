"""What the routes need of the rest of the daemon, one protocol a concern, in the contract's types.

Every method runs on the API's event loop and must not hold it: whatever takes more than a millisecond (the store, a
model, hashing, parsing, building a long list of models) belongs in a thread (`asyncio.to_thread`, or an executor of the
port's own with as many threads as may run at a time) and is awaited. A route awaits a port under no lock. When the
client goes away or the daemon stops, `wait`, `ask` and the iterators are cancelled or closed: they clean up in
`finally`, as any coroutine does. A port refuses with an error of `daemon.errors`; anything else it raises is logged
and becomes a 500 that says nothing of the inside.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Protocol

from daemon.api.access.event_view import EventView
from daemon.contract.answering.ask import AskProgress, AskRequest, AskResponse
from daemon.contract.answering.judge import JudgeRequest, JudgeResponse
from daemon.contract.answering.sessions import RemoveSessionsResponse, SessionList
from daemon.contract.answering.steps import StepEvent
from daemon.contract.choices import ExportFormat
from daemon.contract.documents import (
    AddResponse,
    ConfirmResponse,
    DocumentList,
    ListRequest,
    RemoveResponse,
    RemoveSourceRequest,
    RemoveSourceResponse,
    RetryResponse,
)
from daemon.contract.graph import GraphRequest, GraphResponse
from daemon.contract.query import QueryRequest, QueryResponse
from daemon.contract.scope import Scope, ScopeList
from daemon.contract.show import ShowResponse
from daemon.contract.status import DaemonState, Event, ExtractionResponse, Overview, Status
from daemon.contract.transfer import BackupResponse, ImportResponse, VerifyResponse

Sees = Callable[[AbstractSet[str], Any], bool]
"""Of labels and a document of the store's."""


class QueryPort(Protocol):
    async def wait_for_positions(self, request: QueryRequest) -> None:
        """Returns once the memory has all that `after` names. TimedOut after `after_timeout_s`."""
        ...

    async def query(self, request: QueryRequest) -> QueryResponse:
        """From one snapshot. NotConfigured for a mode or filter that the configuration has not."""
        ...


class GraphPort(Protocol):
    async def graph(self, request: GraphRequest) -> GraphResponse | None:
        """From one snapshot; refuses as a query does. None where the phrase or passage to expand is not in the memory."""
        ...


class AskPort(Protocol):
    async def ask(self, request: AskRequest) -> AskResponse:
        """Upstream when the LLM fails."""
        ...

    def stream(self, request: AskRequest) -> AsyncGenerator[StepEvent | AskProgress | AskResponse, None]:
        """What happens in each step; all of the answer's text so far, each time longer; last the answer itself. Fails as
        `ask` does."""
        ...


class JudgePort(Protocol):
    async def judge(self, request: JudgeRequest) -> JudgeResponse:
        """Upstream when the LLM fails."""
        ...


class SessionPort(Protocol):
    async def sessions(self, scope: Scope | None = None) -> SessionList:
        """Those of this client that have not expired, by name."""
        ...

    async def remove_sessions(self, names: Sequence[str], scope: Scope | None = None) -> RemoveSessionsResponse: ...


class ExtractionPort(Protocol):
    async def reextract(self) -> ExtractionResponse: ...

    async def backfill(self) -> ExtractionResponse:
        """Returns once it is under way. NotConfigured where passages are read by a server."""
        ...

    async def status(self) -> ExtractionResponse: ...


class DocumentPort(Protocol):
    async def add(self, documents: Sequence[dict[str, Any]], scope: Scope | None = None) -> AddResponse:
        """All or none. Returns once a crash does not lose them. Invalid names the first bad ones (`documents[3].text`), and
        those whose labels the client may not give."""
        ...

    async def remove(self, uris: Sequence[str], scope: Scope | None = None) -> RemoveResponse:
        """What is out of `scope` is missing."""
        ...

    async def remove_source(self, request: RemoveSourceRequest, scope: Scope | None = None) -> RemoveSourceResponse:
        """Of what is in `scope`. NotFound for a name without a source or document in sight; Conflict for a followed folder."""
        ...

    async def documents(self, request: ListRequest) -> DocumentList:
        """At most `request.limit`, by URI; `next` is set when more follow."""
        ...

    async def scopes(self, scope: Scope | None = None) -> ScopeList:
        """What a scope within `scope` may name."""
        ...

    async def show(self, key: str, limit: int, scope: Scope | None = None) -> ShowResponse | None:
        """What `key` names (see `daemon.contract.show`), lists cut at `limit`; None when nothing has that name."""
        ...

    async def retry(self, uris: Sequence[str] | None, scope: Scope | None = None) -> RetryResponse:
        """None: every failed document of `scope`."""
        ...

    async def confirm(self, source: str) -> ConfirmResponse:
        """NotFound where there is no such source, Conflict where it holds nothing back."""
        ...


class StatusPort(Protocol):
    def state(self) -> DaemonState:
        """At once."""
        ...

    async def status(self, scope: Scope | None = None) -> Status:
        """From counters where there is no scope: it is called at every scrape."""
        ...

    async def wait(self, timeout_s: float | None, scope: Scope | None = None) -> Status:
        """Returns once all that the sources had when it was called is committed or failed; TimedOut after the time."""
        ...


class Subscription(Protocol):
    """One reader of events, registered from the moment it exists, and bounded: a `lost` event replaces those it missed."""

    def __aiter__(self) -> AsyncIterator[Event]: ...

    async def __anext__(self) -> Event: ...

    def close(self) -> None: ...


class Events(Protocol):
    """`daemon.api.event_hub.EventHub` is one."""

    def events(self, view: EventView | None = None) -> Subscription:
        """`view`: what of them the reader sees; all without one."""
        ...

    def close(self) -> None:
        """Ends every subscription once it has given the events that wait in it, and those that come."""
        ...

    def disconnect(self) -> None:
        """Ends every subscription so."""
        ...


class TransferPort(Protocol):
    def export(self, format: ExportFormat, scope: Scope | None = None) -> AsyncGenerator[bytes, None]:
        """Whole lines (but for a packed format), many to a chunk (64 KiB or so), of one snapshot, made as asked for."""
        ...

    async def import_openie(self, chunks: AsyncIterator[bytes]) -> ImportResponse:
        """Reads the file's bytes as they arrive (spooled to disk, not to memory). Invalid when it is no such file."""
        ...

    async def verify(self) -> VerifyResponse: ...

    async def backup(self, directory: str) -> BackupResponse:
        """Conflict where the directory cannot be written."""
        ...


class OverviewPort(Protocol):
    async def overview(self, scope: Scope | None = None) -> Overview:
        """How the memory has grown, and what came last: for the page."""
        ...


@dataclass(frozen=True, slots=True)
class MemoryPorts:
    """What needs the open memory; `daemon.api.startup_gate` gives them to routes. `asks` and `judge` are None where no
    LLM is configured."""

    queries: QueryPort
    documents: DocumentPort
    transfer: TransferPort
    extractions: ExtractionPort
    graphs: GraphPort
    sessions: SessionPort
    overviews: OverviewPort
    asks: AskPort | None
    judge: JudgePort | None = None


@dataclass(frozen=True, slots=True)
class StartupPorts:
    """What answers from the first request on, while the memory is still being opened."""

    status: StatusPort
    events: Events
    sees: Sees = field(default=lambda _labels, _document: False)
    """Whether a client with these labels sees a document, by the labels that sources have now."""
