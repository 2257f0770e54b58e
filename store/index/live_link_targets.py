"""The documents that links can lead to, kept up to date with the documents of an index.

The targets are computed when the first link is resolved, so a memory without links needs no work. After that, each commit
updates the targets of its documents.
"""

from collections.abc import Iterable, Mapping
from threading import Lock

from store.links.targets import LinkTargets
from store.types import Document, State


class LiveLinkTargets:
    """Resolves links to documents. Thread-safe. `documents`: the documents of the index, by URI."""

    def __init__(self, documents: dict[str, Document]) -> None:
        self._documents = documents
        self._lock = Lock()
        self._targets: LinkTargets | None = None

    def change(self, documents: Iterable[Document], removed: Iterable[str]) -> None:
        """Updates the targets after a commit was applied to the index's documents."""
        with self._lock:
            if self._targets is None:
                return
            for uri in removed:
                self._targets.remove(uri)
            for document in documents:
                self._put(self._targets, document)

    def resolve(self, target: str, source: str) -> str | None:
        """Returns the URI of the document to which the link `target` in the document `source` leads; None if it is missing."""
        with self._lock:
            if self._targets is None:
                self._targets = self._made(self._documents.copy())
            return self._targets.resolve(target, source)

    def _made(self, documents: Mapping[str, Document]) -> LinkTargets:
        targets = LinkTargets()
        for document in documents.values():
            self._put(targets, document)
        return targets

    @staticmethod
    def _put(targets: LinkTargets, document: Document) -> None:
        """Adds the document; removes it if it is not indexed, because it then has no passage to which a link could lead."""
        if document.state is State.INDEXED:
            targets.add(document)
        else:
            targets.remove(document.uri)
