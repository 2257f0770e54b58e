"""Imports LanceDB without a costly part that an embedded database does not need: the REST clients of a catalogue service.

Creating their nine classes takes 0.7 of the 2.2 s of hippod's start; creating their 140 message classes takes another 0.1 s.
Placeholder classes replace these classes and raise an error when they are instantiated.
"""

import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

CLIENT = "lance_namespace_urllib3_client"


class _UnloadedModule(ModuleType):
    """A module whose classes cannot be instantiated."""

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


_leave_out_clients()

import lancedb  # noqa: E402

__all__ = ["lancedb"]
