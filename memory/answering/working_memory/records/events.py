"""Events while a deep question is answered. `kind` is the event's name in JSON."""

from dataclasses import dataclass
from typing import Literal

from memory.answering.working_memory.records.inquiries import Concern, Inquiry
from memory.answering.working_memory.records.trace import DeepStopReason, PointChange, Refusal


@dataclass(frozen=True, slots=True)
class StepBegan:
    """A step begins with this number of points."""

    step: int
    points: int
    kind: Literal["began"] = "began"


@dataclass(frozen=True, slots=True)
class MemoryJudged:
    """Whether the memory suffices, and the concerns if it does not."""

    step: int
    enough: bool
    concerns: tuple[Concern, ...]
    kind: Literal["judged"] = "judged"


@dataclass(frozen=True, slots=True)
class EvidenceFound:
    """The results for one concern."""

    step: int
    inquiry: Inquiry
    kind: Literal["found"] = "found"


@dataclass(frozen=True, slots=True)
class PointsChanged:
    """Changed points: one event after updating and inserting, one after merging."""

    step: int
    changes: tuple[PointChange, ...]
    refused: tuple[Refusal, ...]
    kind: Literal["changed"] = "changed"


@dataclass(frozen=True, slots=True)
class AnswerBegan:
    """The steps have ended; the answer is being written."""

    stopped: DeepStopReason
    points: int
    note: str | None
    kind: Literal["answering"] = "answering"


@dataclass(frozen=True, slots=True)
class AnswerGrew:
    """The text of the answer so far, which replaces that of the previous event."""

    text: str
    kind: Literal["writing"] = "writing"


DeepEvent = StepBegan | MemoryJudged | EvidenceFound | PointsChanged | AnswerBegan | AnswerGrew
"""Events of a deep question, in their order in each step."""
