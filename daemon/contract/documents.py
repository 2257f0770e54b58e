"""What is said of documents, and of adding, removing and reading them again."""

from pydantic import AwareDatetime, Field

from daemon.contract.model import Response, absent
from daemon.contract.routes import DocumentState


class Spent(Response):
    """What one extractor (model and prompt) has been asked, and what that took, over the life of the store."""

    extractor: str
    passages: int
    prompt_tokens: int
    completion_tokens: int


class ExtractionResponse(Response):
    """`requeued`: passages that this request added to those `waiting`. `running`: a backfill is under way."""

    extractor: str
    requeued: int
    waiting: int
    failed: int
    running: bool
    error: str | None = Field(default=None, exclude_if=absent)
    waiting_for: str | None = Field(default=None, exclude_if=absent)
    spent: list[Spent]


class DocumentEntry(Response):
    """`passages` and `attempts` are counts; `error` says why a document is failed or skipped."""

    uri: str
    title: str
    state: DocumentState
    error: str | None = None
    passages: int
    attempts: int
    modified_at: AwareDatetime | None = None
    committed_at: AwareDatetime | None = None


class DocumentList(Response):
    """In order of URI. `next` is there when more follow: send it back as `after`."""

    documents: list[DocumentEntry]
    next: str | None = Field(default=None, exclude_if=absent)


class AddResponse(Response):
    """Once it is sent, a crash does not lose the documents."""

    accepted: int
    documents: list[str]


class RemoveResponse(Response):
    """Counts; `missing_uris` names those of which no document was found."""

    removed: int
    missing: int
    missing_uris: list[str] = Field(default_factory=list, exclude_if=absent)


class RetryResponse(Response):
    """How many documents are to be tried again."""

    requeued: int


class ImportResponse(Response):
    """Counts; `skipped` are malformed triples."""

    passages: int
    triples: int
    skipped: int
