"""The HTTP API without its JSON: paths, media types, limits, types of problems, and the declaration of a method as a route.

Does not import pydantic, because hippoctl needs this module before it sends a request or parses a response.
"""

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

TIMEOUT_MAX_S = 7 * 24 * 3600.0
"""Maximum time limit that a client may set."""
QUERY_CHARS_MAX = 32_768
"""Maximum characters of a query. An encoder uses only a small part of such a long query."""
K_MAX = 1_000
NODES_MAX = 2_000
"""Maximum nodes in a response of `graph`. There are at most four edges per node."""
STEPS_MAX = 20
LENGTH_MAX = 4_000
"""Maximum words that may be requested for an answer."""
SESSION_PATTERN = r"^\w[\w.-]{0,59}$"
AFTER_TIMEOUT_MAX_S = 60.0
"""Maximum time that a query may wait for the positions in `after`."""

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


def served(method: str, path: str, need: Need, *statuses: int, **options: Any) -> Callable[[Method], Method]:
    """Declares the decorated method as a route, of a service or of `daemon.api.routes`.

    `daemon.api.endpoints` documents the arguments and the parameters that the method may have. The only parameter of a
    service's method is a request of the contract.
    """

    def declared(function: Method) -> Method:
        function.__dict__["served"] = (method, path, need, *statuses), options
        return function

    return declared


class ProblemType(StrEnum):
    """The kind of error, on which a program can decide. `hippoctl` exits with 4 on NOT_CONFIGURED and 5 on TIMED_OUT."""

    BAD_REQUEST = "urn:hippod:problem:bad-request"
    INVALID = "urn:hippod:problem:invalid"
    UNAUTHORISED = "urn:hippod:problem:unauthorised"
    FORBIDDEN = "urn:hippod:problem:forbidden"
    WRONG_HOST = "urn:hippod:problem:wrong-host"
    NOT_FOUND = "urn:hippod:problem:not-found"
    METHOD_NOT_ALLOWED = "urn:hippod:problem:method-not-allowed"
    CONFLICT = "urn:hippod:problem:conflict"
    TOO_SLOW = "urn:hippod:problem:too-slow"
    TOO_LARGE = "urn:hippod:problem:too-large"
    UNSUPPORTED_MEDIA_TYPE = "urn:hippod:problem:unsupported-media-type"
    TOO_MANY_REQUESTS = "urn:hippod:problem:too-many-requests"
    NOT_CONFIGURED = "urn:hippod:problem:not-configured"
    UPSTREAM = "urn:hippod:problem:upstream"
    BUSY = "urn:hippod:problem:busy"
    NOT_READY = "urn:hippod:problem:not-ready"
    TIMED_OUT = "urn:hippod:problem:timed-out"
    CANNOT_START = "urn:hippod:problem:cannot-start"
    INTERNAL = "urn:hippod:problem:internal"
