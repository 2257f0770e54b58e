"""Results of tools, where a tool does not return an answer of the socket API as it is."""

from pydantic import Field

from daemon.contract.answering.ask import Citation
from daemon.contract.base import Response, is_empty
from daemon.contract.documents import DocumentEntry
from daemon.contract.query import Tokens


class Answered(Response):
    """An answer without the record of its steps. `citations`: the passages that support it; `found` is false where the
    memory does not hold the answer; `steps`: how many were made; `note`: what a user should know about it."""

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
    """The text of a document's passages `first` to `last`, of `passages` in all; `next` is where to go on, if more follow."""

    uri: str
    title: str
    text: str
    first: int
    last: int
    passages: int
    next: int | None = Field(default=None, exclude_if=is_empty)


class Added(Response):
    """`searchable` is false where the document was still being read when the wait was over, or has failed: `document` says
    where it stands, once anything is known of it. It is not lost in either case."""

    uri: str
    searchable: bool
    document: DocumentEntry | None = None


class Forgotten(Response):
    """Counts, and the URIs of which there was no document. `done` is false where the wait was over first."""

    removed: int
    missing: int
    missing_uris: list[str] = Field(default_factory=list)
    done: bool
