"""Recall and answer quality while a memory grew: asks the same questions of earlier commits.

Measure of "From RAG to Memory" (HippoRAG 2), Figure 3: the arrived documents are cut into segments, and the questions answered
by the first segment are asked after each segment. Segments follow the order in which the memory's documents were committed.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from cli.errors import CommandError
from cli.evaluation.comparison import SEED
from cli.evaluation.questions import EvalQuestion, GoldLocator
from cli.evaluation.requests import EvalRequests
from cli.evaluation.rows import Row
from cli.evaluation.run import evaluate
from daemon.contract.documents import DocumentEntry
from daemon.contract.evaluation import ComparisonResponse


@dataclass(frozen=True, slots=True)
class Segment:
    """Documents and passages that had arrived by the end of a segment. `as_of` is None for the present."""

    number: int
    documents: int
    passages: int
    as_of: str | None


def segments(documents: Sequence[DocumentEntry], count: int) -> list[Segment]:
    """Returns `count` segments with about equally many passages, in order of arrival.

    Raises `CommandError` if the documents were committed in fewer than `count` commits.
    """
    steps = _steps(documents)
    if len(steps) < count:
        raise CommandError(
            f"the memory came in {len(steps)} commits; it cannot be cut into {count} segments.",
            hint="Ask for fewer segments, or let the documents come a few at a time.",
        )
    whole = sum(passages for _, _, passages in steps)
    found: list[Segment] = []
    documents_so_far = passages_so_far = 0
    for at, (_, entries, passages) in enumerate(steps):
        documents_so_far, passages_so_far = documents_so_far + entries, passages_so_far + passages
        left, missing = len(steps) - at - 1, count - len(found) - 1
        # A segment ends when its share is reached, or when each remaining commit must become a segment of its own.
        if missing and (passages_so_far * count >= whole * (len(found) + 1) or left == missing):
            before_next = steps[at + 1][0] - timedelta(microseconds=1)
            found.append(Segment(len(found) + 1, documents_so_far, passages_so_far, before_next.isoformat()))
    return [*found, Segment(count, documents_so_far, passages_so_far, None)]


def _steps(documents: Sequence[DocumentEntry]) -> list[tuple[datetime, int, int]]:
    """Returns (time, documents, passages) of each commit; counts only documents that are still in the memory."""
    by_time: dict[datetime, list[DocumentEntry]] = {}
    for entry in documents:
        if entry.committed_at is not None and entry.passages:
            by_time.setdefault(entry.committed_at, []).append(entry)
    return [(time, len(all_), sum(entry.passages for entry in all_)) for time, all_ in sorted(by_time.items())]


def documents_of(segment: Segment, documents: Sequence[DocumentEntry]) -> list[DocumentEntry]:
    """Returns the documents that had arrived by the end of the segment."""
    limit = datetime.fromisoformat(segment.as_of) if segment.as_of is not None else None
    return [
        entry
        for entry in documents
        if entry.committed_at is not None and entry.passages and (limit is None or entry.committed_at <= limit)
    ]


def chosen_segment(parts: Sequence[Segment], name: str) -> Segment:
    """Returns the segment with the number `name`; "random" draws one with a fixed seed."""
    if name == "random":
        return random.Random(SEED).choice(parts)
    return parts[int(name) - 1]


def answered_questions(
    questions: Sequence[EvalQuestion], segment: Segment, locator: GoldLocator, before: GoldLocator | None = None
) -> list[EvalQuestion]:
    """Returns the questions whose gold was complete at the end of `segment` but not at the end of `before`.

    Raises `CommandError` if there are no such questions.
    """
    answered = [found for each in questions if each.gold and not (found := locator.locate(each)).absent]
    if before is not None:
        answered = [each for each in answered if before.locate(each).absent]
    if not answered:
        raise CommandError(
            f"none of the {len(questions)} questions is answered by segment {segment.number} "
            f"({segment.passages:,} passages).",
            hint="Ask for fewer segments.",
        )
    return answered


def evaluate_growth(
    questions: Sequence[EvalQuestion],
    rows: Sequence[Row],
    documents: Sequence[DocumentEntry],
    count: int,
    requests: EvalRequests,
    first: str = "1",
) -> list[tuple[Segment, ComparisonResponse]]:
    """Returns the rows' scores after the segment `first` and after each later one of `count` segments. Asks the questions whose
    gold was complete after the segment `first`, but not before."""

    def locator(segment: Segment) -> GoldLocator:
        arrived = documents_of(segment, documents)
        return GoldLocator(replace(requests, as_of=segment.as_of).word_matches, lambda: [each.uri for each in arrived])

    parts = segments(documents, count)
    chosen = chosen_segment(parts, first)
    before = locator(parts[chosen.number - 2]) if chosen.number > 1 else None
    answered = answered_questions(questions, chosen, locator(chosen), before)
    later = parts[chosen.number - 1 :]
    return [(segment, evaluate(answered, rows, replace(requests, as_of=segment.as_of))) for segment in later]
