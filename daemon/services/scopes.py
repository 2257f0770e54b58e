"""Scopes: which documents belong to a scope, the memory of these documents, and the names that scopes may use."""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from unicodedata import normalize
from urllib.parse import quote, unquote

from daemon.contract.scope import ClientScope, Scope, ScopeCount, ScopeList
from daemon.services.documents.document_labels import UNCONFIGURED, has_any, labels_of
from daemon.sources.base import LabelsBySource
from store.snapshot import DocumentSnapshot
from store.store import Store
from store.types import Document, Pause, document_time, no_pause

FOLDERS_MAX = 1_000
"""Maximum folders in the result of `scopes`, which contains the folders with the most documents."""


class ScopeService:
    """The scopes of one store. `labels` returns the labels of each source, which change with the configuration."""

    def __init__(self, store: Store, labels: Callable[[], LabelsBySource]) -> None:
        self._store = store
        self._labels = labels

    def memory(self, scope: Scope, moment: float | int | None = None, pause: Pause = no_pause) -> DocumentSnapshot:
        """Returns the memory limited to the documents in `scope`, now or at an earlier `moment`.

        `pause` is called every few milliseconds while the earlier moment is loaded. Raises StoreError if it is no longer
        stored.
        """
        labels = self._labels()
        holds = self.holds(scope)
        if moment is not None and isinstance(scope, ClientScope):
            holds = self._held_then(scope, holds)
        return self._store.scoped((scope.model_dump_json(exclude={"client"}), labels), holds, moment, pause)

    def _held_then(self, scope: ClientScope, holds: Callable[[Document], bool]) -> Callable[[Document], bool]:
        """Returns the predicate for an earlier moment: whether the client saw the document then and sees it now.

        For a document that was removed since then, its last labels count. If these labels are unknown, no restricted client
        sees the document.
        """
        sees = self.holds(scope.without_conditions())
        removed = self._store.removed_documents()

        def held(document: Document) -> bool:
            now = self._store.document(document.uri) or removed.get(document.uri)
            return now is not None and holds(document) and sees(now)

        return held

    def holds(self, scope: Scope) -> Callable[[Document], bool]:
        """Returns a predicate: whether a document is in `scope`, with the present labels of the sources."""
        of_source = dict(self._labels())
        prefixes = tuple(prefix for each in scope.in_ for prefix in _prefixes(each))
        labelled = has_any(scope.labels, of_source) if scope.labels else None
        where = {key: _equals(value) for key, value in scope.where.items()}
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
            if where and not all(_has(document.metadata, key, equals) for key, equals in where.items()):
                return False
            if since is None and until is None:
                return True
            time = document_time(document)
            return time is not None and (since is None or time >= since) and (until is None or time <= until)

        return holds

    def limit(self, scope: Scope | None) -> Callable[[Document], bool] | None:
        """Like `holds`; returns None without a scope."""
        return None if scope is None else self.holds(scope)

    def sources(self, scope: Scope | None) -> Callable[[str], bool]:
        """Returns a predicate: whether a source, by name, is wholly in `scope`, so that its status reveals nothing hidden."""
        of_source = dict(self._labels())
        visible = set(scope.visible) if isinstance(scope, ClientScope) else None
        only = scope.source if scope is not None else None
        return lambda name: (
            (only is None or name == only)
            and (visible is None or not visible.isdisjoint(of_source.get(name, UNCONFIGURED).labels))
        )

    def named(self, scope: Scope | None = None) -> ScopeList:
        """Returns the names that scopes may use, with the number of documents in `scope` for each. Without a scope, includes
        unused names."""
        of_source = dict(self._labels())
        holds = self.limit(scope)
        configured = of_source if scope is None else {}
        sources: Counter[str] = Counter(dict.fromkeys(configured, 0))
        labels: Counter[str] = Counter(
            dict.fromkeys((each for found in configured.values() for each in found.labels), 0)
        )
        folders: Counter[str] = Counter()
        for document in self._store.documents():
            if holds is not None and not holds(document):
                continue
            sources[document.source] += 1
            labels.update(labels_of(document, of_source))
            folders.update(_folders(document.uri))
        largest = sorted(folders, key=lambda folder: (-folders[folder], folder))[:FOLDERS_MAX]
        return ScopeList(
            sources=_counts(sources), labels=_counts(labels), folders=_counts({each: folders[each] for each in largest})
        )


def _counts(found: Mapping[str, int]) -> list[ScopeCount]:
    return [ScopeCount(name=name, documents=found[name]) for name in sorted(found)]


def _seconds(time: datetime | None) -> float | None:
    return time.timestamp() if time is not None else None


def _prefixes(text: str) -> list[tuple[str, bool]]:
    """Returns pairs (URI prefix, whether it is a path) for an entry of a scope's `in`. The path `notes` does not match
    `notes2`.

    A path with non-ASCII characters is also compared in Unicode form NFC: macOS and archives made on it decompose accented
    letters, unlike keyboards and models.
    """
    if not text.startswith("/"):
        return [(text, False)]
    prefix = "file://" + quote(text.rstrip("/") or "/")
    return [(prefix, True)] if text.isascii() else [(prefix, True), (_composed(prefix), True)]


def _composed(uri: str) -> str:
    """Returns the URI with its path in Unicode form NFC. Keeps bytes that are not UTF-8."""
    return quote(normalize("NFC", unquote(uri, errors="surrogateescape")), errors="surrogateescape")


def _begins(uri: str, prefix: str, is_path: bool) -> bool:
    if is_path and "%" in prefix and not uri.startswith(prefix):
        uri = _composed(uri)
    if not uri.startswith(prefix):
        return False
    return not is_path or len(uri) == len(prefix) or uri[len(prefix)] in "/#" or prefix.endswith("/")


def _has(metadata: Mapping[str, Any], key: str, equals: Callable[[Any], bool]) -> bool:
    if key not in metadata:
        return False
    found = metadata[key]
    return any(equals(each) for each in found) if isinstance(found, list) else equals(found)


def _equals(text: str) -> Callable[[Any], bool]:
    """Returns a predicate: whether a value equals `text`. Numbers are compared by value, booleans as in JSON."""
    number, composed = _number(text), normalize("NFC", text)

    def equals(value: Any) -> bool:
        if isinstance(value, bool):
            return text == ("true" if value else "false")
        if isinstance(value, int | float):
            return bool(value == number)
        return str(value) == text or normalize("NFC", str(value)) == composed

    return equals


def _number(text: str) -> int | float | None:
    """Parses a number. An integer stays an int: as floats, two different large integers could be equal."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return None


def _folders(uri: str) -> list[str]:
    """Returns the folders above a file, nearest first; [] for other URIs."""
    if not uri.startswith("file:///"):
        return []
    parts = uri.partition("#")[0].split("/")[3:-1]
    return ["file:///" + "/".join(parts[:end]) for end in range(len(parts), 0, -1)]
