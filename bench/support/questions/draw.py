"""Divides a corpus into segments by a fixed random draw, for continual learning (HippoRAG 2, Figure 3)."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SEED = 0


@dataclass(frozen=True, slots=True)
class DrawnSegment:
    """Indices of questions and of documents, both in the order of the draw."""

    questions: tuple[int, ...]
    documents: tuple[int, ...]


def draw(gold: Mapping[int, frozenset[int]], documents: int, count: int, seed: int = SEED) -> list[DrawnSegment]:
    """Divides the questions and `documents` documents into `count` segments of about equal size.

    `gold`: by question, the documents that answer it. Such a document belongs to the segment of the first question that needs
    it, so that the first segment answers all of its questions. The other documents are drawn so that the segments have equal
    length.
    """
    order = sorted(gold)
    rng = random.Random(seed)
    rng.shuffle(order)
    cuts = [order[len(order) * at // count : len(order) * (at + 1) // count] for at in range(count)]
    placed: dict[int, int] = {}
    for at, questions in enumerate(cuts):
        for question in questions:
            for document in sorted(gold[question]):
                placed.setdefault(document, at)
    segments: list[list[int]] = [[document for document, of in placed.items() if of == at] for at in range(count)]
    others = [document for document in range(documents) if document not in placed]
    rng.shuffle(others)
    for document in others:
        min(segments, key=len).append(document)
    return [
        DrawnSegment(tuple(questions), tuple(drawn))
        for questions, drawn in zip(cuts, map(_sorted, segments), strict=True)
    ]


def _sorted(documents: Sequence[int]) -> list[int]:
    return sorted(documents)
