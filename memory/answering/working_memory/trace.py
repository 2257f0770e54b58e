"""Data classes of a whole deep question: its settings, steps and model calls, and the events during its answer.

The data classes are immutable and contain texts and passage ids, never rows of a snapshot, so a trace stays valid after its
commit. `trace_to_json` and the functions below it convert traces, events and working memories to JSON, and JSON to working
memories. JSON of another version is refused. Unknown keys, which a later hippod may add, are ignored. An event's `kind` is its
name in JSON.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from memory.answering.budget import Budget
from memory.answering.working_memory.declared_settings import DEEP_SETTINGS
from memory.answering.working_memory.inquiries import Concern, FoundPassage, Inquiry, InvestigationKind
from memory.answering.working_memory.points import MemoryPoint, WorkingMemory
from memory.llm.client import ChatMessage

TRACE_VERSION = 2
"""Version of the JSON of traces. In version 1, steps were counted from 1, and each judgement included its subqueries."""
MEMORY_VERSION = 1
"""Version of the JSON of working memories."""
DEEP_CALLS_PER_STEP = 7
"""Requests allowed per step: the judge, three subqueries, update and insertion, merging, and one retry."""
DEEP_TOKENS = 200_000
Purpose = Literal["judge", "subquery", "evolve", "merge", "answer"]
DeepStopReason = Literal["enough", "steps", "nothing new", "calls", "tokens", "seconds", "model"]
"""Reason for the end of the steps: the judge found the memory sufficient; all steps were made; there was no concern, or nothing
was found; one of three limits was reached; a model call failed."""


@dataclass(frozen=True, slots=True)
class DeepSettings:
    """`only`, `update` and `merge` switch the paper's ablations.

    Defaults are the paper's (sections 4.2 and 5.2, appendix B.1 of its third version), if the paper gives them.
    """

    steps: int = 3
    """Number of the last step. Step 0 retrieves for the question itself, so 3 allows four retrievals."""
    quick: bool = False
    """Whether one call returns the judgement, the concerns and their subqueries; the concerns may then be of both kinds.
    Otherwise, all concerns are of one kind, and a separate call writes each subquery."""
    each_step: bool = False
    """Whether an answer is written after every step, for plots."""
    forced: bool = False
    """Whether all steps run even if the judge finds the points sufficient."""
    only: InvestigationKind | None = None
    update: bool = True
    merge: bool = True
    budget: Budget = field(default_factory=lambda: Budget(calls=DEEP_CALLS_PER_STEP * 4, tokens=DEEP_TOKENS))
    concerns: int = 3
    """Maximum number of concerns per step."""
    entities: int = DEEP_SETTINGS["n_v"].default
    """Maximum number of entities retrieved for a concern (n_v in the paper)."""
    triples: int = DEEP_SETTINGS["n_e"].default
    """Maximum number of triples per retrieved entity (n_e in the paper)."""
    passages: int = DEEP_SETTINGS["n_d"].default
    """Maximum number of passages with a retrieved entity (n_d in the paper)."""
    answer_passages: int = DEEP_SETTINGS["answer_passages"].default
    """Maximum number of passages from which the answer is written."""
    temperature: float | None = DEEP_SETTINGS["model_temperature"].default
    """Temperature of the model's calls; None means the temperature of `[llm]`. The paper uses 0.8."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """Either `reply` or `error` is set.

    `requests` is the number of requests sent, including retries after failures or unusable answers. Tokens are counted by the
    server, or else estimated. `cut`: the reply reached its length limit, so its last entry may be incomplete.
    """

    purpose: Purpose
    messages: tuple[ChatMessage, ...]
    reply: str | None = None
    error: str | None = None
    requests: int = 1
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused part of a model's output. `why` is one of a few fixed reasons, so that refusals can be counted."""

    purpose: Purpose
    why: str
    what: str


@dataclass(frozen=True, slots=True)
class PointChange:
    """A point after a step, and its earlier points `before`: none if inserted, one if updated, several if merged."""

    kind: Literal["inserted", "updated", "merged"]
    point: MemoryPoint
    before: tuple[MemoryPoint, ...] = ()


@dataclass(frozen=True, slots=True)
class StepAnswer:
    """An answer written after a step, from `passages`, if requested."""

    text: str
    short: str
    found: bool
    calls: tuple[ModelCall, ...]
    passages: tuple[FoundPassage, ...] = ()


