"""What a client sends."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import ConfigDict, Field, StringConstraints
from pydantic.config import JsonDict

from daemon.contract.given import Given
from daemon.contract.model import WHOLE, Flag, Moment, Number, Request, Whole
from daemon.contract.routes import DocumentState, ExportFormat, Filter, Mode, Only
from daemon.contract.sessions import SessionName

QUERY_CHARS = 32_768
"""The longest query, in characters; an encoder reads a small part of that."""

K_MAX = 1_000
DAMPING_MAX = 0.99
"""The walk's steps grow without bound towards 1: over 80,000 nodes at most 98 at 0.9, 308 at 0.99, 42,000 at 0.999999."""
STEPS_MAX = 20
WAIT_MAX_S = 7 * 24 * 3600.0

BLANK = r"\S"
ABSOLUTE = r"^/[^\x00]*$"
QueryText = Annotated[str, StringConstraints(min_length=1, max_length=QUERY_CHARS, pattern=BLANK)]
Uri = Annotated[str, StringConstraints(min_length=1)]
AsOf = Annotated[int, Field(ge=1), WHOLE] | Moment
"""The number of a commit, or a time (RFC 3339)."""


class RetrievalOverrides(Request):
    """Settings of `[retrieval]` for one query; those left out are as configured."""

    top_triples: Annotated[int, Field(ge=1, le=10_000), WHOLE] | None = None
    seed_phrases: Annotated[int, Field(ge=1, le=10_000), WHOLE] | None = None
    passage_weight: Annotated[Number, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    damping: Annotated[Number, Field(gt=0, le=DAMPING_MAX, allow_inf_nan=False)] | None = None
    passage_nodes: Flag | None = None
    passage_share: Annotated[Number, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    name_share: Annotated[Number, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    temperature: Annotated[Number, Field(ge=0.01, le=10, allow_inf_nan=False)] | None = None


class QueryRequest(Request):
    """`mode`, `filter` and `settings` default to what is configured. `as_of` asks the memory as it was then: a time
    (RFC 3339), or the number of a commit."""

    query: QueryText
    k: Whole = Field(default=5, ge=1, le=K_MAX)
    mode: Mode | None = None
    filter: Filter | None = None
    as_of: AsOf | None = None
    explain: Flag = False
    settings: RetrievalOverrides = RetrievalOverrides()


_NONE: JsonDict = {"type": "null"}
_ON: JsonDict = {"const": True}
_PLAIN: JsonDict = {"deep": {"const": False}, "session": _NONE, "only": _NONE, "update": _ON, "merge": _ON}
_DEEP: JsonDict = {"properties": {"deep": _ON}, "required": ["deep"]}
_ITERATIVE: JsonDict = {"properties": {**_PLAIN, "steps": {"type": "integer"}}, "required": ["steps"]}
_SINGLE: JsonDict = {
    "properties": {**_PLAIN, "steps": _NONE, "max_calls": _NONE, "max_tokens": _NONE, "timeout_s": _NONE}
}


class AskRequest(Request):
    """`steps` alone retrieves again by one thought after the other, at most so often; `deep` works on a memory of points in
    at most `steps` steps (3 by default).

    For `deep`: `session` goes on from the points of that session's earlier questions; `only`, `update` and `merge` are the
    paper's ablations. For both kinds: `max_calls` to the model, `max_tokens` of prompts and answers together, and
    `timeout_s` are budgets; where one is reached the answer is made of what there is, and says so.
    """

    model_config = ConfigDict(json_schema_extra={"anyOf": [_DEEP, _ITERATIVE, _SINGLE]})

    question: QueryText
    deep: Flag = False
    steps: Annotated[int, Field(ge=1, le=STEPS_MAX), WHOLE] | None = None
    k: Whole = Field(default=5, ge=1, le=K_MAX)
    session: SessionName | None = None
    only: Only | None = None
    update: Flag = True
    merge: Flag = True
    max_calls: Annotated[int, Field(ge=1, le=10_000), WHOLE] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000_000), WHOLE] | None = None
    timeout_s: Annotated[Number, Field(gt=0, le=WAIT_MAX_S, allow_inf_nan=False)] | None = None


class AddRequest(Request):
    """JSON documents: `text` is required; `id`, `title`, `url`, `published_at` and `triples` have a meaning.

    Every other key is kept as metadata. A HippoRAG corpus entry (`idx` for `id`) is one too.
    """

    documents: list[Given] = Field(min_length=1)


class RemoveRequest(Request):
    uris: Sequence[Uri] = Field(min_length=1)


class BackupRequest(Request):
    """An absolute path, as the daemon sees it; the directory must be absent or empty."""

    directory: Annotated[str, StringConstraints(min_length=2, pattern=ABSOLUTE)]


class RetryRequest(Request):
    """Without `uris`, every failed document."""

    uris: Sequence[Uri] | None = None


class WaitRequest(Request):
    """Without `timeout_s`, as long as it takes."""

    timeout_s: Annotated[Number, Field(ge=0, le=WAIT_MAX_S, allow_inf_nan=False)] | None = None


class ListRequest(Request):
    """The query string of `GET /v1/documents`: those in `state` whose URI begins with `prefix`, after URI `after`."""

    state: DocumentState | None = None
    prefix: str = ""
    limit: int = Field(default=1_000, ge=1, le=10_000)
    after: str | None = None


class ExportRequest(Request):
    """The query string of `GET /v1/export`."""

    format: ExportFormat = ExportFormat.JSONL


class ShowRequest(Request):
    """The query string of `GET /v1/documents/{uri}`: how long each list may be."""

    limit: int = Field(default=100, ge=1, le=10_000)
