"""The ports: protocols that the services implement for the routes, one per concern, in the contract's types.

Every method runs on the API's event loop and must not block it. Work that takes more than a millisecond (store, model,
hashing, parsing, building a long list of models) runs in a thread (`asyncio.to_thread`, or an executor of the port with as
many threads as may run at once) and is awaited. A route holds no lock while it awaits a port. When the client disconnects or
the daemon stops, `wait`, `ask` and the iterators are cancelled or closed, and clean up in `finally`. A port refuses a request
with an error of `daemon.errors`; any other exception is logged and becomes a 500 without details.
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
from daemon.contract.costs import CostsRequest, CostsResponse
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
from daemon.contract.status import DaemonState, Event, ExtractionResponse, Overview, ReencodeResponse, Status
from daemon.contract.transfer import BackupResponse, ImportResponse, VerifyRequest, VerifyResponse

Sees = Callable[[AbstractSet[str], Any], bool]
"""Takes a client's labels and a document of the store; returns whether the client sees the document."""


class QueryPort(Protocol):
    async def wait_for_positions(self, request: QueryRequest) -> None:
        """Returns when the memory contains all positions in `after`. Raises TimedOut after `after_timeout_s`."""
        ...

    async def query(self, request: QueryRequest) -> QueryResponse:
        """Answers from one snapshot. Raises NotConfigured for a mode or filter that the configuration lacks."""
        ...


class GraphPort(Protocol):
    async def graph(self, request: GraphRequest) -> GraphResponse | None:
        """Answers from one snapshot. Returns None if the phrase or passage to expand is unknown; raises like `query`."""
        ...


class AskPort(Protocol):
    async def ask(self, request: AskRequest) -> AskResponse:
        """Answers a question with the model. Raises UpstreamFailed if the model fails."""
        ...

    def stream(self, request: AskRequest) -> AsyncGenerator[StepEvent | AskProgress | AskResponse, None]:
        """Yields the events of each step, the answer's text so far (each time all of it), and last the answer.

        Raises like `ask`.
        """
        ...


class JudgePort(Protocol):
    async def judge(self, request: JudgeRequest) -> JudgeResponse:
        """Judges an answer with the model. Raises UpstreamFailed if the model fails."""
        ...


class SessionPort(Protocol):
    async def sessions(self, scope: Scope | None = None) -> SessionList:
        """Returns the client's sessions that have not expired, sorted by name."""
        ...

    async def remove_sessions(self, names: Sequence[str], scope: Scope | None = None) -> RemoveSessionsResponse: ...


class CostPort(Protocol):
    async def costs(self, request: CostsRequest) -> CostsResponse: ...


class ExtractionPort(Protocol):
    async def reextract(self, dry_run: bool) -> ExtractionResponse:
        """Queues the passages that another extractor has read; with `dry_run`, only estimates their cost."""
        ...

    async def backfill(self) -> ExtractionResponse:
        """Starts the backfill and returns. Raises NotConfigured if a server does the extraction."""
        ...

    async def status(self) -> ExtractionResponse: ...


class ReencodingPort(Protocol):
    async def reencode(self) -> ReencodeResponse:
        """Begins to replace the vectors by those of the configured encoder, and returns the work that is left.

        Raises Conflict if the disk has too little space, and UpstreamFailed if the encoder cannot be loaded.
        """
        ...


