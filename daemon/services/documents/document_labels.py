"""The labels of documents, which scopes and clients select, and the URIs of documents that restricted clients add."""

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from urllib.parse import quote, unquote

from daemon.pipeline.ownership import ADDED
from daemon.sources.base import LabelsBySource, SourceLabels
from store.types import Document

UNCONFIGURED = SourceLabels(from_documents=False)
"""A source without a section in the configuration has no labels. Labels of its documents are ignored too, because the source's
former section may have had `labels_from_documents = false`."""
_ADDED = SourceLabels()
"""Labels of added documents: only those that each document states."""

_LABELLED = "added:["
"""Prefix of the URI of a document that a restricted client added. An id cannot contain this prefix, because `[` is
percent-encoded in ids."""


def labels_of(document: Document, of_source: Mapping[str, SourceLabels]) -> set[str]:
    """Returns the labels of a document: the labels of its source and in its metadata's `labels`, or only the labels in its URI.

    Labels in the metadata are ignored if the source has `labels_from_documents = false`. Labels in the URI exclude all others:
    a restricted client may add a file with labels in its metadata that this client must not assign.
    """
    if document.uri.startswith(_LABELLED):
        return _labels_in(document.uri)
    source = _source_of(document, of_source)
    return {*source.labels, *_own_labels(document, source)}


def _source_of(document: Document, of_source: Mapping[str, SourceLabels]) -> SourceLabels:
    return of_source.get(document.source, _ADDED if document.source == ADDED else UNCONFIGURED)


def _own_labels(document: Document, source: SourceLabels) -> list[str]:
    own = document.metadata.get("labels") if source.from_documents else None
    return [each for each in own if isinstance(each, str)] if isinstance(own, list) else []


def has_any(labels: Iterable[str], of_source: Mapping[str, SourceLabels]) -> Callable[[Document], bool]:
    """Returns a predicate: whether a document has one of `labels` (see `labels_of`). Scopes call it for every document."""
    selected = frozenset(labels)
    whole_sources = {name for name, source in of_source.items() if not selected.isdisjoint(source.labels)}

    def holds(document: Document) -> bool:
        if document.uri.startswith(_LABELLED):
            return not selected.isdisjoint(_labels_in(document.uri))
        if document.source in whole_sources:
            return True
        return not selected.isdisjoint(_own_labels(document, _source_of(document, of_source)))

    return holds


def sees(sources: Callable[[], LabelsBySource], labels: AbstractSet[str], document: Document) -> bool:
    """Returns whether a client with `labels` sees the document, with the present labels of the sources."""
    return not labels.isdisjoint(labels_of(document, dict(sources())))


def labelled_uri(uri: str, labels: Iterable[str]) -> str:
    """Returns the URI with labels, for example `added:[hr]/7` for `added:7`.

    Clients with these labels share the document; no other client can name it. So a client neither replaces nor discovers
    documents that it does not see.
    """
    named = ",".join(sorted(quote(label, safe="") for label in set(labels)))
    return f"{_LABELLED}{named}]/{uri.removeprefix('added:')}"


def _labels_in(uri: str) -> set[str]:
    named, closed, _ = uri.removeprefix(_LABELLED).partition("]/")
    return {unquote(label) for label in named.split(",")} if closed else set()
