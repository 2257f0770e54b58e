"""`hippoctl eval` and `POST /v1/judge`: scores of retrieval and answers for questions with known answers, and verdicts of a
judging model."""

from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field, StringConstraints
from pydantic.config import JsonDict

from daemon.contract.base import Request, Response, is_empty
from daemon.contract.choices import Answerer
from daemon.contract.query import QueryText, Tokens

ANSWER_CHARS_MAX = 100_000
REFERENCES_MAX = 100
JudgedText = Annotated[str, StringConstraints(max_length=ANSWER_CHARS_MAX)]
_QUALITY: JsonDict = {"properties": {"criterion": {"enum": ["comprehensiveness", "diversity"]}}}
_CORRECTNESS: JsonDict = {
    "properties": {"criterion": {"const": "correctness"}, "other": {"type": "null"}, "references": {"minItems": 1}},
    "required": ["references"],
}


class Percentiles(Response):
    p50: float
    p95: float


class FilterStatistics(Response):
    """What recognition memory did: number of queries with linked triples, share of triples kept, number of queries without
    any kept triple, and number of queries unfiltered after an error or timeout.
    """

    queries: int
    kept: float
    emptied: int
    unfiltered: int


class ModelCost(Response):
    """Model calls and tokens, as means over the questions. Answers of recognition memory reused from an equal query count as
    paid, so that each row shows its own cost.
    """

    calls: float
    prompt_tokens: float
    completion_tokens: float


class JudgeScores(Response):
    """Means of the judge's scores over the `n` judged answers, from 0 to 100. `accuracy`: the share of right answers among
    those with known answers. `failed`: answers without a usable verdict. `calls` and tokens are those of the judge.
    """

    n: int
    comprehensiveness: float
    diversity: float
    accuracy: float | None = Field(default=None, exclude_if=is_empty)
    failed: int = 0
    calls: int
    prompt_tokens: int
    completion_tokens: int


class JudgedComparison(Response):
    """The judge's comparison of `mode` with `baseline` by a criterion, over `n` questions. The judge compares each pair in both
    orders: a win counts 1, a tie 1/2. The answer with a sum above 1 wins the question; sums of 1 are a tie. `win_rate`: the
    mode's share of wins.
    """

    criterion: str
    mode: str
    baseline: str
    n: int
    wins: int
    ties: int
    losses: int
    win_rate: float


class StepScores(Response):
    """Scores of the answer after a step of a deep question, or their means over the questions. `recall`: over the passages from
    which that answer was written. `calls`: number of model calls up to this answer, without the calls for the answers after
    earlier steps. If a question's steps ended before this step, the question's last answer counts. `accuracy`: the share of
    claims judged rightly.
    """

    step: int
    em: float | None = Field(default=None, exclude_if=is_empty)
    f1: float | None = Field(default=None, exclude_if=is_empty)
    accuracy: float | None = Field(default=None, exclude_if=is_empty)
    recall: dict[str, float] = Field(default_factory=dict, exclude_if=is_empty)
    calls: float


class QuestionScore(Response):
    """Scores of one question. `recall`: by k. `retrieved`: documents, best first. `absent`: its gold passages that are not in
    the memory. `short`: the short answer, which is compared with the known answers. `error`: why there is no answer (which
    counts as 0). `em`, `f1`, `keyword_f1`: scores of a question; `correct`: the verdict on a claim. `found`: false if the model
    abstained. `judged`: the judge's scores by criterion. `steps`: scores after each step, if an answer was written after each.
    Calls and tokens belong to the answer, or to the query if there is no answer; they exclude reused answers of recognition
    memory.
    """

    id: str | None = Field(default=None, exclude_if=is_empty)
    question: str
    recall: dict[str, float] = Field(default_factory=dict, exclude_if=is_empty)
    retrieved: list[str] = Field(default_factory=list, exclude_if=is_empty)
    absent: list[str] = Field(default_factory=list, exclude_if=is_empty)
    short: str = ""
    em: float | None = Field(default=None, exclude_if=is_empty)
    f1: float | None = Field(default=None, exclude_if=is_empty)
    keyword_f1: float | None = Field(default=None, exclude_if=is_empty)
    correct: bool | None = Field(default=None, exclude_if=is_empty)
    found: bool = True
    answer: str | None = Field(default=None, exclude_if=is_empty)
    judged: dict[str, float] = Field(default_factory=dict, exclude_if=is_empty)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0
    took_ms: float = 0.0
    entities_a_point: float | None = Field(default=None, exclude_if=is_empty)
    steps: list[StepScores] = Field(default_factory=list, exclude_if=is_empty)
    note: str | None = Field(default=None, exclude_if=is_empty)
    error: str | None = Field(default=None, exclude_if=is_empty)


class ClaimScores(Response):
    """The share of claims judged rightly, and of pairs with both claims judged rightly (`pair_accuracy`, as in NoCha)."""

    n: int
    accuracy: float
    pairs: int | None = Field(default=None, exclude_if=is_empty)
    pair_accuracy: float | None = Field(default=None, exclude_if=is_empty)