@dataclass(frozen=True, slots=True)
class StepRecord:
    """`concerns`, `changes`, `refused` and `after` can be computed again from the record; tests compute them. `enough`: the
    judge found the memory sufficient, so nothing was retrieved. `held`: names in the model's answer that the graph has but the
    retrieved material lacks. They are recorded because only the snapshot could identify them. A call that was not made is None:
    the first step of an empty memory needs no judge, and a memory of one point needs no merging."""

    number: int
    before: WorkingMemory
    after: WorkingMemory
    enough: bool = False
    concerns: tuple[Concern, ...] = ()
    inquiries: tuple[Inquiry, ...] = ()
    changes: tuple[PointChange, ...] = ()
    refused: tuple[Refusal, ...] = ()
    held: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    """Subqueries of the earlier steps, as in the judge's prompt."""
    judged: ModelCall | None = None
    worded: tuple[ModelCall, ...] = ()
    """The calls that wrote the subqueries, one per concern, in order; none in a quick step."""
    evolved: ModelCall | None = None
    merged: ModelCall | None = None
    answer: StepAnswer | None = None
    own_seconds: float = 0.0
    """Seconds of the step without waiting for the model."""


@dataclass(frozen=True, slots=True)
class Trace:
    """`earlier` is the memory before the first step. `forgotten` contains the ids of earlier points that this commit does not
    support."""

    question: str
    commit: int
    settings: DeepSettings
    earlier: WorkingMemory = field(default_factory=WorkingMemory)
    forgotten: tuple[str, ...] = ()
    steps: tuple[StepRecord, ...] = ()
    answered: tuple[ModelCall, ...] = ()
    """The calls for the answer: one call and its retries."""
    version: int = TRACE_VERSION

    @property
    def memory(self) -> WorkingMemory:
        return self.steps[-1].after if self.steps else self.earlier


@dataclass(frozen=True, slots=True)
class StepBegan:
    """A step begins; the memory has `points` points."""

    step: int
    points: int
    kind: Literal["began"] = "began"


@dataclass(frozen=True, slots=True)
class MemoryJudged:
    """The judge's answer: whether the memory suffices, or else its concerns."""

    step: int
    enough: bool
    concerns: tuple[Concern, ...]
    kind: Literal["judged"] = "judged"


@dataclass(frozen=True, slots=True)
class EvidenceFound:
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
    """The steps have ended; the model writes the answer."""

    stopped: DeepStopReason
    points: int
    note: str | None
    kind: Literal["answering"] = "answering"


@dataclass(frozen=True, slots=True)
class AnswerGrew:
    """The whole text of the answer so far."""

    text: str
    kind: Literal["writing"] = "writing"


DeepEvent = StepBegan | MemoryJudged | EvidenceFound | PointsChanged | AnswerBegan | AnswerGrew
"""Events of a deep question, in the order in which a step emits them."""


_TRACE = TypeAdapter(Trace)
_MEMORY = TypeAdapter(WorkingMemory)
_EVENT: TypeAdapter[DeepEvent] = TypeAdapter(DeepEvent)


class BadWorkingMemory(ValueError):
    """The JSON is not a working memory of a supported version.

    The message is one line and names the position of the error.
    """


def trace_to_json(trace: Trace) -> dict[str, Any]:
    value: dict[str, Any] = _TRACE.dump_python(trace, mode="json")
    return value


def memory_to_json(memory: WorkingMemory) -> dict[str, Any]:
    """Returns the working memory as a JSON object with a `version`, as sessions store it."""
    value: dict[str, Any] = _MEMORY.dump_python(memory, mode="json")
    return {"version": MEMORY_VERSION, **value}


def memory_from_json(value: object) -> WorkingMemory:
    """Raises BadWorkingMemory."""
    if not isinstance(value, dict) or "version" not in value:
        raise BadWorkingMemory("this is not the JSON of a working memory: it has no version")
    if value["version"] != MEMORY_VERSION:
        raise BadWorkingMemory(
            f"this is a working memory of version {value['version']!r}; this hippod reads version {MEMORY_VERSION}"
        )
    try:
        return _MEMORY.validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise BadWorkingMemory(f"this is not a working memory: at {where}: {first['msg']}") from None


def event_to_json(event: DeepEvent) -> dict[str, Any]:
    value: dict[str, Any] = _EVENT.dump_python(event, mode="json")
    return value
