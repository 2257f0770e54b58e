"""What travels through a deep question: memory points, what a step did, the trace of all steps, the answer.

Everything here is immutable and holds texts and passage ids, never rows of a snapshot: a point may outlive its commit.
`memory.working.saved` turns these types into JSON and back.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

VERSION = 1
"""Of the JSON that traces and memories are written as."""

Only = Literal["local", "global"]
InThread = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs a function that occupies the processor for some milliseconds beside the event loop; `asyncio.to_thread` does."""
Purpose = Literal["judge", "evolve", "merge", "answer"]
Stopped = Literal["enough", "steps", "nothing new", "calls", "tokens", "seconds", "model"]
"""Why no further step was made: the judge had enough; the steps were made; no concern, or nothing found for any; a budget
was reached (three kinds); a model call failed."""


@dataclass(frozen=True, slots=True)
class Point:
    """A memory point, a hyperedge: what is known about several entities together.

    `entities` are normalised phrases, at least one of them the graph's, each once, sorted. `absent` are those among them
    that the model named and the graph lacks. `passages` are ids of the passages that vouch for the description, at least
    one, each once, in the order they came.
    """

    id: str
    description: str
    entities: tuple[str, ...]
    passages: tuple[str, ...]
    absent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Memory:
    """The working memory: a hypergraph whose hyperedges are `points` and whose vertices are their entities.

    `made` is how many points were ever made in it: the next one is called `p<made + 1>`, so no name comes twice.
    """

    points: tuple[Point, ...] = ()
    made: int = 0

    @property
    def vertices(self) -> tuple[str, ...]:
        """Every entity of every point, once, sorted."""
        return tuple(sorted({entity for point in self.points for entity in point.entities}))

    @property
    def incidence(self) -> Mapping[str, tuple[str, ...]]:
        """For each vertex the ids of the points that it is in."""
        found: dict[str, list[str]] = {vertex: [] for vertex in self.vertices}
        for point in self.points:
            for entity in point.entities:
                found[entity].append(point.id)
        return {vertex: tuple(ids) for vertex, ids in found.items()}

    def neighbours(self, entities: Iterable[str]) -> frozenset[str]:
        """Vertices that share a point with one of `entities`; each of those too where another of them shares its point."""
        wanted = set(entities)
        found: set[str] = set()
        for point in self.points:
            inside = wanted.intersection(point.entities)
            if len(inside) > 1:
                found.update(point.entities)
            elif inside:
                found.update(set(point.entities) - inside)
        return frozenset(found)

    def point(self, id: str) -> Point | None:
        return next((point for point in self.points if point.id == id), None)

    @property
    def entities_a_point(self) -> float:
        """The paper's measure of how complex the relations are: entities a point on average, 0.0 without points."""
        return sum(len(point.entities) for point in self.points) / len(self.points) if self.points else 0.0


@dataclass(frozen=True, slots=True)
class Concern:
    """What the memory lacks, and the one subquery that is asked for it.

    `point` is the id of the point that it is about (local investigation), None beyond the memory (global exploration).
    """

    text: str
    subquery: str
    point: str | None = None

    @property
    def kind(self) -> Only:
        return "global" if self.point is None else "local"


@dataclass(frozen=True, slots=True)
class FoundEntity:
    """A phrase of the graph and its cosine with the subquery."""

    phrase: str
    score: float


@dataclass(frozen=True, slots=True)
class FoundTriple:
    """A triple about a retrieved entity and its cosine with the subquery."""

    subject: str
    predicate: str
    object: str
    score: float


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """A passage that holds a retrieved entity, its cosine with the subquery, and all phrases that stand in it."""

    id: str
    title: str
    text: str
    score: float
    phrases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Inquiry:
    """One concern and what was retrieved for it, best first.

    `candidates`: how many phrases could be retrieved (the size of the set of formula 6 or 7). `withheld`: ids of retrieved
    passages that the model was not shown because it complained of the length.
    """

    concern: Concern
    candidates: int
    entities: tuple[FoundEntity, ...] = ()
    triples: tuple[FoundTriple, ...] = ()
    passages: tuple[FoundPassage, ...] = ()
    withheld: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Message:
    role: str
    content: str


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One question to the model: what it was given, what it said. Either `reply` or `error` is set.

    `requests` is how often it was really asked (tried again after trouble or an answer of no use). Tokens are the
    server's own count, else estimated. `cut`: the reply ran into its length limit, so the last thing in it may be half.
    """

    purpose: Purpose
    messages: tuple[Message, ...]
    reply: str | None = None
    error: str | None = None
    requests: int = 1
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """Something in a model's output that was not taken. `why` is one of a few fixed words, for counting."""

    purpose: Purpose
    why: str
    what: str


