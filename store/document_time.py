"""The publication or change time of a document, used to filter queries and to order versions."""

from datetime import UTC, datetime

from store.types import Document


def document_time(document: Document) -> float | None:
    """Returns `published_at` of a document in Unix seconds (UTC without a zone), else the time of its last change."""
    published = document.metadata.get("published_at")
    if isinstance(published, str):
        try:
            time = datetime.fromisoformat(published)
            return (time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            pass
    return document.modified_at
