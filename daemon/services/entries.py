"""A document as `ls` lists it."""

from daemon.contract import DocumentEntry, DocumentState
from daemon.contract.model import moment
from store.types import Document


def entry(document: Document) -> DocumentEntry:
    """A document as `ls` lists it."""
    return DocumentEntry(
        uri=document.uri,
        title=document.title,
        state=DocumentState(document.state.value),
        error=document.error,
        passages=len(document.passages),
        attempts=document.attempts,
        modified_at=moment(document.modified_at),
        committed_at=moment(document.committed_at),
    )
