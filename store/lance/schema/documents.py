"""The table `documents`: a row is a document as of a commit. A later row of the URI replaces it; state `removed` ends it."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from store.lance.schema.vectors import Columns
from store.types import Document, Link, PassageRef, State

SCHEMA = pa.schema(
    [
        ("uri", pa.string()),
        ("source", pa.string()),
        ("state", pa.string()),
        ("title", pa.string()),
        ("error", pa.string()),
        ("attempts", pa.int32()),
        ("next_try", pa.float64()),
        ("modified_at", pa.float64()),
        ("committed_at", pa.float64()),
        ("metadata", pa.string()),
        ("passages", pa.string()),
        ("payload", pa.string()),
        ("commit", pa.int64()),
        ("code", pa.string()),
    ]
)


SHELL_COLUMNS = tuple(name for name in SCHEMA.names if name not in ("passages", "commit"))
"""What a checkpoint keeps of a document beside its passages."""


def to_columns(documents: Sequence[Document], commit: int) -> Columns:
    return {
        **shell_columns(documents),
        "passages": [passages_text(d.passages) for d in documents],
        "commit": [commit] * len(documents),
    }


def shell_columns(documents: Sequence[Document]) -> Columns:
    """`SHELL_COLUMNS` of documents."""
    return {
        "uri": [d.uri for d in documents],
        "source": [d.source for d in documents],
        "state": [d.state.value for d in documents],
        "title": [d.title for d in documents],
        "error": [d.error for d in documents],
        "code": [d.code for d in documents],
        "attempts": [d.attempts for d in documents],
        "next_try": [d.next_try for d in documents],
        "modified_at": [d.modified_at for d in documents],
        "committed_at": [d.committed_at for d in documents],
        "metadata": [json.dumps(dict(d.metadata)) if d.metadata else "{}" for d in documents],
        "payload": [d.payload for d in documents],
    }


def passages_text(refs: Iterable[PassageRef]) -> str:
    """The column `passages` of a row."""
    return json.dumps([_ref_columns(ref) for ref in refs])


def _ref_columns(ref: PassageRef) -> list[Any]:
    """Three values; then the extractor and the links, as far as there are any: most rows have neither."""
    values = [ref.passage, dict(ref.location), ref.triples]
    if ref.links:
        return [*values, ref.extractor, [[link.target, link.heading, link.text] for link in ref.links]]
    return values if ref.extractor is None else [*values, ref.extractor]


def removes(row: Mapping[str, Any]) -> bool:
    """Whether the row says that the document is gone."""
    return bool(row["state"] == State.REMOVED.value)


def passage_refs(passages: str, intern: Callable[[str], str] = str) -> tuple[PassageRef, ...]:
    """The column `passages` of a row. `intern` gives the copy of a text that is in memory already (`LiveIndex.interner`)."""
    return tuple(
        PassageRef(
            intern(passage),
            location,
            None if triples is None else tuple((intern(s), intern(p), intern(o)) for s, p, o in triples),
            intern(more[0]) if more and more[0] is not None else None,
            tuple(Link(*link) for link in more[1]) if len(more) > 1 else (),
        )
        for passage, location, triples, *more in json.loads(passages)
    )


def from_row(row: Mapping[str, Any], intern: Callable[[str], str] = str) -> Document:
    """A row as it was committed. `intern`: as of `passage_refs`."""
    return from_shell([row[name] for name in SHELL_COLUMNS], passage_refs(row["passages"], intern))


def from_shell(values: Sequence[Any], passages: Sequence[PassageRef]) -> Document:
    """The document of `SHELL_COLUMNS`, in their order, and its passages."""
    uri, source, state, title, error, attempts, next_try, modified_at, committed_at, metadata, payload, code = values
    return Document(
        uri,
        source,
        title,
        _STATES[state],
        error,
        code,
        attempts,
        next_try,
        modified_at,
        committed_at,
        {} if metadata == "{}" else json.loads(metadata),
        passages,
        payload,
    )


_STATES = {state.value: state for state in State}
