"""The retrieval modes and settings that a request may name, derived from their declarations in `memory.retrieval`."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, create_model

from daemon.contract.base import JSON_INTEGER, JsonBoolean, JsonNumber, Request
from daemon.contract.choices import MODES, SETTINGS
from memory.retrieval.settings import Setting


class Mode(StrEnum):
    """The retrieval mode."""

    _ignore_ = ["name"]  # noqa: RUF012 (the enum module's own name)
    for name in MODES:
        vars()[name.upper().replace("-", "_")] = name


def field_of(setting: Setting) -> Any:
    """Returns the type of a setting in a request. None stands for the configured value."""
    if setting.kind is bool:
        return JsonBoolean | None
    if setting.choices:
        return Literal[setting.choices] | None
    if setting.kind is int:
        return Annotated[int, Field(**setting.bounds), JSON_INTEGER] | None
    return Annotated[JsonNumber, Field(**setting.bounds, allow_inf_nan=False)] | None


if TYPE_CHECKING:

    class RetrievalOverrides(Request):
        """Has a field for each of `SETTINGS`."""

else:
    RetrievalOverrides = create_model(
        "RetrievalOverrides",
        __base__=Request,
        __doc__="Settings of `[retrieval]` for one query; settings that are omitted are as configured.",
        __module__=__name__,
        **{name: (field_of(setting), None) for name, setting in SETTINGS.items()},
    )
