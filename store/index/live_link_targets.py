"""The documents that links can lead to, kept up with the documents of an index.

They are worked out when the first link is followed: a memory without links pays nothing. From then on a commit changes what
its documents change.
"""

from collections.abc import Callable, Iterable, Mapping
from threading import Lock

from store.links.targets import LinkTargets
from store.types import Document, State


class LiveLinkTargets:
    """For any thread. `documents` gives those of the index, by URI."""

    def __init__(self, documents: Callable[[], dict[str, Document]]) -> None:
        self._documents = documents
        self._lock = Lock()
        self._targets: LinkTargets | None = None

    def change(self, documents: Iterable[Document], removed: Iterable[str]) -> None:
        """Follows a commit that the index's documents have already."""
        with self._lock:
            if self._targets is None:
                return
            for uri in removed:
                self._targets.remove(uri)
            for document in documents:
                self._put(self._targets, document)

    def resolve(self, target: str, source: str) -> str | None:
        """The URI of the document that a link with this target leads to from the document `source`; None if it is not there."""
        with self._lock:
            if self._targets is None:
                self._targets = self._made(self._documents().copy())
            return self._targets.resolve(target, source)

    def _made(self, documents: Mapping[str, Document]) -> LinkTargets:
        targets = LinkTargets()
        for document in documents.values():
            self._put(targets, document)
        return targets

    @staticmethod
    def _put(targets: LinkTargets, document: Document) -> None:
        """A document that is not read has no passage to lead to."""
        if document.state is State.INDEXED:
            targets.add(document)
        else:
            targets.remove(document.uri)
