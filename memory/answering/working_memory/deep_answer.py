"""Data classes of a deep answer, the selection of passages for it, and answers made without the model."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memory.answering import qa_reader
from memory.answering.working_memory.inquiries import FoundPassage
from memory.answering.working_memory.points import WorkingMemory
from memory.answering.working_memory.subquery_retrieval import (
    QueryVector,
    best_passages,
    found_passages,
    passages_with,
    rows_of,
)
from memory.answering.working_memory.trace import DeepSettings, DeepStopReason, StepRecord, Trace
from memory.retrieval.top_k import cosines
from store.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class CitedPassage:
    """A passage that the answer cites as [rank]. `points` are the ids of the points that it supports."""

    rank: int
    id: str
    title: str
    text: str
    points: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenCount:
    prompt: int = 0
    completion: int = 0


@dataclass(frozen=True, slots=True)
class DeepAnswer:
    """`text` contains citations as [n]; each n is the `rank` of one of `citations`.

    `short` is the bare answer; "" if `found` is false (the memory does not contain it). `note` is a sentence for the user if
    something failed or a limit of the budget was reached. If the model could not write the answer, `written` is false, and
    `text` consists of the points' descriptions or the passages' titles.
    """

    question: str
    text: str
    short: str
    found: bool
    citations: tuple[CitedPassage, ...]
    trace: Trace
    tokens: TokenCount
    stopped: DeepStopReason
    note: str | None = None
    written: bool = True
    requests: int = 0
    """Number of requests to the model, including retries."""
    seconds: float = 0.0
    own_seconds: float = 0.0
    """`seconds` without the time spent waiting for the model."""
    reasoning: str = ""
    """Text that the model wrote before the answer; "" if it was not requested."""
    passages: tuple[FoundPassage, ...] = ()
    """Passages that the model read to write the answer."""


def answer_passages(
    snapshot: Snapshot,
    vector: QueryVector | None,
    memory: WorkingMemory,
    steps: Sequence[StepRecord],
    settings: DeepSettings,
) -> tuple[FoundPassage, ...]:
    """Returns at most `settings.answer_passages` passages: first passages that support the points, then other passages with the
    points' entities.

    Supporting passages are taken from each point in turn, nearest to the question first; the other passages are ordered
    likewise. Without points, these are the passages that the steps found, then the nearest passages of the whole memory.
    `vector` is the question's embedding, or None if the encoder is unavailable; passages then keep the order in which they were
    found.
    """
    k = settings.answer_passages
    chosen: dict[int, None] = {}
    if memory.points:
        queues = [_nearest(snapshot, vector, point.passages, k) for point in memory.points]
        for turn in range(max(len(queue) for queue in queues)):
            chosen.update(dict.fromkeys(queue[turn] for queue in queues if turn < len(queue)))
    else:
        found = dict.fromkeys(
            passage.id for step in steps for inquiry in step.inquiries for passage in inquiry.passages
        )
        chosen.update(dict.fromkeys(_nearest(snapshot, vector, list(found), k)))
    if vector is not None and len(chosen) < k:
        among = passages_with(snapshot, rows_of(snapshot, memory.vertices)) if memory.points else snapshot.passage_alive
        chosen.update(dict.fromkeys(best_passages(snapshot, vector, among, k)[0]))
    rows = list(chosen)[:k]
    if vector is None or not rows:
        return found_passages(snapshot, rows, [0.0] * len(rows))
    return found_passages(
        snapshot, rows, [float(score) for score in cosines(snapshot.passage_vectors, vector, np.array(rows))]
    )


def _nearest(snapshot: Snapshot, vector: QueryVector | None, ids: Sequence[str], k: int) -> list[int]:
    rows = [row for id in ids if (row := snapshot.passage_row(id)) is not None]
    if vector is None:
        return rows[:k]
    mask = np.zeros(snapshot.n_passages, np.bool_)
    mask[rows] = True
    return best_passages(snapshot, vector, mask, k)[0]


def cited(
    answer: qa_reader.Answer, memory: WorkingMemory, passages: Sequence[FoundPassage]
) -> tuple[CitedPassage, ...]:
    """Returns the passages that the answer cites, each with the points that it supports."""
    return tuple(_cited(rank, passages[rank - 1], memory) for rank in answer.cited)


def _cited(rank: int, passage: FoundPassage, memory: WorkingMemory) -> CitedPassage:
    points = tuple(point.id for point in memory.points if passage.id in point.passages)
    return CitedPassage(rank, passage.id, passage.title, passage.text, points)


def answer_from_points(memory: WorkingMemory, passages: Sequence[FoundPassage]) -> tuple[str, tuple[CitedPassage, ...]]:
    """Returns an answer without the model: the points' descriptions, each with the passages that support it."""
    numbers = {passage.id: at for at, passage in enumerate(passages, 1)}
    sentences, used = [], set()
    for point in memory.points:
        ranks = sorted(numbers[id] for id in point.passages if id in numbers)
        used.update(ranks)
        sentences.append(qa_reader.without_markers(point.description).strip() + "".join(f" [{rank}]" for rank in ranks))
    return " ".join(sentences), tuple(_cited(rank, passages[rank - 1], memory) for rank in sorted(used))


def answer_from_passages(passages: Sequence[FoundPassage]) -> tuple[str, tuple[CitedPassage, ...]]:
    """Returns an answer without the model and without points: the titles of the passages that were found."""
    titles = "; ".join(f"{passage.title or passage.id} [{at}]" for at, passage in enumerate(passages, 1))
    cites = tuple(_cited(at, passage, WorkingMemory()) for at, passage in enumerate(passages, 1))
    return (f"{qa_reader.NO_ANSWER_WRITTEN} Found: {titles}." if titles else qa_reader.NO_ANSWER_WRITTEN), cites
