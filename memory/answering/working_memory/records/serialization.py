"""Converts traces, events and working memories to JSON, and working memories back.

JSON of another version is refused with an error message; unknown keys, which a later hippod may add, are ignored.
"""

from typing import Any

from pydantic import TypeAdapter, ValidationError

from memory.answering.working_memory.records.events import DeepEvent
from memory.answering.working_memory.records.points import WorkingMemory
from memory.answering.working_memory.records.trace import MEMORY_VERSION, Trace

_TRACE = TypeAdapter(Trace)
_MEMORY = TypeAdapter(WorkingMemory)
_EVENT: TypeAdapter[DeepEvent] = TypeAdapter(DeepEvent)


class BadWorkingMemory(ValueError):
    """The JSON is not a working memory of a supported version.

    The message is one line with the position of the error.
    """


def trace_to_json(trace: Trace) -> dict[str, Any]:
    """Returns the trace as a JSON object with its `version`."""
    value: dict[str, Any] = _TRACE.dump_python(trace, mode="json")
    return value


def memory_to_json(memory: WorkingMemory) -> dict[str, Any]:
    """Returns the working memory as a JSON object with a `version`, as sessions store it."""
    value: dict[str, Any] = _MEMORY.dump_python(memory, mode="json")
    return {"version": MEMORY_VERSION, **value}


def memory_from_json(value: object) -> WorkingMemory:
    """Returns the working memory of a JSON object. Raises BadWorkingMemory."""
    if not isinstance(value, dict) or "version" not in value:
        raise BadWorkingMemory("this is no JSON of a working memory: it has no version")
    if value["version"] != MEMORY_VERSION:
        raise BadWorkingMemory(
            f"this is a working memory of version {value['version']!r}; this hippod reads version {MEMORY_VERSION}"
        )
    try:
        return _MEMORY.validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise BadWorkingMemory(f"this is no working memory: at {where}: {first['msg']}") from None


def event_to_json(event: DeepEvent) -> dict[str, Any]:
    """Returns an event as a JSON object with its `kind`."""
    value: dict[str, Any] = _EVENT.dump_python(event, mode="json")
    return value
