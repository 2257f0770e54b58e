"""Where things are on the socket, and the words that select among them."""

from enum import StrEnum
from urllib.parse import quote

JSON = "application/json"
NDJSON = "application/x-ndjson"
PROBLEM_JSON = "application/problem+json"
EVENT_STREAM = "text/event-stream"
GRAPHML = "application/graphml+xml"
GZIP = "application/gzip"


class Route(StrEnum):
    """The routes of the socket API."""

    QUERY = "/v1/query"
    GRAPH = "/v1/graph"
    ASK = "/v1/ask"
    SESSIONS = "/v1/sessions"
    DOCUMENTS = "/v1/documents"
    RETRY = "/v1/retry"
    IMPORT = "/v1/import"
    STATUS = "/v1/status"
    WAIT = "/v1/wait"
    REEXTRACT = "/v1/reextract"
    BACKFILL = "/v1/backfill"
    EXTRACTION = "/v1/extraction"
    EVENTS = "/v1/events"
    EXPORT = "/v1/export"
    VERIFY = "/v1/verify"
    BACKUP = "/v1/backup"
    HEALTH = "/healthz"
    METRICS = "/metrics"
    OPENAPI = "/openapi.json"


def document_path(key: str) -> str:
    """The path that shows `key`: a document's URI, a passage's id, a phrase, or a triple (see `ShowResponse`).

    Everything but letters, digits and `_.-~` is percent-encoded, so `#`, `%`, `/` and newlines come back as they were.
    """
    return f"{Route.DOCUMENTS}/{quote(key, safe='')}"


class Mode(StrEnum):
    """How a query finds passages."""

    FUSED = "fused"
    HIPPORAG2 = "hipporag2"
    QUERY_TO_NODE = "query-to-node"
    NER_TO_NODE = "ner-to-node"
    HIPPORAG = "hipporag"
    DENSE = "dense"
    BM25 = "bm25"


class Filter(StrEnum):
    """Who filters the linked triples: `auto` is the LLM when one is configured."""

    AUTO = "auto"
    LLM = "llm"
    NONE = "none"


class Only(StrEnum):
    """To which kind of investigation a deep question is held: of points in memory, or beyond them."""

    LOCAL = "local"
    GLOBAL = "global"


class Answerer(StrEnum):
    """How a question is answered: from one retrieval, from several, or over a memory of points."""

    SINGLE = "single"
    ITERATIVE = "iterative"
    DEEP = "deep"


class ExportFormat(StrEnum):
    """What `export` writes: everything as JSON lines, or the graph as GraphML, plain or packed (igraph's `graphmlz`)."""

    JSONL = "jsonl"
    GRAPHML = "graphml"
    IGRAPH = "igraph"

    @property
    def media_type(self) -> str:
        return {"jsonl": NDJSON, "graphml": GRAPHML, "igraph": GZIP}[self.value]


class DocumentState(StrEnum):
    """Where a document stands."""

    PENDING = "pending"
    INDEXED = "indexed"
    FAILED = "failed"
    SKIPPED = "skipped"
    REMOVED = "removed"


class DaemonState(StrEnum):
    """Where the daemon stands."""

    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"


class EventName(StrEnum):
    """What `watch` tells of. A reader must pass over names it does not know."""

    PENDING = "pending"
    INDEXED = "indexed"
    FAILED = "failed"
    SKIPPED = "skipped"
    REMOVED = "removed"
    COMMIT = "commit"
    LOST = "lost"
    """The reader was too slow: `count` events before this one were dropped."""