class AnswerScores(Response):
    """`em`, `f1`: exact match and token F1 as in SQuAD's evaluation, means over the questions with known answers. `keyword_f1`:
    mean of LV-Eval's F1 over the questions with keywords. `steps`: means after each step. `abstained`: number of questions and
    claims from which the model abstained; `failed`: number without an answer; both count as 0. Tokens are sums over all
    questions. `calls` and `entities_a_point` (deep answers only) are means over the questions.
    """

    n: int
    em: float | None = Field(default=None, exclude_if=is_empty)
    f1: float | None = Field(default=None, exclude_if=is_empty)
    keyword_f1: float | None = Field(default=None, exclude_if=is_empty)
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
    steps: list[StepScores] = Field(default_factory=list, exclude_if=is_empty)
    questions: list[QuestionScore] = Field(default_factory=list)


class EvalResponse(Response):
    """`recall`: by k, from 0 to 1, over the questions with known gold passages. `gold`: number of questions with known gold
    passages, if it differs from `n`. `all`: the share of questions with every gold passage among the first k. `gold_absent`:
    number of the `gold_passages` that are not in the memory (or in the scope); they count as not found. `name`: the row's name,
    if it differs from the mode. `took_ms`: the time of a query, or of an answer if there was no separate query. `cost`: the
    cost of the answers, or of the queries if the row has no answers.
    """

    n: int
    gold: int | None = Field(default=None, exclude_if=is_empty)
    gold_passages: int = 0
    gold_absent: int = 0
    recall: dict[str, float]
    all: dict[str, float]
    took_ms: Percentiles
    mode: str | None = Field(default=None, exclude_if=is_empty)
    name: str | None = Field(default=None, exclude_if=is_empty)
    cost: ModelCost | None = Field(default=None, exclude_if=is_empty)
    filter: FilterStatistics | None = Field(default=None, exclude_if=is_empty)
    answers: AnswerScores | None = Field(default=None, exclude_if=is_empty)
    questions: list[QuestionScore] = Field(default_factory=list, exclude_if=is_empty)

    @property
    def label(self) -> str:
        return self.name or self.mode or "(configured)"


class Difference(Response):
    """The mean difference of a measure between `mode` and `baseline`, over the same `n` questions. `low` and `high`: a 95 %
    bootstrap interval over questions (percentiles of 9,999 draws). `p`: two-sided, by the paired permutation test (9,999 draws
    of signs, or all sign patterns if there are fewer).
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
    """Several rows (modes, settings, answerers or saved runs) over the same questions, and their differences from the first
    row."""

    n: int
    gold_passages: int = 0
    gold_absent: int = 0
    modes: list[EvalResponse]
    differences: list[Difference] = Field(default_factory=list)
    judged: list[JudgedComparison] = Field(default_factory=list, exclude_if=is_empty)


class AverageScores(Response):
    """Means of one row's figures over several question files. Each file has the same weight."""

    mode: str | None = Field(default=None, exclude_if=is_empty)
    name: str | None = Field(default=None, exclude_if=is_empty)
    recall: dict[str, float] = Field(default_factory=dict, exclude_if=is_empty)
    all: dict[str, float] = Field(default_factory=dict, exclude_if=is_empty)
    em: float | None = Field(default=None, exclude_if=is_empty)
    f1: float | None = Field(default=None, exclude_if=is_empty)
    keyword_f1: float | None = Field(default=None, exclude_if=is_empty)
    accuracy: float | None = Field(default=None, exclude_if=is_empty)


class FileComparison(ComparisonResponse):
    """The rows over the questions of one file."""

    file: str


class FilesResponse(Response):
    """The rows over each of several question files, and their averages."""

    files: list[FileComparison]
    averages: list[AverageScores]


class Criterion(StrEnum):
    """The criterion of the judge: how much of the question an answer covers, how many views it offers, or whether it is
    right."""

    COMPREHENSIVENESS = "comprehensiveness"
    DIVERSITY = "diversity"
    CORRECTNESS = "correctness"


class JudgeRequest(Request):
    """An answer to judge. For comprehensiveness or diversity, the judge scores `answer` alone, or compares `answer` (first)
    with `other` (second). For correctness, the judge compares `answer` with the known answers in `references`. `passages`: the
    passages that the question was made from, for the judge to read.
    """

    model_config = ConfigDict(json_schema_extra={"anyOf": [_QUALITY, _CORRECTNESS]})

    question: QueryText
    answer: JudgedText
    criterion: Criterion
    other: JudgedText | None = None
    references: tuple[JudgedText, ...] = Field(default=(), max_length=REFERENCES_MAX)
    passages: tuple[JudgedText, ...] = Field(default=(), max_length=REFERENCES_MAX)


class JudgeResponse(Response):
    """The judge's `reason` and one verdict: `score`, from 0 to 100; `better`: 1 for `answer`, 2 for `other`, 0 for a tie;
    `correct`.
    """

    reason: str
    score: float | None = Field(default=None, exclude_if=is_empty)
    better: int | None = Field(default=None, exclude_if=is_empty)
    correct: bool | None = Field(default=None, exclude_if=is_empty)
    tokens: Tokens
