"""Which documents a scope holds, the memory of them, and what scopes may name."""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from unicodedata import normalize
from urllib.parse import quote, unquote

from daemon.contract.scope import ClientScope, Scope, ScopeCount, ScopeList
from daemon.services.documents.document_labels import UNCONFIGURED, has_any, labels_of
from daemon.sources.base import LabelsBySource
from store.document_snapshot import DocumentSnapshot
from store.document_time import document_time
from store.index.load import Rest, no_rest
from store.store import Store
from store.types import Document

FOLDERS_MAX = 1_000
"""Folders that `scopes` lists: those that hold most."""


class ScopeService:
    """Scopes over one store. `labels` gives the labels of each source by its name; they change with the configuration."""

    def __init__(self, store: Store, labels: Callable[[], LabelsBySource]) -> None:
        self._store = store
        self._labels = labels

    def memory(self, scope: Scope, moment: float | int | None = None, rest: Rest = no_rest) -> DocumentSnapshot:
        """What a memory of the documents in `scope` would be. `rest` is called every few milliseconds of the work on an earlier
        `moment`. Raises StoreError where that time is not kept."""
        labels = self._labels()
        holds = self.holds(scope)
        if moment is not None and isinstance(scope, ClientScope):
            holds = self._held_then(scope, holds)
        return self._store.scoped((scope.model_dump_json(exclude={"client"}), labels), holds, moment, rest)

    def _held_then(self, scope: ClientScope, holds: Callable[[Document], bool]) -> Callable[[Document], bool]:
        """Of an earlier moment a client sees a document if it saw the document then and sees it now. A document that was
        removed since counts with its last labels; without any that are known, no client that sees a part sees it."""
        sees = self.holds(scope.unrestricted())
        removed = self._store.removed_documents()

        def held(document: Document) -> bool:
            now = self._store.document(document.uri) or removed.get(document.uri)
            return now is not None and holds(document) and sees(now)

        return held

    def holds(self, scope: Scope) -> Callable[[Document], bool]:
        """Whether a document is in `scope`, by the labels that sources have now."""
        of_source = dict(self._labels())
        prefixes = tuple(prefix for each in scope.in_ for prefix in _prefixes(each))
        labelled = has_any(scope.labels, of_source) if scope.labels else None
        where = {key: _says(value) for key, value in scope.where.items()}
        since, until = _seconds(scope.since), _seconds(scope.until)
        visible = has_any(scope.visible, of_source) if isinstance(scope, ClientScope) else None

        def holds(document: Document) -> bool:
            if visible is not None and not visible(document):
                return False
            if scope.source is not None and document.source != scope.source:
                return False
            if prefixes and not any(_begins(document.uri, *prefix) for prefix in prefixes):
                return False
            if labelled is not None and not labelled(document):
                return False
            if where and not all(_has(document.metadata, key, says) for key, says in where.items()):
                return False
            if since is None and until is None:
                return True
            time = document_time(document)
            return time is not None and (since is None or time >= since) and (until is None or time <= until)

        return holds

    def sources(self, scope: Scope | None) -> Callable[[str], bool]:
        """Whether a source, by its name, is wholly in sight: then how it stands says nothing of what is not."""
        of_source = dict(self._labels())
        visible = set(scope.visible) if isinstance(scope, ClientScope) else None
        only = scope.source if scope is not None else None
        return lambda name: (
            (only is None or name == only)
            and (visible is None or not visible.isdisjoint(of_source.get(name, UNCONFIGURED).labels))
        )

    def named(self, scope: Scope | None = None) -> ScopeList:
        """What scopes may name, with how many documents of `scope` each holds; of the whole memory also what holds none."""
        of_source = dict(self._labels())
        holds = self.holds(scope) if scope is not None else None
        given = of_source if scope is None else {}
        sources: Counter[str] = Counter(dict.fromkeys(given, 0))
        labels: Counter[str] = Counter(dict.fromkeys((each for found in given.values() for each in found.labels), 0))
        folders: Counter[str] = Counter()
        for document in self._store.documents():
            if holds is not None and not holds(document):
                continue
            sources[document.source] += 1
            labels.update(labels_of(document, of_source))
            folders.update(_folders(document.uri))
        most = sorted(folders, key=lambda folder: (-folders[folder], folder))[:FOLDERS_MAX]
        return ScopeList(
            sources=_counts(sources), labels=_counts(labels), folders=_counts({each: folders[each] for each in most})
        )


def _counts(found: Mapping[str, int]) -> list[ScopeCount]:
    return [ScopeCount(name=name, documents=found[name]) for name in sorted(found)]


def _seconds(time: datetime | None) -> float | None:
    return time.timestamp() if time is not None else None


def _prefixes(text: str) -> list[tuple[str, bool]]:
    """What URIs begin with, and whether it is a file or folder, so that `notes` is not the beginning of `notes2`.

    A path with letters beyond ASCII is compared in NFC too: macOS, and archives made there, write the marks of letters apart,
    keyboards and models do not, and nobody sees the difference.
    """
    if not text.startswith("/"):
        return [(text, False)]
    prefix = "file://" + quote(text.rstrip("/") or "/")
    return [(prefix, True)] if text.isascii() else [(prefix, True), (_composed(prefix), True)]


def _composed(uri: str) -> str:
    """A URI with letters and their marks in one. Bytes that are no UTF-8 stay what they are."""
    return quote(normalize("NFC", unquote(uri, errors="surrogateescape")), errors="surrogateescape")


def _begins(uri: str, prefix: str, is_path: bool) -> bool:
    if is_path and "%" in prefix and not uri.startswith(prefix):
        uri = _composed(uri)
    if not uri.startswith(prefix):
        return False
    return not is_path or len(uri) == len(prefix) or uri[len(prefix)] in "/#" or prefix.endswith("/")


def _has(metadata: Mapping[str, Any], key: str, says: Callable[[Any], bool]) -> bool:
    if key not in metadata:
        return False
    found = metadata[key]
    return any(says(each) for each in found) if isinstance(found, list) else says(found)


def _says(text: str) -> Callable[[Any], bool]:
    """Whether a value is what `text` says: the same number however either is written, true and false as JSON has them."""
    number, composed = _number(text), normalize("NFC", text)

    def says(value: Any) -> bool:
        if isinstance(value, bool):
            return text == ("true" if value else "false")
        if isinstance(value, int | float):
            return bool(value == number)
        return str(value) == text or normalize("NFC", str(value)) == composed

    return says


def _number(text: str) -> int | float | None:
    """Whole numbers stay whole: a float would take two large ones for the same."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return None


def _folders(uri: str) -> list[str]:
    """The folders above a file, from the nearest; none for what is no file."""
    if not uri.startswith("file:///"):
        return []
    parts = uri.partition("#")[0].split("/")[3:-1]
    return ["file:///" + "/".join(parts[:end]) for end in range(len(parts), 0, -1)]
