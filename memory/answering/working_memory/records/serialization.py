"""Converts traces and working memories to JSON and back.

JSON of another version is refused with an error message; unknown keys, which a later hippod may add, are ignored.
"""

from typing import Any

from pydantic import TypeAdapter, ValidationError

from memory.answering.working_memory.records.events import DeepEvent
from memory.answering.working_memory.records.points import WorkingMemory
from memory.answering.working_memory.records.trace import MEMORY_VERSION, TRACE_VERSION, Trace

_TRACE = TypeAdapter(Trace)
_MEMORY = TypeAdapter(WorkingMemory)
_EVENT: TypeAdapter[DeepEvent] = TypeAdapter(DeepEvent)


class BadTrace(ValueError):
    """The JSON is not a trace or working memory of a supported version.

    The message is one line with the position of the error.
    """


def trace_to_json(trace: Trace) -> dict[str, Any]:
    """Return the trace as a JSON object with its `version`."""
    value: dict[str, Any] = _TRACE.dump_python(trace, mode="json")
    return value


def trace_from_json(value: Any) -> Trace:
    """Return the trace of a JSON object. Raises BadTrace."""
    _check(value, "a trace", 1, TRACE_VERSION)
    if value["version"] == 1 and isinstance(value.get("settings"), dict):
        # In version 1, steps were counted from 1, so the last of N is N - 1 now, and all steps were quick.
        settings = {"quick": True, **value["settings"]}
        if isinstance(settings.get("steps"), int):
            settings["steps"] -= 1
        value = {**value, "settings": settings}
    try:
        return _TRACE.validate_python(value, strict=False)
    except ValidationError as error:
        raise BadTrace(_said("trace", error)) from None


def memory_to_json(memory: WorkingMemory) -> dict[str, Any]:
    """Return the working memory as a JSON object with a `version`, as sessions store it."""
    value: dict[str, Any] = _MEMORY.dump_python(memory, mode="json")
    return {"version": MEMORY_VERSION, **value}


def memory_from_json(value: Any) -> WorkingMemory:
    """Return the working memory of a JSON object. Raises BadTrace."""
    _check(value, "a working memory", MEMORY_VERSION)
    try:
        return _MEMORY.validate_python(value)
    except ValidationError as error:
        raise BadTrace(_said("working memory", error)) from None


def event_to_json(event: DeepEvent) -> dict[str, Any]:
    """Return an event as a JSON object with its `kind`."""
    value: dict[str, Any] = _EVENT.dump_python(event, mode="json")
    return value


def _check(value: Any, what: str, *versions: int) -> None:
    if not isinstance(value, dict) or "version" not in value:
        raise BadTrace(f"this is no JSON of {what}: it has no version")
    if value["version"] not in versions:
        read = " and ".join(map(str, versions))
        raise BadTrace(f"this is {what} of version {value['version']!r}; this hippod reads version {read}")


def _said(what: str, error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"]) or "the whole"
    return f"this is no {what}: at {where}: {first['msg']}"
