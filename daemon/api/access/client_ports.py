"""The ports as one client sees them: each request is limited to the client's documents, whatever scope the request names."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from daemon.api.access.client import Client
from daemon.api.access.event_view import EventView
from daemon.api.event_hub import EventHub, EventSubscription
from daemon.api.ports import MemoryPorts, Sees, StartupPorts
from daemon.errors import Forbidden

WHOLE_ONLY = "This operation concerns the whole memory, and this client sees only a part of it."
"""The message for operations that take no scope. They need the right `admin`, which only clients that see everything can have,
so `daemon.api.access.rights` refuses these requests first."""

UNLIMITED = {"judge"}
"""The ports that do not read the memory."""


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
    """Returns `ports`, which answer from the first request on, limited to what `client` may see."""
    if client.labels is None:
        return ports
    status: Any = _LimitedPort(client, ports.status)
    events: Any = _LimitedEvents(client.labels, ports.events, ports.sees)
    return StartupPorts(status, events, ports.sees)


@dataclass(frozen=True, slots=True)
class _LimitedPort:
    """Limits the `scope` of each call: that of the request, or the method's parameter. A method with neither is refused."""

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
