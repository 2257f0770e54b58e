"""Traces and memories as JSON and back.

A file of another version is refused with a sentence; keys that a later hippod adds to this version are passed over.
"""

from typing import Any

from pydantic import TypeAdapter, ValidationError

from memory.answering.working_memory.records.events import DeepEvent
from memory.answering.working_memory.records.points import MemoryPoint, WorkingMemory
from memory.answering.working_memory.records.trace import MEMORY_VERSION, TRACE_VERSION, Trace

_TRACE = TypeAdapter(Trace)
_MEMORY = TypeAdapter(WorkingMemory)
_POINTS = TypeAdapter(tuple[MemoryPoint, ...])
_EVENT: TypeAdapter[DeepEvent] = TypeAdapter(DeepEvent)


class BadTrace(ValueError):
    """What was given is no trace or memory of this version. The message is one line and says what is wrong where."""


def trace_to_json(trace: Trace) -> dict[str, Any]:
    """The trace as a JSON object with its `version`."""
    value: dict[str, Any] = _TRACE.dump_python(trace, mode="json")
    return value


def trace_from_json(value: Any) -> Trace:
    """Raises BadTrace."""
    _check(value, "a trace", 1, TRACE_VERSION)
    if value["version"] == 1 and isinstance(value.get("settings"), dict):
        # Steps were counted from 1 then, so the last of N is 1 less; and there was the quick way alone.
        settings = {"quick": True, **value["settings"]}
        if isinstance(settings.get("steps"), int):
            settings["steps"] -= 1
        value = {**value, "settings": settings}
    try:
        return _TRACE.validate_python(value, strict=False)
    except ValidationError as error:
        raise BadTrace(_said("trace", error)) from None


def memory_to_json(memory: WorkingMemory) -> dict[str, Any]:
    """The memory as a JSON object with a `version`: what a session keeps."""
    value: dict[str, Any] = _MEMORY.dump_python(memory, mode="json")
    return {"version": MEMORY_VERSION, **value}


def memory_from_json(value: Any) -> WorkingMemory:
    """Raises BadTrace."""
    _check(value, "a working memory", MEMORY_VERSION)
    try:
        return _MEMORY.validate_python(value)
    except ValidationError as error:
        raise BadTrace(_said("working memory", error)) from None


def event_to_json(event: DeepEvent) -> dict[str, Any]:
    """One event as a JSON object; its `kind` says which."""
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
