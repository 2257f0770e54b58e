"""What every client of the socket does alike: timeouts, reading a refusal, trying again, reading server-sent events.

`hippoctl` and the MCP server share it. Nothing here depends on an HTTP library.
"""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from daemon.contract.http.problem_type import ProblemType

CONNECT_TIMEOUT_S = 5.0
ANSWER_TIMEOUT_S = 120.0
"""How long the daemon may be silent before a request is given up."""
RETRY_PATIENCE_S = 30.0
"""How long a request is made again while the daemon is starting or busy."""
RETRY_PAUSE_S = 0.5
"""Between two tries, where the daemon names no other time."""
RETRIED = frozenset({ProblemType.NOT_READY, ProblemType.BUSY, ProblemType.TOO_MANY_REQUESTS})
FIELD_ERRORS_MAX = 5
"""Field errors that a problem's sentence names; the others are counted."""


def parse_json(content: bytes) -> Any:
    """None where the content is not JSON."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def is_problem(body: Any) -> bool:
    """Whether a parsed body is a problem document (RFC 9457), and not the answer of some other server."""
    return isinstance(body, dict) and ("detail" in body or "title" in body)


def problem_type(problem: Mapping[str, Any]) -> str:
    """A value of `ProblemType`, or what another version of hippod sent."""
    return str(problem.get("type", "about:blank"))


def problem_sentence(problem: Mapping[str, Any]) -> str:
    """A problem document as something to read: its detail, and what is wrong with which field."""
    text = str(problem.get("detail") or problem.get("title") or "hippod refused without saying why").strip()
    errors = problem.get("errors")
    parts = [_field_error(error, text) for error in errors] if isinstance(errors, list) else []
    parts = [part for part in parts if part]
    more = f"; and {len(parts) - FIELD_ERRORS_MAX} more" if len(parts) > FIELD_ERRORS_MAX else ""
    return f"{text.rstrip('.')}: {'; '.join(parts[:FIELD_ERRORS_MAX])}{more}." if parts else text


def _field_error(error: Any, detail: str) -> str:
    if not isinstance(error, dict):
        return ""
    message, field = str(error.get("message", "")).rstrip("."), str(error.get("field", ""))
    if not message or message in detail:
        return ""
    allowed = error.get("allowed")
    choice = f" (allowed: {', '.join(map(str, allowed))})" if isinstance(allowed, list) and allowed else ""
    return f"{field}: {message}{choice}" if field else f"{message}{choice}"


class Retries:
    """Says whether a refused request is made again, for `patience_s` seconds from now (None: without end)."""

    def __init__(
        self, patience_s: float | None = RETRY_PATIENCE_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._deadline = None if patience_s is None else clock() + patience_s

    def pause_s(self, problem: Mapping[str, Any]) -> float | None:
        """Seconds to wait before the next try. None where the refusal is final, or the next try would come too late."""
        if problem_type(problem) not in RETRIED:
            return None
        value = problem.get("retry_after_s")
        pause = float(value) if isinstance(value, int | float) and value > 0 else RETRY_PAUSE_S
        return None if self._deadline is not None and self._clock() + pause > self._deadline else pause


class EventStream:
    """Reads server-sent events whose data is one line of JSON, as hippod writes them."""

    def __init__(self) -> None:
        self._name = ""

    def read_line(self, line: str) -> tuple[str, Any] | None:
        """The event's name and parsed data, once its data line has come. Data that is no JSON is None."""
        key, _, value = line.partition(": ")
        if key == "event":
            self._name = value
        elif key == "data":
            return self._name, parse_json(value.encode())
        return None
