"""The choices that a client has, without the types of requests and responses.

hippoctl needs these to define its options. The module does not import pydantic, whose import takes as long as a query.
"""

from enum import StrEnum

from daemon.contract.http.routes import GRAPHML, GZIP, NDJSON
from memory.answering.working_memory.declared_settings import DEEP_SETTINGS
from memory.retrieval.modes import DEFAULT_MODE, MODES
from memory.retrieval.settings import SETTINGS, Setting

__all__ = [
    "BUDGETS",
    "DEEP_ONLY",
    "DEEP_SETTINGS",
    "DEFAULT_MODE",
    "MODES",
    "NO_RETRIEVAL",
    "SETTINGS",
    "Answerer",
    "DocumentState",
    "ExportFormat",
    "Filter",
    "Investigation",
    "Setting",
]

NO_RETRIEVAL = "none"
"""The mode of an answer without retrieval: the model answers from its own knowledge (closed book)."""


DEEP_ONLY = ("session", "only", "update", "merge", "quick", "each_step", "forced", "deep_settings")
"""Fields of a question that have an effect only with `deep`."""
BUDGETS = ("max_calls", "max_tokens", "timeout_s")
"""Fields of a question that have an effect only on questions of several steps."""


class Filter(StrEnum):
    """The filter of linked triples (recognition memory). `auto`: the LLM if one is configured, otherwise no filter."""

    AUTO = "auto"
    LLM = "llm"
    NONE = "none"


class Answerer(StrEnum):
    """How a question is answered: from one retrieval, from several, or over a working memory of points."""

    SINGLE = "single"
    ITERATIVE = "iterative"
    DEEP = "deep"


class Investigation(StrEnum):
    """HGMem's two kinds of investigation: of points in the working memory (local), or outside the working memory (global)."""

    LOCAL = "local"
    GLOBAL = "global"


class DocumentState(StrEnum):
    PENDING = "pending"
    INDEXED = "indexed"
    FAILED = "failed"
    SKIPPED = "skipped"
    REMOVED = "removed"


class ExportFormat(StrEnum):
    """JSON lines of the whole memory, or its graph as GraphML, plain or gzipped (igraph's `graphmlz`)."""

    JSONL = "jsonl"
    GRAPHML = "graphml"
    IGRAPH = "igraph"

    @property
    def media_type(self) -> str:
        return {"jsonl": NDJSON, "graphml": GRAPHML, "igraph": GZIP}[self.value]
