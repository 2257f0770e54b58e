"""When a document was published or changed: the time by which queries are narrowed and versions are ordered."""

from datetime import UTC, datetime

from store.types import Document


def document_time(document: Document) -> float | None:
    """`published_at` of a document, in Unix seconds (UTC where it names no zone), else when it was last changed."""
    published = document.metadata.get("published_at")
    if isinstance(published, str):
        try:
            time = datetime.fromisoformat(published)
            return (time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            pass
    return document.modified_at
