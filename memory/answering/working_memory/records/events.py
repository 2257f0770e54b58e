"""What happens while a deep question is worked on, as it happens. `kind` is the name in the JSON."""

from dataclasses import dataclass
from typing import Literal

from memory.answering.working_memory.records.inquiries import Concern, Inquiry
from memory.answering.working_memory.records.trace import DeepStopReason, PointChange, Refusal


@dataclass(frozen=True, slots=True)
class StepBegan:
    """A step begins with so many points."""

    step: int
    points: int
    kind: Literal["began"] = "began"


@dataclass(frozen=True, slots=True)
class MemoryJudged:
    """Whether the memory suffices, else what is asked for."""

    step: int
    enough: bool
    concerns: tuple[Concern, ...]
    kind: Literal["judged"] = "judged"


@dataclass(frozen=True, slots=True)
class EvidenceFound:
    """What was found for one concern."""

    step: int
    inquiry: Inquiry
    kind: Literal["found"] = "found"


@dataclass(frozen=True, slots=True)
class PointsChanged:
    """Points that changed, as they do: once after updating and inserting, once after merging."""

    step: int
    changes: tuple[PointChange, ...]
    refused: tuple[Refusal, ...]
    kind: Literal["changed"] = "changed"


@dataclass(frozen=True, slots=True)
class AnswerBegan:
    """The steps are over; the answer is being written."""

    stopped: DeepStopReason
    points: int
    note: str | None
    kind: Literal["answering"] = "answering"


@dataclass(frozen=True, slots=True)
class AnswerGrew:
    """What of the answer there is so far; the next one replaces it."""

    text: str
    kind: Literal["writing"] = "writing"


DeepEvent = StepBegan | MemoryJudged | EvidenceFound | PointsChanged | AnswerBegan | AnswerGrew
"""In this order for each step."""
