"""The answer: from the points and the passages of their entities, cited, verified; without the model where it is gone."""

from collections.abc import Sequence

import numpy as np

from memory import reading
from memory.ranking import cosines
from memory.working import prompts
from memory.working.evidence import Vector, best_passages, found_passages, holding, rows_of
from memory.working.spending import ANSWER_TOKENS, Spending, estimate
from memory.working.types import Cited, DeepSettings, FoundPassage, Memory, StepRecord
from store.snapshot import Snapshot

UNWRITTEN = "No answer was written."


def answer_passages(
    snapshot: Snapshot,
    vector: Vector | None,
    memory: Memory,
    steps: Sequence[StepRecord],
    settings: DeepSettings,
) -> tuple[FoundPassage, ...]:
    """At most `answer_passages` of them: first what vouches for the points, then what holds their entities.

    Of the first each point gets its turn, its passages nearest to the question first; the second are those nearest to the
    question. A memory without points falls back on what the steps found, then on the nearest passages there are. `vector`
    is the question's embedding; None where the encoder could not be had: then passages keep the order that they came in.
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
        among = holding(snapshot, rows_of(snapshot, memory.vertices)) if memory.points else snapshot.passage_alive
        chosen.update(dict.fromkeys(best_passages(snapshot, vector, among, k)[0]))
    rows = list(chosen)[:k]
    if vector is None or not rows:
        return found_passages(snapshot, rows, [0.0] * len(rows))
    return found_passages(
        snapshot, rows, [float(score) for score in cosines(snapshot.passage_vectors, vector, np.array(rows))]
    )


def _nearest(snapshot: Snapshot, vector: Vector | None, ids: Sequence[str], k: int) -> list[int]:
    rows = [row for id in ids if (row := snapshot.passage_row(id)) is not None]
    if vector is None:
        return rows[:k]
    mask = np.zeros(snapshot.n_passages, np.bool_)
    mask[rows] = True
    return best_passages(snapshot, vector, mask, k)[0]


def fitting(
    question: str, memory: Memory, passages: tuple[FoundPassage, ...], spending: Spending
) -> tuple[FoundPassage, ...]:
    """As many of the passages, from the first, as the tokens left allow."""
    room = spending.tokens_left() - ANSWER_TOKENS
    while passages and estimate(prompts.answer(question, memory, passages)) > room:
        passages = passages[:-1]
    return passages


def cited(answer: reading.Answer, memory: Memory, passages: Sequence[FoundPassage]) -> tuple[Cited, ...]:
    """The passages that the answer cites, with the points that each vouches for."""
    return tuple(_cited(rank, passages[rank - 1], memory) for rank in answer.cited)


def _cited(rank: int, passage: FoundPassage, memory: Memory) -> Cited:
    points = tuple(point.id for point in memory.points if passage.id in point.passages)
    return Cited(rank, passage.id, passage.title, passage.text, points)


def from_points(memory: Memory, passages: Sequence[FoundPassage]) -> tuple[str, tuple[Cited, ...]]:
    """The points' descriptions, each with the passages that vouch for it: what can be said without the model."""
    numbers = {passage.id: at for at, passage in enumerate(passages, 1)}
    told, used = [], set()
    for point in memory.points:
        ranks = sorted(numbers[id] for id in point.passages if id in numbers)
        used.update(ranks)
        told.append(reading.without_markers(point.description).strip() + "".join(f" [{rank}]" for rank in ranks))
    return " ".join(told), tuple(_cited(rank, passages[rank - 1], memory) for rank in sorted(used))


def from_passages(passages: Sequence[FoundPassage]) -> tuple[str, tuple[Cited, ...]]:
    """The passages that were found, by title: what can be said without the model and without a point."""
    told = "; ".join(f"{passage.title or passage.id} [{at}]" for at, passage in enumerate(passages, 1))
    cites = tuple(_cited(at, passage, Memory()) for at, passage in enumerate(passages, 1))
    return (f"{UNWRITTEN} Found: {told}." if told else UNWRITTEN), cites


def halved(passages: tuple[FoundPassage, ...]) -> tuple[FoundPassage, ...]:
    return passages[: (len(passages) + 1) // 2]
