"""The services that the routes call, as the API receives them. The API names their classes only for the type checker.

Every method runs on the API's event loop and must not block it. Work that takes more than a millisecond (store, model,
hashing, parsing, building a long list of models) runs in a thread (`asyncio.to_thread`, or an executor of the service with as
many threads as may run at once) and is awaited. A route holds no lock while it awaits a service. When the client disconnects
or the daemon stops, `wait`, `ask` and the iterators are cancelled or closed, and clean up in `finally`. A service refuses a
request with an error of `daemon.errors`; any other exception is logged and becomes a 500 without details.
"""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from daemon.api.event_hub import EventHub

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


@dataclass(frozen=True, slots=True)
class MemoryPorts:
    """The services that need the open memory; routes get them from `daemon.api.startup_gate`.

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
    """The services that answer from the first request on, while the memory is still opening."""

    status: "StatusService"
    events: EventHub
    sees: Sees = field(default=lambda _labels, _document: False)
    """Returns whether a client with these labels sees a document, using the labels that sources have now."""
