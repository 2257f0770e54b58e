"""The paths and media types of the HTTP API, and the declaration of a service's method as a route."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, TypeVar
from urllib.parse import quote

JSON = "application/json"
NDJSON = "application/x-ndjson"
PROBLEM_JSON = "application/problem+json"
EVENT_STREAM = "text/event-stream"
GRAPHML = "application/graphml+xml"
GZIP = "application/gzip"
Method = TypeVar("Method", bound=Callable[..., Any])


class Route(StrEnum):
    QUERY = "/v1/query"
    GRAPH = "/v1/graph"
    ASK = "/v1/ask"
    JUDGE = "/v1/judge"
    CHAT = "/v1/chat/completions"
    MODELS = "/v1/models"
    SESSIONS = "/v1/sessions"
    SCOPES = "/v1/scopes"
    DOCUMENTS = "/v1/documents"
    RETRY = "/v1/retry"
    CONFIRM = "/v1/confirm"
    REMOVE_SOURCE = "/v1/remove-source"
    IMPORT = "/v1/import"
    STATUS = "/v1/status"
    WAIT = "/v1/wait"
    REEXTRACT = "/v1/reextract"
    REENCODE = "/v1/reencode"
    BACKFILL = "/v1/backfill"
    EXTRACTION = "/v1/extraction"
    COSTS = "/v1/costs"
    EVENTS = "/v1/events"
    EXPORT = "/v1/export"
    VERIFY = "/v1/verify"
    BACKUP = "/v1/backup"
    HEALTH = "/healthz"
    METRICS = "/metrics"
    OPENAPI = "/openapi.json"


def document_path(key: str) -> str:
    """Returns the path that shows `key`: a document's URI, a passage's id, a phrase, or a triple (`daemon.contract.documents`).

    Percent-encodes everything except letters, digits and `_.-~`, so that `#`, `%`, `/` and newlines arrive unchanged.
    """
    return f"{Route.DOCUMENTS}/{quote(key, safe='')}"


class Need(StrEnum):
    """What a route requires of the requester: nothing, to be any client, or a particular right."""

    NOTHING = "nothing"
    CLIENT = "client"
    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


def served(method: str, path: Route, need: Need, *statuses: int, **options: bool) -> Callable[[Method], Method]:
    """Declares the decorated method as a route. It takes a request of the contract, or nothing.

    The arguments are those of `daemon.api.endpoints.Endpoints.add`.
    """

    def declared(function: Method) -> Method:
        function.__dict__["served"] = (method, path, need, *statuses), options
        return function

    return declared
