"""The base class of all sections of the configuration."""

from pydantic import BaseModel, ConfigDict
from pydantic_core import PydanticCustomError

MiB = 1024 * 1024


class Section(BaseModel):
    """A table of the file. Unknown keys and values of another type are errors. Immutable."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, validate_default=True, allow_inf_nan=False, hide_input_in_errors=True
    )


def at(key: str, message: str) -> PydanticCustomError:
    """Returns an error about one key for a validator of the whole section."""
    return PydanticCustomError("at_key", "{message}", {"key": key, "message": message})
