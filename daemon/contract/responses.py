"""What a client receives, command by command. Times are RFC 3339 in UTC, durations say their unit."""

from typing import Any

from pydantic import AwareDatetime, Field

from daemon.contract.model import OpenResponse, Response, absent
from daemon.contract.routes import Answerer, DaemonState, DocumentState


class Edges(Response):
    relation: int
    context: int
    synonym: int


class SourceStatus(OpenResponse):
    """`lag`: how many changes the source knows of that are not committed yet; `None` when it cannot say."""

    kind: str
    name: str
    state: str
    lag: int | None = None


class ExtractionStatus(Response):
    """Passages that wait for the extractor, those it could not read; what all wait for and since when, where they do."""

    waiting: int
    failed: int
    waiting_for: str | None = Field(default=None, exclude_if=absent)
    since: AwareDatetime | None = Field(default=None, exclude_if=absent)


class SynonymRecall(Response):
    """Of `phrases` sampled ones, at `commit`, `pairs` synonym edges should exist; `recall` is the share that does."""

    commit: int
    phrases: int
    pairs: int
    recall: float


class Status(Response):
    """`pending` and `failed` count documents. `trouble`: why nothing can be committed now (a full disk, say).

    `synonym_recall`: only where phrases are too many to compare each with all.
    """

    state: DaemonState
    commit: int
    pending: int
    failed: int
    documents: int
    passages: int
    phrases: int
    triples: int
    edges: Edges
    encoder: str
    openie: str
    sources: list[SourceStatus]
    uptime_s: float
    rss_bytes: int
    extraction: ExtractionStatus | None = Field(default=None, exclude_if=absent)
    trouble: str | None = Field(default=None, exclude_if=absent)
    synonym_recall: SynonymRecall | None = Field(default=None, exclude_if=absent)


class Health(Response):
    """`state` is "ready" exactly when the HTTP status is 200."""

    state: DaemonState


class RankedPassage(Response):
    """`rank` counts from 1. `document`: the first, by URI, that holds the passage; `also_in`: the others."""

    rank: int
    score: float
    id: str
    title: str
    text: str
    document: str
    location: dict[str, Any]
    also_in: list[str] = Field(default_factory=list, exclude_if=absent)


class ScoredTriple(Response):
    """A triple the query was linked to; `kept` says whether recognition memory kept it."""

    subject: str
    predicate: str
    object: str
    score: float
    kept: bool


class SeedPhrase(Response):
    phrase: str
    weight: float


class NamedPassage(Response):
    """`document`: the first, by URI, that holds the passage."""

    id: str
    title: str
    document: str


class PhraseShare(Response):
    phrase: str
    share: float


class PassageShare(NamedPassage):
    share: float


class VouchedTriple(Response):
    """A triple, and the passages that state it."""

    subject: str
    predicate: str
    object: str
    passages: list[NamedPassage]


class PathStep(Response):
    """A node, "phrase" or "passage" (then with its id; `text` is its title), and the edge that leads to it from the step
    before: "relation", "synonym" or "context", with its weight and the triples that it stands for."""

    kind: str
    text: str
    id: str | None = Field(default=None, exclude_if=absent)
    edge: str | None = Field(default=None, exclude_if=absent)
    weight: float | None = Field(default=None, exclude_if=absent)
    triples: list[VouchedTriple] = Field(default_factory=list, exclude_if=absent)


class Path(Response):
    """The strongest way from a seed to the passage; `share` of the passage's score went along exactly its edges."""

    share: float
    steps: list[PathStep]


class PassageReason(Response):
    """Why the passage at `rank` is there: its cosine with the query, and which seeds its PageRank came from.

    `own_share` (its own similarity), the shares of `seeds`, and `other_share` (all other passages, the largest of them
    named) sum to 1; they are absent where no walk was made.
    """

    rank: int
    id: str
    similarity: float
    own_share: float | None = Field(default=None, exclude_if=absent)
    seeds: list[PhraseShare] = Field(default_factory=list)
    other_share: float | None = Field(default=None, exclude_if=absent)
    others: list[PassageShare] = Field(default_factory=list, exclude_if=absent)
    path: Path | None = Field(default=None, exclude_if=absent)


class Explanation(OpenResponse):
    """How an answer came about: milliseconds by stage, and a reason for each passage."""

    stages_ms: dict[str, float] = Field(default_factory=dict)
    passages: list[PassageReason] = Field(default_factory=list)


class QueryResponse(Response):
    """`note`: what a user should know about how the answer came about (an empty filter, a fallback)."""

    query: str
    mode: str
    commit: int
    took_ms: float
    passages: list[RankedPassage]
    triples: list[ScoredTriple]
    seeds: list[SeedPhrase]
    explain: Explanation | None = Field(default=None, exclude_if=absent)
    note: str | None = Field(default=None, exclude_if=absent)


class Citation(Response):
    """`id` is the passage's; `points`: those points of a deep answer that it vouches for."""

    rank: int
    document: str
    title: str
    text: str
    id: str = ""
    points: list[str] = Field(default_factory=list, exclude_if=absent)


class Tokens(Response):
    prompt: int
    completion: int


class AskSession(Response):
    """The session that a question went on from: how many `points` it brought (`commit`: when it was last asked), how many
    of them no passage vouches for any more, and how many lost some of theirs."""

    name: str
    commit: int | None = None
    questions: int
    points: int
    forgotten: int = 0
    weakened: int = 0


