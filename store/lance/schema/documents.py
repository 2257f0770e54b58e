"""The table `documents`: a row is a document's state as of a commit. A later row with the same URI replaces it; the state
`removed` deletes the document."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from store.lance.schema.vectors import Columns
from store.types import Document, Link, Omission, PassageRef, State

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
"""Columns of a document that a checkpoint stores separately from the document's passages."""
LEFT_OUT = "left_out"
"""Key in the column `metadata` whose value lists the omissions. Documents cannot use this key in their own metadata. A version
of hippod that does not know the key shows it as metadata, so the key did not need a new store format."""


def to_columns(documents: Sequence[Document], commit: int) -> Columns:
    return {
        **shell_columns(documents),
        "passages": [passages_text(d.passages) for d in documents],
        "commit": [commit] * len(documents),
    }


def shell_columns(documents: Sequence[Document]) -> Columns:
    """Returns the columns `SHELL_COLUMNS` of documents."""
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
        "metadata": [_metadata_text(d) for d in documents],
        "payload": [d.payload for d in documents],
    }


def _metadata_text(document: Document) -> str:
    if not document.metadata and not document.left_out:
        return "{}"
    if not document.left_out:
        return json.dumps(dict(document.metadata))
    return json.dumps(
        {**document.metadata, LEFT_OUT: [[each.kind, each.count, each.text] for each in document.left_out]}
    )


def passages_text(refs: Iterable[PassageRef]) -> str:
    """Returns the value of the column `passages`."""
    return json.dumps([_ref_columns(ref) for ref in refs])


def _ref_columns(ref: PassageRef) -> list[Any]:
    """Returns passage, location and triples, then the extractor and the links if there are any; most rows have neither."""
    values = [ref.passage, dict(ref.location), ref.triples]
    if ref.links:
        return [*values, ref.extractor, [[link.target, link.heading, link.text] for link in ref.links]]
    return values if ref.extractor is None else [*values, ref.extractor]


def removes(row: Mapping[str, Any]) -> bool:
    """Whether the row marks the document as removed."""
    return bool(row["state"] == State.REMOVED.value)


def passage_refs(passages: str, intern: Callable[[str], str] = str) -> tuple[PassageRef, ...]:
    """Parses the column `passages`. `intern` returns a copy of a text that is already in memory."""
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
    """Returns the document of a row. `intern`: see `passage_refs`."""
    return from_shell([row[name] for name in SHELL_COLUMNS], passage_refs(row["passages"], intern))


def from_shell(values: Sequence[Any], passages: Sequence[PassageRef]) -> Document:
    """Returns the document with these values of `SHELL_COLUMNS`, in their order, and these passages."""
    uri, source, state, title, error, attempts, next_try, modified_at, committed_at, metadata, payload, code = values
    stated = {} if metadata == "{}" else json.loads(metadata)
    left_out = _take_account(stated)
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
        stated,
        passages,
        payload,
        left_out,
    )


def _take_account(metadata: dict[str, Any]) -> tuple[Omission, ...]:
    """Removes the list of omissions from a row's metadata and returns it. A value of any other form stays in the metadata; it
    is from a document stored before the key was reserved."""
    found = metadata.get(LEFT_OUT)
    if not isinstance(found, list) or not all(isinstance(each, list) and len(each) == 3 for each in found):
        return ()
    del metadata[LEFT_OUT]
    return tuple(Omission(str(kind), int(count), str(text)) for kind, count, text in found)


_STATES = {state.value: state for state in State}
