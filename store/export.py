"""The whole memory as lines that depend on its content alone: equal memories export equally, however they came about."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from store.snapshot import Snapshot


def export_lines(snapshot: Snapshot) -> Iterator[str]:
    """JSON lines without line ends: passages by id, phrases and triples by text, edges by type and ends."""
    passages = [int(row) for row in np.flatnonzero(snapshot.passage_alive)]
    for row in sorted(passages, key=lambda row: snapshot.passage(row).id):
        passage = snapshot.passage(row)
        yield _line({"kind": "passage", "title": passage.title, "text": passage.text})
    for row in sorted((int(row) for row in np.flatnonzero(snapshot.phrase_alive)), key=snapshot.phrase):
        yield _line({"kind": "phrase", "text": snapshot.phrase(row)})
    for subject, predicate, object_ in sorted(
        snapshot.triple(int(row)) for row in np.flatnonzero(snapshot.triple_alive)
    ):
        yield _line({"kind": "triple", "subject": subject, "predicate": predicate, "object": object_})
    yield from _edges(snapshot)


def _edges(snapshot: Snapshot) -> Iterator[str]:
    context = snapshot.context.merged().tocoo()
    ends = sorted(
        (snapshot.passage(int(p)).id, snapshot.phrase(int(c)), float(w))
        for p, c, w in zip(context.row, context.col, context.data, strict=True)
    )
    for source, target, weight in ends:
        yield _edge("context", source, target, weight)
    for name, view in (("relation", snapshot.relation), ("synonym", snapshot.synonym)):
        matrix = view.merged().tocoo()
        pairs = []
        for a, b, weight in zip(matrix.row, matrix.col, matrix.data, strict=True):
            source, target = snapshot.phrase(int(a)), snapshot.phrase(int(b))
            if source < target:
                pairs.append((source, target, float(weight)))
        for source, target, weight in sorted(pairs):
            yield _edge(name, source, target, weight)


def _edge(name: str, source: str, target: str, weight: float) -> str:
    return _line({"kind": "edge", "type": name, "source": source, "target": target, "weight": round(weight, 7)})


def _line(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)
