"""`hippoctl eval`: how well questions with known answers were answered."""

from pydantic import Field

from daemon.contract.base import Response, is_empty
from daemon.contract.choices import Answerer


class Percentiles(Response):
    p50: float
    p95: float


class FilterStatistics(Response):
    """What recognition memory did: queries with linked triples, the share of triples that it kept, queries that it left
    without any, and queries that went unfiltered because it failed or took too long."""

    queries: int
    kept: float
    emptied: int
    unfiltered: int


class QuestionScore(Response):
    """One question's answer compared with the known ones, and what it took. `error`: why there is none (it counts as 0)."""

    question: str
    short: str
    em: float
    f1: float
    prompt_tokens: int
    completion_tokens: int
    calls: int
    took_ms: float
    entities_a_point: float | None = Field(default=None, exclude_if=is_empty)
    note: str | None = Field(default=None, exclude_if=is_empty)
    error: str | None = Field(default=None, exclude_if=is_empty)


class AnswerScores(Response):
    """Exact match and token F1 as in MuSiQue's evaluation, means over the `n` questions whose answers are known.

    Tokens are the sum over all questions. `calls` and `entities_a_point` (deep answers only: HGMem's measure of how complex
    the relations of a point are) are means over the questions. `failed` questions have no answer.
    """

    n: int
    em: float
    f1: float
    prompt_tokens: int
    completion_tokens: int
    answerer: Answerer = Answerer.SINGLE
    failed: int = 0
    calls: float = 0.0
    took_ms: Percentiles | None = Field(default=None, exclude_if=is_empty)
    entities_a_point: float | None = Field(default=None, exclude_if=is_empty)
    questions: list[QuestionScore] = Field(default_factory=list)


class EvalResponse(Response):
    """Shares from 0 to 1 by k. `all` is the share of questions with every gold passage among the first k."""

    n: int
    recall: dict[str, float]
    all: dict[str, float]
    took_ms: Percentiles
    mode: str | None = Field(default=None, exclude_if=is_empty)
    filter: FilterStatistics | None = Field(default=None, exclude_if=is_empty)
    answers: AnswerScores | None = Field(default=None, exclude_if=is_empty)
