"""The base class of all sections of the configuration."""

from pydantic import BaseModel, ConfigDict

MiB = 1024 * 1024


class Section(BaseModel):
    """A table of the file. Unknown keys and values of another type are errors. Immutable."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, validate_default=True, allow_inf_nan=False, hide_input_in_errors=True
    )
