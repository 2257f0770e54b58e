"""The base class of a section, whichever room declares it."""

from pydantic import BaseModel, ConfigDict

MiB = 1024 * 1024


class Section(BaseModel):
    """A table of the file: unknown keys and values of another type are errors, nothing changes once read."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, validate_default=True, allow_inf_nan=False, hide_input_in_errors=True
    )
