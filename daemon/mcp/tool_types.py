"""The arguments of each tool, and the results that are not a response of the HTTP API. An agent sees arguments and results as
JSON schemas."""

from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, Field
from pydantic_core import PydanticCustomError

from daemon.contract.answering.ask import Citation
from daemon.contract.base import Request, Response, is_empty
from daemon.contract.choices import DocumentState
from daemon.contract.documents import DOCUMENT_KEYS, INTERNAL_KEYS, DocumentEntry
from daemon.contract.query import Mode, QueryText, Tokens
from daemon.contract.scope import Scope

K_MAX = 50
"""Maximum passages that an agent may request; more would fill its context."""
WAIT_MAX_S = 600.0

Key = Annotated[str, Field(min_length=1, max_length=32_768)]
PartOfMemory = Annotated[
    Scope | None,
    Field(
        description='Use only some documents, as if the memory contained no others: {"in": [folders or URIs], "source": name, '
        '"labels": [any of them], "where": {metadata key: value}, "since": time, "until": time}. Leave it out to use all.'
    ),
]
Seconds = Annotated[float, Field(ge=0, le=WAIT_MAX_S, allow_inf_nan=False)]


RESERVED_KEYS = DOCUMENT_KEYS | INTERNAL_KEYS
"""Keys that metadata may not have: they would replace the text, name, labels or triples, or remove the document."""


def _free_keys(metadata: dict[str, Any]) -> dict[str, Any]:
    if reserved := sorted(RESERVED_KEYS & metadata.keys()):
        raise PydanticCustomError(
            "reserved_key", "{keys}: not free for metadata; choose another key", {"keys": ", ".join(reserved)}
        )
    return metadata


class Search(Request):
    query: QueryText = Field(description="What to look for: a question or a few words, in plain language.")
    k: int = Field(default=5, ge=1, le=K_MAX, description="How many passages to return.")
    mode: Mode | None = Field(
        default=None,
        description="Retrieval mode; leave it out for the configured one. 'dense' (vectors alone) and 'bm25' (words "
        "alone) are for comparison.",
    )
    as_of: Annotated[int, Field(ge=1)] | AwareDatetime | None = Field(
        default=None, description="Search an earlier state of the memory: an RFC 3339 time, or the number of a commit."
    )
    scope: PartOfMemory = None
    why: bool = Field(
        default=False,
        description="Also explain each passage: its similarity to the query, the phrases that its score comes from, and the "
        "path of triples that leads to it.",
    )


class Ask(Request):
    question: QueryText = Field(description="The question, in full and in plain language.")
    k: int = Field(default=5, ge=1, le=K_MAX, description="How many passages the answer may draw on.")
    deep: bool = Field(
        default=False,
        description="Reason in several steps over a working memory: for questions that one search does not answer. "
        "Slower, and many calls to the model.",
    )
    scope: PartOfMemory = None
    steps: int | None = Field(
        default=None, ge=1, le=20, description="Maximum number of steps, for questions in several steps."
    )


class Add(Request):
    text: str = Field(min_length=1, description="The document's text; hippod splits it into passages.")
    title: str | None = Field(default=None, description="A title; it is searched too.")
    metadata: Annotated[dict[str, Any], AfterValidator(_free_keys)] | None = Field(
        default=None,
        description="Anything else to keep with the document, such as an author. These keys are not free: "
        f"{', '.join(sorted(RESERVED_KEYS))}.",
    )
    wait_s: Seconds = Field(
        default=30.0,
        description="How long to wait until the document can be found. It is safe before that, and 0 does not wait.",
    )


class Forget(Request):
    uris: list[Key] = Field(
        min_length=1, max_length=1_000, description="URIs of documents, as search, show and the resources give them."
    )


class Show(Request):
    key: Key = Field(
        description="A document's URI, a passage's id, a phrase, or a triple as a JSON array "
        '(\'["subject", "predicate", "object"]\').'
    )
    limit: int = Field(default=20, ge=1, le=1_000, description="Maximum length of each list of connected items.")


class List(Request):
    prefix: str = Field(
        default="",
        description="Only documents whose URI begins with this text, such as file:///srv/notes/ or added:. Empty for all.",
    )
    state: DocumentState = Field(
        default=DocumentState.INDEXED,
        description="Which documents: 'indexed' (searchable), 'pending' (waiting to be read), 'failed' or 'skipped' (with a "
        "reason).",
    )
    limit: int = Field(default=100, ge=1, le=1_000, description="How many to return.")
    after: str | None = Field(default=None, description="The `next` of the previous page, to continue after it.")


class Read(Request):
    uri: Key = Field(description="A document's URI, as search and list give it.")
    first: int = Field(default=1, ge=1, description="The passage to begin with, counted from 1.")
    max_chars: int = Field(
        default=20_000,
        ge=1,
        le=200_000,
        description="Approximate number of characters to return; at least one passage.",
    )


class Status(Request):
    pass


class Answered(Response):
    """An answer without the record of its steps. `citations`: the passages that support the answer. `found`: false if the
    memory does not contain the answer. `steps`: number of steps. `note`: what the user should know about the answer."""

    question: str
    answer: str
    short: str = ""
    found: bool = True
    citations: list[Citation]
    steps: int
    tokens: Tokens
    took_ms: float
    stopped: str | None = Field(default=None, exclude_if=is_empty)
    note: str | None = Field(default=None, exclude_if=is_empty)


class DocumentText(Response):
    """The text of passages `first` to `last` of a document with `passages` passages. `next`: where to continue, if there are
    more."""

    uri: str
    title: str
    text: str
    first: int
    last: int
    passages: int
    next: int | None = Field(default=None, exclude_if=is_empty)


class Added(Response):
    """`searchable`: false if the document was still waiting when the time ran out, or has failed; `document` contains its
    state, if it is known. The document is stored in either case."""

    uri: str
    searchable: bool
    document: DocumentEntry | None = None
