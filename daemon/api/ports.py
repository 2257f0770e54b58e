"""The services that the routes call, limited to one client's documents, and the gate for requests during the start.

The services' classes are imported for the type checker only. Requests of a client are limited to its documents, whatever scope
they name. The API listens before the memory is open; until then, requests wait at `StartupGate`.

Every method runs on the API's event loop and must not block it. Work that takes more than a millisecond (store, model, hashing,
parsing, building a long list of models) runs in a thread (`asyncio.to_thread`, or an executor of the service with as many
threads as may run at once) and is awaited. A route holds no lock while it awaits a service. When the client disconnects or the
daemon stops, `wait`, `ask` and the iterators are cancelled or closed, and clean up in `finally`. A service refuses a request
with an error of `daemon.errors`; any other exception is logged and becomes a 500 without details.
"""

import asyncio
import inspect
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from daemon.api.access.client import Client
from daemon.api.event_hub import EventHub, EventSubscription, EventView
from daemon.errors import Forbidden, NotReady

if TYPE_CHECKING:
    from daemon.services.answering.ask import AskService
    from daemon.services.answering.judging import JudgeService
    from daemon.services.answering.sessions import SessionService
    from daemon.services.documents.document_service import DocumentService
    from daemon.services.extraction import ExtractionService
    from daemon.services.freshness import Freshness
    from daemon.services.graph import GraphService
    from daemon.services.query import QueryService
    from daemon.services.reencoding import Reencoding
    from daemon.services.status import StatusService
    from daemon.services.transfer import TransferService

Sees = Callable[[AbstractSet[str], Any], bool]
"""Takes a client's labels and a document of the store; returns whether the client sees the document."""
WHOLE_ONLY = "This operation concerns the whole memory, and this client sees only a part of it."
"""Message for operations without a scope. These operations need the right `admin`, which only clients that see everything can
have, so `daemon.api.access.rights` already refuses requests of restricted clients."""
UNLIMITED = {"judge"}
"""The ports that do not read the memory."""
STARTUP_WAIT_S = 100.0
"""How long a request waits for the memory before it is refused; less than hippoctl's own timeout."""


@dataclass(frozen=True, slots=True)
class MemoryPorts:
    """The services that need the open memory; routes get them from `daemon.api.ports`.

    `asks` and `judge` are None if no language model is configured.
    """

    queries: "QueryService"
    freshness: "Freshness"
    documents: "DocumentService"
    transfer: "TransferService"
    extractions: "ExtractionService"
    reencoding: "Reencoding"
    graphs: "GraphService"
    sessions: "SessionService"
    asks: "AskService | None"
    judge: "JudgeService | None" = None


@dataclass(frozen=True, slots=True)
class StartupPorts:
    """The services that answer while the memory is still opening."""

    status: "StatusService"
    events: EventHub
    sees: Sees = field(default=lambda _labels, _document: False)
    """Decides with the present labels of the sources."""


def memory_ports(ports: MemoryPorts, client: Client) -> MemoryPorts:
    """Returns `ports` limited to what `client` may see; `ports` itself if the client sees everything."""
    if client.labels is None:
        return ports
    limited: dict[str, Any] = {
        each.name: _LimitedPort(client, port)
        for each in fields(ports)
        if each.name not in UNLIMITED and (port := getattr(ports, each.name)) is not None
    }
    return replace(ports, **limited)


def startup_ports(ports: StartupPorts, client: Client) -> StartupPorts:
    """Returns `ports` limited to what `client` may see."""
    if client.labels is None:
        return ports
    status: Any = _LimitedPort(client, ports.status)
    events: Any = _LimitedEvents(client.labels, ports.events, ports.sees)
    return StartupPorts(status, events, ports.sees)


@dataclass(frozen=True, slots=True)
class _LimitedPort:
    """Limits the `scope` of each call, a field of the request or a parameter of the method. A method without a scope is
    refused."""

    client: Client
    port: object

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method: Callable[..., Any] = getattr(self.port, name)

        def limited(*args: Any, **kwargs: Any) -> Any:
            call = inspect.signature(method).bind(*args, **kwargs)
            if "scope" in call.signature.parameters:
                call.arguments["scope"] = self.client.limited(call.arguments.get("scope"))
                return method(*call.args, **call.kwargs)
            requests = [each for each in call.arguments.values() if hasattr(each, "scope")]
            if len(requests) != 1 or len(call.arguments) != 1:
                raise Forbidden(WHOLE_ONLY)
            return method(requests[0].model_copy(update={"scope": self.client.limited(requests[0].scope)}))

        return limited


@dataclass(frozen=True, slots=True)
class _LimitedEvents:
    labels: frozenset[str]
    hub: EventHub
    sees: Sees

    def events(self) -> EventSubscription:
        return self.hub.events(EventView(lambda document: self.sees(self.labels, document)))


class StartupGate:
    """Gives the memory's ports to routes once they exist. Use from one event loop only."""

    def __init__(self, wait_s: float = STARTUP_WAIT_S) -> None:
        self._wait_s = wait_s
        self._decided = asyncio.Event()
        self._ports: MemoryPorts | None = None

    @property
    def is_decided(self) -> bool:
        """Whether the start has succeeded or failed, so that requests no longer wait."""
        return self._decided.is_set()

    def open(self, ports: MemoryPorts) -> None:
        """Lets waiting and later requests use `ports`: the memory is open."""
        self._ports = ports
        self._decided.set()

    def give_up(self) -> None:
        """Refuses waiting and later requests: the memory will not be opened. No effect on an open gate."""
        self._decided.set()

    async def ports(self) -> MemoryPorts:
        """Returns the ports when the gate is open. Raises NotReady after `wait_s`, or if hippod stops first."""
        try:
            async with asyncio.timeout(self._wait_s):
                await self._decided.wait()
        except TimeoutError:
            raise NotReady(
                "hippod is starting: the model and the memory are being opened; try again in a moment"
            ) from None
        if self._ports is None:
            raise NotReady("hippod stopped before it was ready; try again after its restart")
        return self._ports
