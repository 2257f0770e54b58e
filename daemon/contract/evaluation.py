"""How well questions with known answers were answered: `hippoctl eval`."""

from pydantic import Field

from daemon.contract.model import Response, absent
from daemon.contract.routes import Answerer


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
