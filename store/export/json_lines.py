"""Exports the whole memory as JSON lines that depend only on its content: equal memories give equal lines."""

import json
import re
from collections.abc import Iterator
from typing import Any

from store.export.canonical_order import EDGE_TYPES, CanonicalOrder, link_edges
from store.snapshot import DocumentSnapshot, Snapshot


def export_lines(snapshot: Snapshot, memory: DocumentSnapshot | None = None) -> Iterator[str]:
    """Yields JSON lines without line ends: passages sorted by id, phrases and triples by text, edges by type and ends.
    `memory`: as in `store.export.graphml`."""
    ordered = CanonicalOrder(snapshot)
    for row in ordered.passages.tolist():
        passage = snapshot.passage(row)
        yield _line({"kind": "passage", "title": passage.title, "text": passage.text})
    for row in ordered.phrases.tolist():
        yield _line({"kind": "phrase", "text": snapshot.phrase(row)})
    for row in ordered.triples:
        subject, predicate, object_ = snapshot.triple(int(row))
        yield _line({"kind": "triple", "subject": subject, "predicate": predicate, "object": object_})
    for kind in EDGE_TYPES:
        for source, target, weight in zip(*ordered.edges(kind), strict=True):
            end = (
                snapshot.passage_id(int(ordered.passages[source]))
                if kind == "context"
                else snapshot.phrase(int(ordered.phrases[source]))
            )
            other = snapshot.phrase(int(ordered.phrases[target]))
            yield _edge(kind, end, other, float(weight))
    for edge in link_edges(memory, ordered.passages.tolist()) if memory is not None else ():
        yield _edge(edge.type, snapshot.passage_id(edge.row), edge.target, float(edge.count))


def _edge(kind: str, source: str, target: str, weight: float) -> str:
    return _line({"kind": "edge", "type": kind, "source": source, "target": target, "weight": weight})


_ACTS = re.compile("[\x7f-\x9f\u2028\u2029]")
"""Characters that JSON allows unescaped, but that control a terminal or count as line ends for Unicode-aware readers."""


def _line(value: dict[str, Any]) -> str:
    return _ACTS.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))
