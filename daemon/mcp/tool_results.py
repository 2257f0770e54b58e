"""Results of tools that do not return a response of the HTTP API unchanged."""

from pydantic import Field

from daemon.contract.answering.ask import Citation
from daemon.contract.base import Response, is_empty
from daemon.contract.documents import DocumentEntry
from daemon.contract.query import Tokens


class Answered(Response):
    """An answer without the record of its steps. `citations`: the passages that support it. `found`: false if the memory does
    not contain the answer. `steps`: number of steps. `note`: what the user should know about the answer."""

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


class Forgotten(Response):
    """Counts, and the URIs without a document. `done`: false if the time ran out first."""

    removed: int
    missing: int
    missing_uris: list[str] = Field(default_factory=list)
    done: bool
