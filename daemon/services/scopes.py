"""Which documents a scope holds, the memory of them, and what scopes may name."""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from daemon.contract.scope import Scope, ScopeCount, ScopeList
from store.document_snapshot import DocumentSnapshot
from store.store import Store
from store.types import Document

LabelsBySource = tuple[tuple[str, tuple[str, ...]], ...]
"""(name of a source, its labels), by name."""

FOLDERS_MAX = 1_000
"""Folders that `scopes` lists: those that hold most."""


class ScopeService:
    """Scopes over one store. `labels` gives the labels of each source by its name; they change with the configuration."""

    def __init__(self, store: Store, labels: Callable[[], LabelsBySource]) -> None:
        self._store = store
        self._labels = labels

    def memory(self, scope: Scope, moment: float | int | None = None) -> DocumentSnapshot:
        """What a memory of the documents in `scope` would be. Raises StoreError where that time is not kept."""
        labels = self._labels()
        return self._store.scoped((scope.model_dump_json(), labels), self.holds(scope), moment)

    def holds(self, scope: Scope) -> Callable[[Document], bool]:
        """Whether a document is in `scope`, by the labels that sources have now."""
        of_source = dict(self._labels())
        prefixes = tuple(_prefix(each) for each in scope.in_)
        labels, where = set(scope.labels), dict(scope.where)
        since, until = _seconds(scope.since), _seconds(scope.until)

        def holds(document: Document) -> bool:
            if scope.source is not None and document.source != scope.source:
                return False
            if prefixes and not any(_begins(document.uri, *prefix) for prefix in prefixes):
                return False
            if labels and labels.isdisjoint(labels_of(document, of_source)):
                return False
            if where and not all(_has(document.metadata, key, value) for key, value in where.items()):
                return False
            if since is None and until is None:
                return True
            time = document_time(document)
            return time is not None and (since is None or time >= since) and (until is None or time <= until)

        return holds

    def named(self) -> ScopeList:
        """What scopes may name, with how many documents each holds."""
        of_source = dict(self._labels())
        sources: Counter[str] = Counter(dict.fromkeys(of_source, 0))
        labels: Counter[str] = Counter(dict.fromkeys((each for found in of_source.values() for each in found), 0))
        folders: Counter[str] = Counter()
        for document in self._store.documents():
            sources[document.source] += 1
            labels.update(labels_of(document, of_source))
            folders.update(_folders(document.uri))
        most = sorted(folders, key=lambda folder: (-folders[folder], folder))[:FOLDERS_MAX]
        return ScopeList(
            sources=_counts(sources), labels=_counts(labels), folders=_counts({each: folders[each] for each in most})
        )


def _counts(found: Mapping[str, int]) -> list[ScopeCount]:
    return [ScopeCount(name=name, documents=found[name]) for name in sorted(found)]


def labels_of(document: Document, of_source: Mapping[str, tuple[str, ...]]) -> set[str]:
    """The labels of a document: its own, from the field `labels`, and those of its source."""
    own = document.metadata.get("labels")
    mine = {each for each in own if isinstance(each, str)} if isinstance(own, list) else set()
    return mine | set(of_source.get(document.source, ()))


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


def _seconds(time: datetime | None) -> float | None:
    return time.timestamp() if time is not None else None


def _prefix(text: str) -> tuple[str, bool]:
    """What URIs begin with, and whether it is a file or folder, so that `notes` is not the beginning of `notes2`."""
    if text.startswith("/"):
        return "file://" + quote(text.rstrip("/") or "/"), True
    return text, False


def _begins(uri: str, prefix: str, is_path: bool) -> bool:
    if not uri.startswith(prefix):
        return False
    return not is_path or len(uri) == len(prefix) or uri[len(prefix)] in "/#" or prefix.endswith("/")


def _has(metadata: Mapping[str, Any], key: str, value: str) -> bool:
    found = metadata.get(key)
    return (
        value in {_text(each) for each in found}
        if isinstance(found, list)
        else key in metadata and _text(found) == value
    )


def _text(value: Any) -> str:
    """As one writes it: true and false as JSON does, numbers without a superfluous zero."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _folders(uri: str) -> list[str]:
    """The folders above a file, from the nearest; none for what is no file."""
    if not uri.startswith("file:///"):
        return []
    parts = uri.partition("#")[0].split("/")[3:-1]
    return ["file:///" + "/".join(parts[:end]) for end in range(len(parts), 0, -1)]
