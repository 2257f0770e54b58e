"""`POST /v1/judge`: an answer judged by the model, for evaluations."""

from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field, StringConstraints
from pydantic.config import JsonDict

from daemon.contract.base import Request, Response, is_empty
from daemon.contract.query import QueryText, Tokens

ANSWER_CHARS_MAX = 100_000
REFERENCES_MAX = 100

JudgedText = Annotated[str, StringConstraints(max_length=ANSWER_CHARS_MAX)]


class Criterion(StrEnum):
    """What is judged: how much of the question an answer covers, how many views it offers, or whether it is right."""

    COMPREHENSIVENESS = "comprehensiveness"
    DIVERSITY = "diversity"
    CORRECTNESS = "correctness"


_QUALITY: JsonDict = {"properties": {"criterion": {"enum": ["comprehensiveness", "diversity"]}}}
_CORRECTNESS: JsonDict = {
    "properties": {"criterion": {"const": "correctness"}, "other": {"type": "null"}, "references": {"minItems": 1}},
    "required": ["references"],
}


class JudgeRequest(Request):
    """An answer to judge. By comprehensiveness or diversity, `answer` is scored, or compared with `other` in this order. By
    correctness, `answer` is compared with `references`: known answers. `passages`: what the question was made from, for the
    judge to read.
    """

    model_config = ConfigDict(json_schema_extra={"anyOf": [_QUALITY, _CORRECTNESS]})

    question: QueryText
    answer: JudgedText
    criterion: Criterion
    other: JudgedText | None = None
    references: tuple[JudgedText, ...] = Field(default=(), max_length=REFERENCES_MAX)
    passages: tuple[JudgedText, ...] = Field(default=(), max_length=REFERENCES_MAX)


class JudgeResponse(Response):
    """The judge's `reason`, and one of: `score` from 0 to 100; `better`, which is 1 for `answer`, 2 for `other` and 0 for a
    tie; `correct`.
    """

    reason: str
    score: float | None = Field(default=None, exclude_if=is_empty)
    better: int | None = Field(default=None, exclude_if=is_empty)
    correct: bool | None = Field(default=None, exclude_if=is_empty)
    tokens: Tokens
