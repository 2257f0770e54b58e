"""Parses the daemon's JSON to the contract's types, for commands that compute with it.

For printing, `plain_answers` suffices.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from cli.client.plain_answers import not_understood
from cli.errors import CommandError

Answer = TypeVar("Answer", bound=BaseModel)


def parse_answer(model: type[Answer], answer: Mapping[str, Any]) -> Answer:
    """Returns the answer as `model`. Raises CommandError if the answer violates the contract."""
    try:
        return model.model_validate(answer)
    except ValidationError as error:
        raise incompatible_answer(error) from None


def incompatible_answer(error: ValidationError) -> CommandError:
    """Returns the error for an answer that violates the contract."""
    first = error.errors(include_url=False, include_input=False)[0]
    return not_understood(f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}")
