"""LanceDB without what its import does and an embedded database has no use for.

The REST clients of a catalogue service: making their nine classes takes a third of what a start of hippod takes, 0.7 of 2.2 s,
and their 140 messages another 0.1. In their place stand classes that say so when they are used.

The comparison of each overriding method's signature with the overridden one, by the package `overrides` (Python 3.11 only;
later ones have `typing.override`, which compares nothing): 0.12 s.
"""

import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

CLIENT = "lance_namespace_urllib3_client"


class _UnloadedModule(ModuleType):
    """A module whose classes cannot be made."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)

        def refuse(*_: Any, **__: Any) -> None:
            raise NotImplementedError(f"{self.__name__}.{name} is not loaded: hippod's tables are on this machine")

        return type(name, (), {"__init__": refuse})


def _leave_out_clients() -> None:
    found = find_spec(CLIENT)
    if found is None or CLIENT in sys.modules:
        return
    for place in found.submodule_search_locations or ():
        for file in (*Path(place, "api").glob("*_api.py"), *Path(place, "models").glob("[!_]*.py")):
            name = f"{CLIENT}.{file.parent.name}.{file.stem}"
            sys.modules.setdefault(name, _UnloadedModule(name))


def _leave_out_comparisons() -> ModuleType:
    """What stands for `overrides` while LanceDB is imported."""
    trusting = ModuleType("overrides")
    vars(trusting).update(EnforceOverrides=object, override=lambda method: method)
    return trusting


_leave_out_clients()
_overrides = sys.modules.get("overrides")
sys.modules["overrides"] = _leave_out_comparisons()

import lancedb  # noqa: E402

if _overrides is None:
    del sys.modules["overrides"]
else:
    sys.modules["overrides"] = _overrides

__all__ = ["lancedb"]
