"""The retrieval modes and settings that a request may name, derived from their declarations in `memory`."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, create_model

from daemon.contract.base import JSON_INTEGER, JsonBoolean, JsonNumber, Request
from daemon.contract.choices import DEEP_SETTINGS, MODES, SETTINGS, Setting


class Mode(StrEnum):
    """The retrieval mode."""

    _ignore_ = ["name"]  # noqa: RUF012 (the enum module's own name)
    for name in MODES:
        vars()[name.upper().replace("-", "_")] = name


def _field_of(setting: Setting) -> Any:
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

    class DeepOverrides(Request):
        """Has a field for each of `DEEP_SETTINGS`."""

else:

    def _overrides(name: str, purpose: str, settings: Mapping[str, Setting]) -> type[Request]:
        doc = f"Settings of {purpose}; settings that are omitted are as configured."
        fields = {key: (_field_of(setting), None) for key, setting in settings.items()}
        return create_model(name, __base__=Request, __doc__=doc, __module__=__name__, **fields)

    RetrievalOverrides = _overrides("RetrievalOverrides", "`[retrieval]` for one query", SETTINGS)
    DeepOverrides = _overrides("DeepOverrides", "`[deep]` for one question", DEEP_SETTINGS)
