"""The source to which the extraction of a passage is charged."""

from store.store import Store


def source_of_passage(store: Store, passage: str) -> str | None:
    """Returns the source of the first document, by URI, that needs the passage extracted; None if there is none."""
    for uri in store.documents_to_extract(passage):
        if (document := store.document(uri)) is not None:
            return document.source
    return None
