"""Learns how a server accepts requests for JSON (by schema, in JSON mode, or by the prompt only), and which options it refuses.

If a server refuses one format and accepts the next, later requests use the accepted format.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

BY_SCHEMA, BY_JSON_OBJECT, BY_WORDS_ALONE = "schema", "object", "words"
JSON_MODES = (BY_SCHEMA, BY_JSON_OBJECT, BY_WORDS_ALONE)

_TOO_LONG = (
    "context_length",
    "context length",
    "context size",
    "maximum context",
    "max_model_len",
    "too long",
    "context window",
)
_DROPPABLE = ("stream_options", "temperature", "max_tokens")


@dataclass(frozen=True, slots=True)
class JsonSchema:
    """A JSON schema and its name."""

    name: str
    schema: Mapping[str, Any]


def json_object(**properties: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the schema of an object with exactly these properties; the model writes them in this order."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def json_array(items: Mapping[str, Any], **limits: int) -> dict[str, Any]:
    return {"type": "array", "items": items, **limits}


JSON_TEXT = {"type": "string"}
JSON_INTEGER = {"type": "integer"}
JSON_BOOLEAN = {"type": "boolean"}


FIRST_RECHECK_ANSWERS = 4
"""Number of answers after which a doubted format is tried again; it doubles each time."""


@dataclass(slots=True)
class ServerCapabilities:
    """What is known about one server: the best JSON format, whether a format ever worked, and the options that it refuses.

    A format that the server refuses explicitly is never tried again. If the server only failed (500) before any format worked,
    the format may not be the cause. It is then doubted, and tried again after the server answers.
    """

    json_mode: str = BY_SCHEMA
    proven: bool = False
    dropped: set[str] = field(default_factory=set)
    needs_streams: bool = False
    """Whether an answer took longer than the time limit, or repeated itself up to its length limit. Only then are later answers
    streamed, because reading hundreds of streams from a fast server takes much processor time."""
    doubted: str | None = None
    """The format that was given up because the server failed."""
    _recheck_after: int = FIRST_RECHECK_ANSWERS
    _answers: int = 0
    """Number of answers since the doubted format was given up or last tried."""

    def mode_to_ask(self, failed_tries: int) -> str:
        """Returns the format for a call that has failed `failed_tries` times.

        Some servers fail (500) instead of refusing a format.
        """
        if failed_tries >= 2 and not self.proven:
            return next_json_mode(self.json_mode) or self.json_mode
        if self.doubted is not None and failed_tries == 0 and self._answers >= self._recheck_after:
            self._answers, self._recheck_after = 0, 2 * self._recheck_after
            return self.doubted
        return self.json_mode

    def options(self, schema: JsonSchema | None, json_mode: str, temperature: float, max_tokens: int) -> dict[str, Any]:
        """Returns the options of the request, except model and messages."""
        options: dict[str, Any] = {}
        if "temperature" not in self.dropped:
            options["temperature"] = temperature
        options["max_completion_tokens" if "max_tokens" in self.dropped else "max_tokens"] = max_tokens
        if schema is not None and json_mode == BY_SCHEMA:
            written = {"name": schema.name, "strict": True, "schema": dict(schema.schema)}
            options["response_format"] = {"type": "json_schema", "json_schema": written}
        elif schema is not None and json_mode == BY_JSON_OBJECT:
            options["response_format"] = {"type": "json_object"}
        return options

    def drop_option(self, complaint: str) -> bool:
        """Whether the complaint is about an option that can be omitted. Later requests omit this option."""
        for option in _DROPPABLE:
            if option in complaint and option not in self.dropped:
                self.dropped.add(option)
                return True
        return False

    def mode_worked(self, json_mode: str, refused_better: bool = False) -> None:
        """Records that a request in this format was answered.

        `refused_better`: the server refused a better format explicitly before.
        """
        self._answers += 1
        if _is_better(json_mode, self.json_mode) or refused_better:
            self.doubted = None
        elif _is_better(self.json_mode, json_mode):
            self.doubted, self._answers = self.json_mode, 1
        self.json_mode, self.proven = json_mode, True


def _is_better(json_mode: str, other: str) -> bool:
    return JSON_MODES.index(json_mode) < JSON_MODES.index(other)


def next_json_mode(json_mode: str) -> str | None:
    """Returns the next format to try; None after the last."""
    at = JSON_MODES.index(json_mode) + 1
    return JSON_MODES[at] if at < len(JSON_MODES) else None


def is_too_long(complaint: str) -> bool:
    lower = complaint.lower()
    return any(words in lower for words in _TOO_LONG)
