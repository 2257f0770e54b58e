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


class ModelCost(Response):
    """What the model took, as means over the questions. Answers of recognition memory that were remembered from an equal query
    count as if they had been paid for: that is what the row costs by itself."""

    calls: float
    prompt_tokens: float
    completion_tokens: float


class JudgeScores(Response):
    """What the judge gave: means over the `n` answers that it judged, from 0 to 100, and the share that it found right of those
    with known answers (`accuracy`). `failed`: answers of which it said nothing of use. Calls and tokens are the judge's own."""

    n: int
    comprehensiveness: float
    diversity: float
    accuracy: float | None = Field(default=None, exclude_if=is_empty)
    failed: int = 0
    calls: int
    prompt_tokens: int
    completion_tokens: int


class JudgedComparison(Response):
    """How often the judge found `mode`'s answer better than `baseline`'s by a criterion, over `n` questions.

    It is asked in both orders: a win counts 1, a tie 1/2. An answer wins with more than 1 of the 2, and ties with 1.
    `win_rate` is its share of all.
    """

    criterion: str
    mode: str
    baseline: str
    n: int
    wins: int
    ties: int
    losses: int
    win_rate: float


class QuestionScore(Response):
    """One question's answer compared with the known ones, and what it took. `error`: why there is none (it counts as 0).

    `em` and `f1` are those of a question, `correct` of a claim. `found` is false where the model abstained. `answer` (the whole
    of it) and `judged` (by criterion) are there where a judge was asked.
    """

    question: str
    short: str
    em: float | None = Field(default=None, exclude_if=is_empty)
    f1: float | None = Field(default=None, exclude_if=is_empty)
    correct: bool | None = Field(default=None, exclude_if=is_empty)
    found: bool = True
    answer: str | None = Field(default=None, exclude_if=is_empty)
    judged: dict[str, float] = Field(default_factory=dict, exclude_if=is_empty)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0
    took_ms: float = 0.0
    entities_a_point: float | None = Field(default=None, exclude_if=is_empty)
    note: str | None = Field(default=None, exclude_if=is_empty)
    error: str | None = Field(default=None, exclude_if=is_empty)


class ClaimScores(Response):
    """The share of claims that were judged rightly, and of pairs of which both were (`pair_accuracy`, as NoCha counts)."""

    n: int
    accuracy: float
    pairs: int | None = Field(default=None, exclude_if=is_empty)
    pair_accuracy: float | None = Field(default=None, exclude_if=is_empty)


class AnswerScores(Response):
    """Exact match and token F1 as in SQuAD's evaluation, means over the questions whose answers are known, and `claims`.

    `n` questions and claims were asked. Of these `abstained` were not answered, as the model said that it could not, and
    `failed` have no answer; both count as 0. Tokens are the sum over all questions. `calls` and `entities_a_point` (deep
    answers only: HGMem's measure of how complex the relations of a point are) are means over the questions.
    """

    n: int
    em: float | None = Field(default=None, exclude_if=is_empty)
    f1: float | None = Field(default=None, exclude_if=is_empty)
    claims: ClaimScores | None = Field(default=None, exclude_if=is_empty)
    judge: JudgeScores | None = Field(default=None, exclude_if=is_empty)
    abstained: int = 0
    prompt_tokens: int
    completion_tokens: int
    answerer: Answerer = Answerer.SINGLE
    failed: int = 0
    calls: float = 0.0
    took_ms: Percentiles | None = Field(default=None, exclude_if=is_empty)
    entities_a_point: float | None = Field(default=None, exclude_if=is_empty)
    questions: list[QuestionScore] = Field(default_factory=list)


class EvalResponse(Response):
    """Shares from 0 to 1 by k, over the questions with known gold: `gold` of them where not all `n` have one.

    `all` is the share of questions with every gold passage among the first k. `took_ms` is the time of a query; of an answer
    where no query was made for itself. `cost` is that of the answers, where there are any, else of the queries.
    """

    n: int
    gold: int | None = Field(default=None, exclude_if=is_empty)
    recall: dict[str, float]
    all: dict[str, float]
    took_ms: Percentiles
    mode: str | None = Field(default=None, exclude_if=is_empty)
    cost: ModelCost | None = Field(default=None, exclude_if=is_empty)
    filter: FilterStatistics | None = Field(default=None, exclude_if=is_empty)
    answers: AnswerScores | None = Field(default=None, exclude_if=is_empty)


class Difference(Response):
    """What `mode` has more of a measure than `baseline`, question by question over `n` questions.

    `low` and `high`: a 95 % interval by the bootstrap over questions (percentiles of 9,999 draws). `p`: two-sided, by the
    paired permutation test (signs of the differences drawn 9,999 times; all of them where there are no more).
    """

    measure: str
    mode: str
    baseline: str
    n: int
    difference: float
    low: float
    high: float
    p: float


class ComparisonResponse(Response):
    """Several modes over the same questions, and how far each differs from the first."""

    n: int
    modes: list[EvalResponse]
    differences: list[Difference] = Field(default_factory=list)
    judged: list[JudgedComparison] = Field(default_factory=list, exclude_if=is_empty)
