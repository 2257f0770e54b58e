"""How a server is asked for JSON: by schema, else in JSON mode, else by the prompt alone; and which options it refuses.

Found out by asking and remembered: a server that refuses one way and takes the next is asked that way from then on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

BY_SCHEMA, BY_JSON_OBJECT, BY_WORDS_ALONE = "schema", "object", "words"
JSON_MODES = (BY_SCHEMA, BY_JSON_OBJECT, BY_WORDS_ALONE)

_TOO_LONG = ("context_length", "context length", "maximum context", "max_model_len", "too long", "context window")
_DROPPABLE = ("stream_options", "temperature", "max_tokens")


@dataclass(frozen=True, slots=True)
class JsonSchema:
    """A JSON schema with a name."""

    name: str
    schema: Mapping[str, Any]


@dataclass(slots=True)
class ServerCapabilities:
    """What one server has shown: the best way to ask it for JSON, whether that ever worked, and the options that it refuses."""

    json_mode: str = BY_SCHEMA
    proven: bool = False
    dropped: set[str] = field(default_factory=set)

    def options(self, shape: JsonSchema | None, json_mode: str, temperature: float, max_tokens: int) -> dict[str, Any]:
        """The request's options besides model and messages."""
        options: dict[str, Any] = {}
        if "temperature" not in self.dropped:
            options["temperature"] = temperature
        options["max_completion_tokens" if "max_tokens" in self.dropped else "max_tokens"] = max_tokens
        if shape is not None and json_mode == BY_SCHEMA:
            written = {"name": shape.name, "strict": True, "schema": dict(shape.schema)}
            options["response_format"] = {"type": "json_schema", "json_schema": written}
        elif shape is not None and json_mode == BY_JSON_OBJECT:
            options["response_format"] = {"type": "json_object"}
        return options

    def drop_option(self, complaint: str) -> bool:
        """Whether the complaint is about an option that can be left out; it is left out from now on."""
        for option in _DROPPABLE:
            if option in complaint and option not in self.dropped:
                self.dropped.add(option)
                return True
        return False

    def mode_worked(self, json_mode: str) -> None:
        """A request asked this way was answered."""
        self.json_mode, self.proven = json_mode, True


def next_json_mode(json_mode: str) -> str | None:
    """The next way to ask, None after the last."""
    at = JSON_MODES.index(json_mode) + 1
    return JSON_MODES[at] if at < len(JSON_MODES) else None


def is_too_long(complaint: str) -> bool:
    lower = complaint.lower()
    return any(words in lower for words in _TOO_LONG)