class AskResponse(Response):
    """`found`: whether the memory holds the answer; `short`: the bare answer; `note`: what a user should know about it.

    All of it is as of `commit`. `steps` are whole records, `stopped` says why there were no more. `calls` counts requests to
    the model, `own_ms` is what hippod spent besides waiting for it. `written` is false where the model could not be had for
    the answer and it is put together from what the steps had found. A deep answer has the rest of its trace beside the
    steps: `version`, `settings`, `earlier` (the memory it began with), `forgotten` (ids of points dropped from that),
    `answered` (the calls that wrote the answer), and the average number of entities of a point at the end.
    """

    question: str
    answer: str
    citations: list[Citation]
    steps: list[dict[str, Any]]
    tokens: Tokens
    took_ms: float
    found: bool = True
    short: str = ""
    note: str | None = Field(default=None, exclude_if=absent)
    answerer: Answerer = Answerer.SINGLE
    commit: int = 0
    calls: int = 1
    own_ms: float | None = Field(default=None, exclude_if=absent)
    stopped: str | None = Field(default=None, exclude_if=absent)
    written: bool = True
    session: AskSession | None = Field(default=None, exclude_if=absent)
    version: int | None = Field(default=None, exclude_if=absent)
    settings: dict[str, Any] | None = Field(default=None, exclude_if=absent)
    earlier: dict[str, Any] | None = Field(default=None, exclude_if=absent)
    forgotten: list[str] | None = Field(default=None, exclude_if=absent)
    answered: list[dict[str, Any]] | None = Field(default=None, exclude_if=absent)
    entities_a_point: float | None = Field(default=None, exclude_if=absent)


class AskProgress(Response):
    """While an answer is streamed: all of its text so far."""

    text: str


class Spent(Response):
    """What one extractor (model and prompt) has been asked, and what that took, over the life of the store."""

    extractor: str
    passages: int
    prompt_tokens: int
    completion_tokens: int


class ExtractionResponse(Response):
    """`requeued`: passages that this request added to those `waiting`. `running`: a backfill is under way."""

    extractor: str
    requeued: int
    waiting: int
    failed: int
    running: bool
    error: str | None = Field(default=None, exclude_if=absent)
    waiting_for: str | None = Field(default=None, exclude_if=absent)
    spent: list[Spent]


class DocumentEntry(Response):
    """`passages` and `attempts` are counts; `error` says why a document is failed or skipped."""

    uri: str
    title: str
    state: DocumentState
    error: str | None = None
    passages: int
    attempts: int
    modified_at: AwareDatetime | None = None
    committed_at: AwareDatetime | None = None


class DocumentList(Response):
    """In order of URI. `next` is there when more follow: send it back as `after`."""

    documents: list[DocumentEntry]
    next: str | None = Field(default=None, exclude_if=absent)


class AddResponse(Response):
    """Once it is sent, a crash does not lose the documents."""

    accepted: int
    documents: list[str]


class RemoveResponse(Response):
    """Counts; `missing_uris` names those of which no document was found."""

    removed: int
    missing: int
    missing_uris: list[str] = Field(default_factory=list, exclude_if=absent)


class RetryResponse(Response):
    """How many documents are to be tried again."""

    requeued: int


class ImportResponse(Response):
    """Counts; `skipped` are malformed triples."""

    passages: int
    triples: int
    skipped: int


class VerifyResponse(Response):
    """What deriving everything once more from the tables found at `commit`: no `problems`, where all is well."""

    commit: int
    lines: int
    """Lines of the export that were compared."""
    synonym_recall: float
    """Share of the synonym edges that there should be; of a sample where there are many phrases."""
    problems: list[str]


class BackupResponse(Response):
    """What a backup holds: the memory at `commit`."""

    directory: str
    commit: int
    files: int
    bytes: int


class Percentiles(Response):
    p50: float
    p95: float


class FilterStatistics(Response):
    """What recognition memory did: queries with linked triples, share of the triples kept, queries it left none, and those
    that went unfiltered because it failed or took too long."""

    queries: int
    kept: float
    emptied: int
    unfiltered: int


class QuestionScore(Response):
    """One question's answer against the known ones, and what it took. `error`: why there is none (it counts as 0)."""

    question: str
    short: str
    em: float
    f1: float
    prompt_tokens: int
    completion_tokens: int
    calls: int
    took_ms: float
    entities_a_point: float | None = Field(default=None, exclude_if=absent)
    note: str | None = Field(default=None, exclude_if=absent)
    error: str | None = Field(default=None, exclude_if=absent)


class AnswerScores(Response):
    """Exact match and token F1 as in MuSiQue's evaluation, means over the `n` questions whose answers are known.

    Tokens are of all of them together, `calls` and `entities_a_point` (of deep answers: the paper's measure of how complex
    the relations are that a point holds) are means a question. `failed` questions have no answer.
    """

    n: int
    em: float
    f1: float
    prompt_tokens: int
    completion_tokens: int
    answerer: Answerer = Answerer.SINGLE
    failed: int = 0
    calls: float = 0.0
    took_ms: Percentiles | None = Field(default=None, exclude_if=absent)
    entities_a_point: float | None = Field(default=None, exclude_if=absent)
    questions: list[QuestionScore] = Field(default_factory=list)


class EvalResponse(Response):
    """Shares from 0 to 1 by k. `all` is the share of questions with every gold passage among the first k."""

    n: int
    recall: dict[str, float]
    all: dict[str, float]
    took_ms: Percentiles
    mode: str | None = Field(default=None, exclude_if=absent)
    filter: FilterStatistics | None = Field(default=None, exclude_if=absent)
    answers: AnswerScores | None = Field(default=None, exclude_if=absent)


class Event(OpenResponse):
    """One thing that happened. `id` grows by one an event and starts anew with the daemon."""

    id: int | None = Field(default=None, exclude_if=absent)
    time: AwareDatetime
    event: str
    uri: str | None = None
