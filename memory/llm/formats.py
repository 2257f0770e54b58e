"""How a server is asked for JSON: by schema, else JSON mode, else by words alone; and what else it does not know.

Found out by asking and remembered: a server that refuses one way and takes the next is asked that way from then on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SCHEMA, OBJECT, WORDS = "schema", "object", "words"
RUNGS = (SCHEMA, OBJECT, WORDS)

_TOO_LONG = ("context_length", "context length", "maximum context", "max_model_len", "too long", "context window")
_DROPPABLE = ("stream_options", "temperature", "max_tokens")


@dataclass(frozen=True, slots=True)
class Shape:
    """A JSON schema with a name."""

    name: str
    schema: Mapping[str, Any]


@dataclass(slots=True)
class Known:
    """What one server has taught: the best way to ask it for JSON, whether that way ever worked, and what it refuses."""

    rung: str = SCHEMA
    proven: bool = False
    dropped: set[str] = field(default_factory=set)

    def options(self, shape: Shape | None, rung: str, temperature: float, max_tokens: int) -> dict[str, Any]:
        """The request's options besides model and messages."""
        options: dict[str, Any] = {}
        if "temperature" not in self.dropped:
            options["temperature"] = temperature
        options["max_completion_tokens" if "max_tokens" in self.dropped else "max_tokens"] = max_tokens
        if shape is not None and rung == SCHEMA:
            written = {"name": shape.name, "strict": True, "schema": dict(shape.schema)}
            options["response_format"] = {"type": "json_schema", "json_schema": written}
        elif shape is not None and rung == OBJECT:
            options["response_format"] = {"type": "json_object"}
        return options

    def drop(self, complaint: str) -> bool:
        """Whether the complaint is about an option that can be left out; it is left out from now on."""
        for option in _DROPPABLE:
            if option in complaint and option not in self.dropped:
                self.dropped.add(option)
                return True
        return False

    def worked(self, rung: str) -> None:
        """A request asked this way was answered."""
        self.rung, self.proven = rung, True


def below(rung: str) -> str | None:
    """The next way to ask, None after the last."""
    at = RUNGS.index(rung) + 1
    return RUNGS[at] if at < len(RUNGS) else None


def is_too_long(complaint: str) -> bool:
    lower = complaint.lower()
    return any(words in lower for words in _TOO_LONG)
