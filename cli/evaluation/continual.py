"""Recall and answers as a memory grew: the memory as of earlier commits is asked the same questions again.

The measure of "From RAG to Memory" (HippoRAG 2), Figure 3: what arrived is cut into segments, and the questions that the
first one answers are asked after each segment. Here the segments are those in which the memory's own documents came.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cli.errors import CommandError
from cli.evaluation.questions import EvalQuestion
from cli.evaluation.run import Evaluation, evaluate
from daemon.contract.documents import DocumentEntry
from daemon.contract.evaluation import ComparisonResponse
from daemon.contract.query import RankedPassage

AskAsOf = Callable[[str], list[RankedPassage]]
"""All passages of the document with a URI."""


@dataclass(frozen=True, slots=True)
class Segment:
    """What had come by the end of a segment; `as_of` is None for the present."""

    number: int
    documents: int
    passages: int
    as_of: str | None


def segments(documents: Sequence[DocumentEntry], count: int) -> list[Segment]:
    """`count` segments of about as many passages each, in order of arrival. `CommandError` where it came in fewer steps."""
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
        # A segment ends where its share is reached, and at the latest where each step left has to be one of its own.
        if missing and (passages_so_far * count >= whole * (len(found) + 1) or left == missing):
            before_next = steps[at + 1][0] - timedelta(microseconds=1)
            found.append(Segment(len(found) + 1, documents_so_far, passages_so_far, before_next.isoformat()))
    return [*found, Segment(count, documents_so_far, passages_so_far, None)]


def _steps(documents: Sequence[DocumentEntry]) -> list[tuple[datetime, int, int]]:
    """(time, documents, passages) of each commit that brought what the memory holds now."""
    by_time: dict[datetime, list[DocumentEntry]] = {}
    for entry in documents:
        if entry.committed_at is not None and entry.passages:
            by_time.setdefault(entry.committed_at, []).append(entry)
    return [(time, len(all_), sum(entry.passages for entry in all_)) for time, all_ in sorted(by_time.items())]


def first_questions(
    questions: Sequence[EvalQuestion], documents: Sequence[DocumentEntry], first: Segment, look: AskAsOf
) -> list[EvalQuestion]:
    """The questions whose whole gold had come with the first segment. `CommandError` where there is none."""
    limit = datetime.fromisoformat(first.as_of) if first.as_of is not None else None
    there: list[RankedPassage] = []
    for entry in documents:
        if entry.committed_at is not None and entry.passages and (limit is None or entry.committed_at <= limit):
            there += look(entry.uri)
    answered = [question for question in questions if question.gold and question.found(there) == question.gold]
    if not answered:
        raise CommandError(
            f"none of the {len(questions)} questions is answered by the first segment ({first.passages:,} passages).",
            hint="Ask for fewer segments.",
        )
    return answered


def evaluate_growth(
    questions: Sequence[EvalQuestion],
    modes: Sequence[str | None],
    documents: Sequence[DocumentEntry],
    count: int,
    look: AskAsOf,
    evaluation: Callable[[str | None], Evaluation],
) -> list[tuple[Segment, ComparisonResponse]]:
    """The modes' scores after each of `count` segments, over the first one's questions. `evaluation`: as of a time."""
    parts = segments(documents, count)
    asked = first_questions(questions, documents, parts[0], look)
    return [(segment, evaluate(asked, modes, evaluation(segment.as_of))) for segment in parts]
