"""The ports as one client sees them: each request is limited to the client's documents, whatever scope the request names."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from daemon.api.access.client import Client
from daemon.api.access.event_view import EventView
from daemon.api.service_protocols import (
    AskPort,
    DocumentPort,
    Events,
    GraphPort,
    MemoryPorts,
    OverviewPort,
    QueryPort,
    Sees,
    SessionPort,
    StartupPorts,
    StatusPort,
    Subscription,
    TransferPort,
)
from daemon.contract.answering.ask import AskProgress, AskRequest, AskResponse
from daemon.contract.answering.sessions import RemoveSessionsResponse, SessionList
from daemon.contract.answering.steps import StepEvent
from daemon.contract.choices import NO_RETRIEVAL, ExportFormat
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
from daemon.contract.status import DaemonState, ExtractionResponse, Overview, ReencodeResponse, Status
from daemon.contract.transfer import BackupResponse, ImportResponse, VerifyRequest, VerifyResponse
from daemon.errors import Forbidden

WHOLE_ONLY = "This operation concerns the whole memory, and this client sees only a part of it."
"""The message for operations that need the right `admin`. Only clients that see everything can have that right, so
`daemon.api.access.rights` refuses these requests first."""


def memory_ports(ports: MemoryPorts, client: Client) -> MemoryPorts:
    """Returns `ports` limited to what `client` may see; `ports` itself if the client sees everything."""
    if client.labels is None:
        return ports
    return MemoryPorts(
        queries=_Queries(client, ports.queries),
        documents=_Documents(client, ports.documents),
        transfer=_Transfer(client, ports.transfer),
        extractions=_Extractions(),
        reencoding=_Reencoding(),
        graphs=_Graphs(client, ports.graphs),
        sessions=_Sessions(client, ports.sessions),
        overviews=_Overviews(client, ports.overviews),
        asks=None if ports.asks is None else _Asks(client, ports.asks),
        judge=ports.judge,  # it does not read the memory
    )


def startup_ports(ports: StartupPorts, client: Client) -> StartupPorts:
    """Returns `ports`, which answer from the first request on, limited to what `client` may see."""
    if client.labels is None:
        return ports
    return StartupPorts(_Status(client, ports.status), _Events(client.labels, ports.events, ports.sees), ports.sees)


class _Extractions:
    async def reextract(self, _dry_run: bool) -> ExtractionResponse:
        raise Forbidden(WHOLE_ONLY)

    async def backfill(self) -> ExtractionResponse:
        raise Forbidden(WHOLE_ONLY)

    async def status(self) -> ExtractionResponse:
        raise Forbidden(WHOLE_ONLY)


class _Reencoding:
    async def reencode(self) -> ReencodeResponse:
        raise Forbidden(WHOLE_ONLY)


@dataclass(frozen=True, slots=True)
class _Queries:
    client: Client
    port: QueryPort

    async def wait_for_positions(self, request: QueryRequest) -> None:
        await self.port.wait_for_positions(request.model_copy(update={"scope": self.client.limited(request.scope)}))

    async def query(self, request: QueryRequest) -> QueryResponse:
        return await self.port.query(request.model_copy(update={"scope": self.client.limited(request.scope)}))


@dataclass(frozen=True, slots=True)
class _Graphs:
    client: Client
    port: GraphPort

    async def graph(self, request: GraphRequest) -> GraphResponse | None:
        return await self.port.graph(request.model_copy(update={"scope": self.client.limited(request.scope)}))


@dataclass(frozen=True, slots=True)
class _Asks:
    client: Client
    port: AskPort

    async def ask(self, request: AskRequest) -> AskResponse:
        return await self.port.ask(self._limited(request))

    def stream(self, request: AskRequest) -> AsyncGenerator[StepEvent | AskProgress | AskResponse, None]:
        return self.port.stream(self._limited(request))

    def _limited(self, request: AskRequest) -> AskRequest:
        if request.mode == NO_RETRIEVAL and request.scope is None:
            return request  # the memory is not read
        return request.model_copy(update={"scope": self.client.limited(request.scope)})


@dataclass(frozen=True, slots=True)
class _Sessions:
    client: Client
    port: SessionPort

    async def sessions(self, scope: Scope | None = None) -> SessionList:
        return await self.port.sessions(self.client.limited(scope))

    async def remove_sessions(self, names: Sequence[str], scope: Scope | None = None) -> RemoveSessionsResponse:
        return await self.port.remove_sessions(names, self.client.limited(scope))


@dataclass(frozen=True, slots=True)
class _Documents:
    client: Client
    port: DocumentPort

    async def add(self, documents: Sequence[dict[str, Any]], scope: Scope | None = None) -> AddResponse:
        return await self.port.add(documents, self.client.limited(scope))

    async def remove(self, uris: Sequence[str], scope: Scope | None = None) -> RemoveResponse:
        return await self.port.remove(uris, self.client.limited(scope))

    async def remove_source(self, request: RemoveSourceRequest, scope: Scope | None = None) -> RemoveSourceResponse:
        return await self.port.remove_source(request, self.client.limited(scope))

    async def documents(self, request: ListRequest) -> DocumentList:
        return await self.port.documents(request.model_copy(update={"scope": self.client.limited(request.scope)}))

    async def scopes(self, scope: Scope | None = None) -> ScopeList:
        return await self.port.scopes(self.client.limited(scope))

    async def show(self, key: str, limit: int, scope: Scope | None = None) -> ShowResponse | None:
        return await self.port.show(key, limit, self.client.limited(scope))

    async def retry(self, uris: Sequence[str] | None, scope: Scope | None = None) -> RetryResponse:
        return await self.port.retry(uris, self.client.limited(scope))

    async def confirm(self, _source: str) -> ConfirmResponse:
        raise Forbidden(WHOLE_ONLY)


@dataclass(frozen=True, slots=True)
class _Transfer:
    client: Client
    port: TransferPort

    def export(self, format: ExportFormat, scope: Scope | None = None) -> AsyncGenerator[bytes, None]:
        return self.port.export(format, self.client.limited(scope))

    async def import_openie(self, _chunks: AsyncIterator[bytes]) -> ImportResponse:
        raise Forbidden(WHOLE_ONLY)

    async def verify(self, _request: VerifyRequest) -> VerifyResponse:
        raise Forbidden(WHOLE_ONLY)

    async def backup(self, _directory: str) -> BackupResponse:
        raise Forbidden(WHOLE_ONLY)


@dataclass(frozen=True, slots=True)
class _Overviews:
    client: Client
    port: OverviewPort

    async def overview(self, scope: Scope | None = None) -> Overview:
        return await self.port.overview(self.client.limited(scope))


@dataclass(frozen=True, slots=True)
class _Status:
    client: Client
    port: StatusPort

    def state(self) -> DaemonState:
        return self.port.state()

    async def status(self, scope: Scope | None = None) -> Status:
        return await self.port.status(self.client.limited(scope))

    async def wait(self, timeout_s: float | None, scope: Scope | None = None) -> Status:
        return await self.port.wait(timeout_s, self.client.limited(scope))


@dataclass(frozen=True, slots=True)
class _Events:
    labels: frozenset[str]
    port: Events
    sees: Sees

    def events(self, view: EventView | None = None) -> Subscription:
        assert view is None
        return self.port.events(EventView(lambda document: self.sees(self.labels, document)))

    def close(self) -> None:
        raise Forbidden(WHOLE_ONLY)

    def disconnect(self) -> None:
        raise Forbidden(WHOLE_ONLY)
