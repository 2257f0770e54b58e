"""The daemon's JSON as the contract's types, for commands that compute with an answer; `plain_answers` is for printing one."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from cli.client.plain_answers import not_understood
from cli.errors import CommandError

Answer = TypeVar("Answer", bound=BaseModel)


def parse_answer(model: type[Answer], answer: Mapping[str, Any]) -> Answer:
    """CommandError where the answer lacks what the contract promises."""
    try:
        return model.model_validate(answer)
    except ValidationError as error:
        raise incompatible_answer(error) from None


def incompatible_answer(error: ValidationError) -> CommandError:
    """The answer lacks what the contract promises."""
    first = error.errors(include_url=False, include_input=False)[0]
    return not_understood(f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}")
