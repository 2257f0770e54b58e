"""The settings of deep questions that a request may name, derived from their declarations."""

from typing import TYPE_CHECKING

from pydantic import create_model

from daemon.contract.base import Request
from daemon.contract.retrieval import field_of
from memory.answering.working_memory.declared_settings import DEEP_SETTINGS

if TYPE_CHECKING:

    class DeepOverrides(Request):
        """Has a field for each of `DEEP_SETTINGS`."""

else:
    DeepOverrides = create_model(
        "DeepOverrides",
        __base__=Request,
        __doc__="Settings of `[deep]` for one question; settings that are omitted are as configured.",
        __module__=__name__,
        **{name: (field_of(setting), None) for name, setting in DEEP_SETTINGS.items()},
    )