@dataclass(frozen=True, slots=True)
class Change:
    """A point that came of a step, and the points that it was before (none: inserted; one: updated; more: merged)."""

    kind: Literal["inserted", "updated", "merged"]
    point: Point
    before: tuple[Point, ...] = ()


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step, whole: `memory.working.replay.replay` makes the same `concerns`, `changes`, `refused` and `after` of it.

    `enough` is the judge's word that the memory suffices; then nothing was retrieved. `held` are names that the model gave
    and that the graph holds outside of what was retrieved (looked up in the snapshot, so part of the record). A call that
    was not made is None: the first step of an empty memory needs no judge, a memory of one point no merging.
    """

    number: int
    before: Memory
    after: Memory
    enough: bool = False
    concerns: tuple[Concern, ...] = ()
    inquiries: tuple[Inquiry, ...] = ()
    changes: tuple[Change, ...] = ()
    refused: tuple[Refused, ...] = ()
    held: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    """Subqueries of the steps before, which the judge is told."""
    judged: ModelCall | None = None
    evolved: ModelCall | None = None
    merged: ModelCall | None = None
    own_seconds: float = 0.0
    """Time that hippod itself spent in the step: all but waiting for the model."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What a deep question may cost at most. The answer's call is kept in reserve: reaching one ends the steps."""

    calls: int = 12
    """Requests to the model that were taken, tries again included."""
    tokens: int = 100_000
    """Prompt and completion together, as the server counts them, else one for three characters."""
    seconds: float = 300.0
    """From question to answer; a fifth of it is kept for the answer."""


@dataclass(frozen=True, slots=True)
class DeepSettings:
    """How a deep question is worked on. `only`, `update` and `merge` are the paper's ablations."""

    steps: int = 3
    only: Only | None = None
    update: bool = True
    merge: bool = True
    budget: Budget = field(default_factory=Budget)
    concerns: int = 3
    """Most concerns of one step."""
    entities: int = 10
    """Most entities retrieved for a concern."""
    triples: int = 10
    """Most triples of those entities."""
    passages: int = 5
    """Most passages of those entities."""
    answer_passages: int = 12
    """Most passages that the answer is written from."""


@dataclass(frozen=True, slots=True)
class Cited:
    """A passage that the answer cites as [rank]. `points`: ids of the points that it vouches for."""

    rank: int
    id: str
    title: str
    text: str
    points: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """A deep question from beginning to end, all on one commit.

    `earlier` is the memory that it began with, `forgotten` ids of earlier points that this commit no longer vouches for.
    """

    question: str
    commit: int
    settings: DeepSettings
    earlier: Memory = Memory()
    forgotten: tuple[str, ...] = ()
    steps: tuple[StepRecord, ...] = ()
    answered: tuple[ModelCall, ...] = ()
    """The call for the answer; two where the first failed."""
    version: int = VERSION

    @property
    def memory(self) -> Memory:
        """The memory at the end."""
        return self.steps[-1].after if self.steps else self.earlier

    @property
    def calls(self) -> tuple[ModelCall, ...]:
        """Every call, in order."""
        of_steps = [
            call for step in self.steps for call in (step.judged, step.evolved, step.merged) if call is not None
        ]
        return (*of_steps, *self.answered)


@dataclass(frozen=True, slots=True)
class Tokens:
    prompt: int = 0
    completion: int = 0


@dataclass(frozen=True, slots=True)
class DeepAnswer:
    """The answer. `text` has its citations in it as [n], each the `rank` of one of `citations`.

    `short` is the bare answer, "" where the memory does not hold it (`found` is false). `note` is a sentence for the user
    where something went wrong or a budget was reached. `written` is false where the model could not be had for the answer:
    then `text` is the points' descriptions, or names the passages that were found.
    """

    question: str
    text: str
    short: str
    found: bool
    citations: tuple[Cited, ...]
    trace: Trace
    tokens: Tokens
    stopped: Stopped
    note: str | None = None
    written: bool = True
    requests: int = 0
    """How often the model was asked in all."""
    seconds: float = 0.0
    own_seconds: float = 0.0
    """Of those, what hippod itself spent: all but waiting for the model."""


@dataclass(frozen=True, slots=True)
class Began:
    """A step begins with so many points."""

    step: int
    points: int
    kind: Literal["began"] = "began"


@dataclass(frozen=True, slots=True)
class Judged:
    """Whether the memory suffices, else what is asked for."""

    step: int
    enough: bool
    concerns: tuple[Concern, ...]
    kind: Literal["judged"] = "judged"


@dataclass(frozen=True, slots=True)
class Found:
    """What was found for one concern."""

    step: int
    inquiry: Inquiry
    kind: Literal["found"] = "found"


@dataclass(frozen=True, slots=True)
class Changed:
    """Points that changed, as they do: once after updating and inserting, once after merging."""

    step: int
    changes: tuple[Change, ...]
    refused: tuple[Refused, ...]
    kind: Literal["changed"] = "changed"


@dataclass(frozen=True, slots=True)
class Answering:
    """The steps are over; the answer is being written."""

    stopped: Stopped
    points: int
    note: str | None
    kind: Literal["answering"] = "answering"


@dataclass(frozen=True, slots=True)
class Writing:
    """What of the answer there is so far; the next one replaces it."""

    text: str
    kind: Literal["writing"] = "writing"


Event = Began | Judged | Found | Changed | Answering | Writing
"""What `on_event` is told, in this order for each step."""
