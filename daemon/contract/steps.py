"""Questions of several steps as they travel: what happens while one is answered, and its steps afterwards.

A step's JSON in an answer is the whole record, from which the step can be made again; the models here are the part that
is shown to people. A reader passes over what it does not know.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from daemon.contract.model import OpenResponse, Response


class MemoryPoint(Response):
    """A hyperedge: what is known about several entities together, and the ids of the passages that vouch for it.

    `absent` are those of the entities that the model named and the graph lacks.
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
    """What the memory lacks and the subquery that is asked for it; `point` is the one that it is about, None beyond all."""

    text: str
    subquery: str
    point: str | None = None


class FoundEntity(Response):
    phrase: str
    score: float


class FoundTriple(Response):
    subject: str
    predicate: str
    object: str
    score: float


class FoundPassage(Response):
    id: str
    title: str
    text: str = ""
    score: float


class Inquiry(Response):
    """What was retrieved for a concern, out of `candidates` phrases."""

    concern: Concern
    candidates: int
    entities: list[FoundEntity] = Field(default_factory=list)
    triples: list[FoundTriple] = Field(default_factory=list)
    passages: list[FoundPassage] = Field(default_factory=list)


class PointChange(Response):
    """`kind`: inserted, updated or merged; `before`: the points that it was."""

    kind: str
    point: MemoryPoint
    before: list[MemoryPoint] = Field(default_factory=list)


class RefusedOutput(Response):
    """Something that the model said and that was not taken."""

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
    refused: list[RefusedOutput] = Field(default_factory=list)


class StepThought(Response):
    """One sentence towards the answer; `sources` are ids of passages."""

    text: str
    answers: bool
    sources: list[str] = Field(default_factory=list)


class IterativeStep(Response):
    """`found`: by this step's query; `new`: ids of those that no earlier step had found; `passages`: the best of all."""

    number: int
    query: str
    found: list[FoundPassage]
    new: list[str]
    passages: list[FoundPassage]
    thought: StepThought | None = None
    error: str | None = None


class StepBegan(Response):
    """A deep step begins with so many points in memory."""

    kind: Literal["began"] = "began"
    step: int
    points: int


class StepJudged(Response):
    kind: Literal["judged"] = "judged"
    step: int
    enough: bool
    concerns: list[Concern] = Field(default_factory=list)


class StepFound(Response):
    kind: Literal["found"] = "found"
    step: int
    inquiry: Inquiry


class StepChanged(Response):
    kind: Literal["changed"] = "changed"
    step: int
    changes: list[PointChange] = Field(default_factory=list)
    refused: list[RefusedOutput] = Field(default_factory=list)


class StepRetrieved(Response):
    """An iterative step has its passages, of which `new` were not found before; `titles` are those of the new ones."""

    kind: Literal["retrieved"] = "retrieved"
    step: int
    query: str
    passages: int
    new: int
    titles: list[str] = Field(default_factory=list)


class StepThinks(Response):
    kind: Literal["thought"] = "thought"
    step: int
    thought: StepThought


class Answering(Response):
    """The steps are over, for the reason `stopped`; the answer is being written."""

    kind: Literal["answering"] = "answering"
    stopped: str
    points: int | None = None
    note: str | None = None


class StepEvent(OpenResponse):
    """While a question is answered: one thing that happened, by its `kind`. The other keys are those of the model named so."""

    kind: str


Told = Annotated[
    StepBegan | StepJudged | StepFound | StepChanged | StepRetrieved | StepThinks | Answering,
    Field(discriminator="kind"),
]
_TOLD: TypeAdapter[Told] = TypeAdapter(Told)


def read_event(data: Any) -> Told | None:
    """One of the events above; None for a kind that a newer daemon may have. Raises pydantic's ValidationError."""
    try:
        return _TOLD.validate_python(data)
    except ValidationError as error:
        if any(each["type"] == "union_tag_invalid" for each in error.errors(include_input=False)):
            return None
        raise
