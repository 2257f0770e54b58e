"""Types for answers in several steps: the events while a question is answered, and the steps in the answer.

The JSON of a step in an answer is the complete record, from which the step can be repeated. These models describe the displayed
part only, so readers ignore unknown keys.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from daemon.contract.base import OpenResponse, Response
from daemon.contract.documents import TripleText


class MemoryPoint(Response):
    """A hyperedge: a statement about several entities, and the ids of the passages that support it. `absent`: entities that
    the model named and the graph lacks.
    """

    id: str
    description: str
    entities: list[str]
    passages: list[str]
    absent: list[str] = Field(default_factory=list)


class PointMemory(Response):
    points: list[MemoryPoint] = Field(default_factory=list)
    made: int = 0


class Concern(Response):
    """A gap in the working memory, and the subquery for it. `point`: the id of the point that the concern is about (local
    investigation), or None (global).
    """

    text: str
    subquery: str
    point: str | None = None


class FoundEntity(Response):
    phrase: str
    score: float


class FoundTriple(TripleText):
    score: float


class FoundPassage(Response):
    id: str
    title: str
    text: str = ""
    score: float


class Inquiry(Response):
    """The results of the subquery for a concern; its entities were chosen among `candidates` phrases."""

    concern: Concern
    candidates: int
    entities: list[FoundEntity] = Field(default_factory=list)
    triples: list[FoundTriple] = Field(default_factory=list)
    passages: list[FoundPassage] = Field(default_factory=list)


class PointChange(Response):
    """A change of a point. `kind`: inserted, updated or merged. `before`: the points that `point` replaces."""

    kind: str
    point: MemoryPoint
    before: list[MemoryPoint] = Field(default_factory=list)


class RejectedOutput(Response):
    """Output of the model that hippod refused, and the reason."""

    purpose: str
    why: str
    what: str


class DeepStep(Response):
    number: int
    before: PointMemory
    after: PointMemory
    enough: bool = False
    concerns: list[Concern] = Field(default_factory=list)
    inquiries: list[Inquiry] = Field(default_factory=list)
    changes: list[PointChange] = Field(default_factory=list)
    refused: list[RejectedOutput] = Field(default_factory=list)


class Thought(Response):
    """One sentence of reasoning. `sources`: ids of passages."""

    text: str
    answers: bool
    sources: list[str] = Field(default_factory=list)


class IterativeStep(Response):
    """A retrieval. `found`: the passages that its query found; `new`: ids of passages that no earlier step found; `passages`:
    the best of all steps so far.
    """

    number: int
    query: str
    found: list[FoundPassage]
    new: list[str]
    passages: list[FoundPassage]
    thought: Thought | None = None
    error: str | None = None


class StepEvent(OpenResponse):
    """An event while a question is answered. Each `kind` has a model below, with its other keys."""

    kind: str


class StepBegan(StepEvent):
    """A deep step begins; `points`: the number of points in the working memory."""

    kind: Literal["began"] = "began"
    step: int
    points: int


class StepJudged(StepEvent):
    kind: Literal["judged"] = "judged"
    step: int
    enough: bool
    concerns: list[Concern] = Field(default_factory=list)


class StepFound(StepEvent):
    kind: Literal["found"] = "found"
    step: int
    inquiry: Inquiry


class StepChanged(StepEvent):
    kind: Literal["changed"] = "changed"
    step: int
    changes: list[PointChange] = Field(default_factory=list)
    refused: list[RejectedOutput] = Field(default_factory=list)


class StepRetrieved(StepEvent):
    """An iterative step has retrieved passages. `new`: number of passages not found before; `titles`: their titles."""

    kind: Literal["retrieved"] = "retrieved"
    step: int
    query: str
    passages: int
    new: int
    titles: list[str] = Field(default_factory=list)


class StepThought(StepEvent):
    kind: Literal["thought"] = "thought"
    step: int
    thought: Thought


class StepsEnded(StepEvent):
    """The steps have ended, for the reason `stopped`; the answer is being written."""

    kind: Literal["answering"] = "answering"
    stopped: str
    points: int | None = None
    note: str | None = None


KnownStepEvent = Annotated[
    StepBegan | StepJudged | StepFound | StepChanged | StepRetrieved | StepThought | StepsEnded,
    Field(discriminator="kind"),
]
_KNOWN_STEP_EVENT: TypeAdapter[KnownStepEvent] = TypeAdapter(KnownStepEvent)


def parse_step_event(data: Any) -> KnownStepEvent | None:
    """Parses `data` as the model of its kind; None for an unknown kind of a newer daemon. Raises pydantic's ValidationError."""
    try:
        return _KNOWN_STEP_EVENT.validate_python(data)
    except ValidationError as error:
        if any(each["type"] == "union_tag_invalid" for each in error.errors(include_input=False)):
            return None
        raise