class DocumentPort(Protocol):
    async def add(self, documents: Sequence[dict[str, Any]], scope: Scope | None = None) -> AddResponse:
        """Adds all documents or none; returns when a crash cannot lose them.

        Raises Invalid, naming the first wrong fields (`documents[3].text`), also for labels that the client may not assign.
        """
        ...

    async def remove(self, uris: Sequence[str], scope: Scope | None = None) -> RemoveResponse:
        """Removes documents. Reports a document outside `scope` as missing."""
        ...

    async def remove_source(self, request: RemoveSourceRequest, scope: Scope | None = None) -> RemoveSourceResponse:
        """Removes a source's documents that are in `scope`.

        Raises NotFound if no visible source or document has the name, Conflict for a followed folder.
        """
        ...

    async def documents(self, request: ListRequest) -> DocumentList:
        """Returns at most `request.limit` documents, sorted by URI; `next` is set if there are more."""
        ...

    async def scopes(self, scope: Scope | None = None) -> ScopeList:
        """Returns the sources, labels and folders that a scope within `scope` may name."""
        ...

    async def show(self, key: str, limit: int, scope: Scope | None = None) -> ShowResponse | None:
        """Returns what `key` names (see `daemon.contract.show`), with lists cut at `limit`; None if nothing has that name."""
        ...

    async def retry(self, uris: Sequence[str] | None, scope: Scope | None = None) -> RetryResponse:
        """Retries failed documents; all in `scope` if `uris` is None."""
        ...

    async def confirm(self, source: str) -> ConfirmResponse:
        """Raises NotFound if the source does not exist, Conflict if it has no pending removals."""
        ...


class StatusPort(Protocol):
    def state(self) -> DaemonState:
        """Returns the daemon's state without waiting."""
        ...

    async def status(self, scope: Scope | None = None) -> Status:
        """Returns the status. Without a scope it uses counters only, because every metrics scrape calls it."""
        ...

    async def wait(self, timeout_s: float | None, scope: Scope | None = None) -> Status:
        """Returns when everything that the sources contained at the call is committed or failed. Raises TimedOut."""
        ...


class Subscription(Protocol):
    """One reader of events, registered on creation. Its queue is bounded: one `lost` event replaces all dropped events."""

    def __aiter__(self) -> AsyncIterator[Event]: ...

    async def __anext__(self) -> Event: ...

    def close(self) -> None: ...


class Events(Protocol):
    """Implemented by `daemon.api.event_hub.EventHub`."""

    def events(self, view: EventView | None = None) -> Subscription:
        """Adds a reader. `view` selects the events that it sees; without one it sees all."""
        ...

    def close(self) -> None:
        """Ends every present and future subscription, each after its queued events."""
        ...

    def disconnect(self) -> None:
        """Ends every present subscription after its queued events."""
        ...


class TransferPort(Protocol):
    def export(self, format: ExportFormat, scope: Scope | None = None) -> AsyncGenerator[bytes, None]:
        """Yields one snapshot in chunks of about 64 KiB, produced on demand: whole lines unless the format is compressed."""
        ...

    async def import_openie(self, chunks: AsyncIterator[bytes]) -> ImportResponse:
        """Imports a file. Spools the bytes to disk as they arrive. Raises Invalid if it is not such a file."""
        ...

    async def verify(self, request: VerifyRequest) -> VerifyResponse: ...

    async def backup(self, directory: str) -> BackupResponse:
        """Raises Conflict if the directory cannot be written."""
        ...


class OverviewPort(Protocol):
    async def overview(self, scope: Scope | None = None) -> Overview:
        """Returns the memory's growth and its newest documents, for the page."""
        ...


@dataclass(frozen=True, slots=True)
class MemoryPorts:
    """The ports that need the open memory; routes get them from `daemon.api.startup_gate`.

    `asks` and `judge` are None if no language model is configured.
    """

    queries: QueryPort
    documents: DocumentPort
    transfer: TransferPort
    extractions: ExtractionPort
    reencoding: ReencodingPort
    graphs: GraphPort
    sessions: SessionPort
    costs: CostPort
    overviews: OverviewPort
    asks: AskPort | None
    judge: JudgePort | None = None


@dataclass(frozen=True, slots=True)
class StartupPorts:
    """The ports that answer from the first request on, while the memory is still opening."""

    status: StatusPort
    events: Events
    sees: Sees = field(default=lambda _labels, _document: False)
    """Returns whether a client with these labels sees a document, using the labels that sources have now."""
