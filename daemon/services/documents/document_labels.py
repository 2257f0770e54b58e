"""The labels of a document, by which scopes and clients choose; and the URIs of what a client adds that sees a part."""

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from urllib.parse import quote, unquote

from daemon.sources.base import LabelsBySource, SourceLabels
from store.types import Document

UNCONFIGURED = SourceLabels()
"""The labels of a source that the configuration does not name, such as `added`: each document's own."""

_LABELLED = "added:["
"""How the URI begins of a document that was added by a client that sees a part. An id never gives it: `[` is percent-encoded
there."""


def labels_of(document: Document, of_source: Mapping[str, SourceLabels]) -> set[str]:
    """The labels of a document: those of its source, and its own, from the field `labels`; or those in its URI alone.

    Its own do not count if its source's setting `labels_from_documents` is false. If its URI has labels, only these count:
    a client that sees a part cannot give others' labels, and a file that it adds may hold documents that state any.
    """
    if document.uri.startswith(_LABELLED):
        return _labels_in(document.uri)
    source = of_source.get(document.source, UNCONFIGURED)
    return {*source.labels, *_own_labels(document, source)}


def _own_labels(document: Document, source: SourceLabels) -> list[str]:
    own = document.metadata.get("labels") if source.from_documents else None
    return [each for each in own if isinstance(each, str)] if isinstance(own, list) else []


def has_any(labels: Iterable[str], of_source: Mapping[str, SourceLabels]) -> Callable[[Document], bool]:
    """Whether a document has one of `labels`, as `labels_of` says. A scope asks this of every document."""
    wanted = frozenset(labels)
    whole_sources = {name for name, mine in of_source.items() if not wanted.isdisjoint(mine.labels)}

    def holds(document: Document) -> bool:
        if document.uri.startswith(_LABELLED):
            return not wanted.isdisjoint(_labels_in(document.uri))
        if document.source in whole_sources:
            return True
        return not wanted.isdisjoint(_own_labels(document, of_source.get(document.source, UNCONFIGURED)))

    return holds


def sees(sources: Callable[[], LabelsBySource], labels: AbstractSet[str], document: Document) -> bool:
    """Whether one who sees `labels` sees the document, by the labels that sources have now."""
    return not labels.isdisjoint(labels_of(document, dict(sources())))


def labelled_uri(uri: str, labels: Iterable[str]) -> str:
    """`added:[hr]/7` of `added:7`. Clients that share the labels share the document, and no other client can name it: so
    nothing that one does not see is ever replaced by what it adds, nor does it hear that such a thing is there."""
    named = ",".join(sorted(quote(label, safe="") for label in set(labels)))
    return f"{_LABELLED}{named}]/{uri.removeprefix('added:')}"


def _labels_in(uri: str) -> set[str]:
    named, closed, _ = uri.removeprefix(_LABELLED).partition("]/")
    return {unquote(label) for label in named.split(",")} if closed else set()
