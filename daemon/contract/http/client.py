"""The common behaviour of clients: parsing refusals, retries, time limits, parsing server-sent events.

`hippoctl`, the page that it serves, and the MCP server use this module. It depends on no HTTP library. A time limit applies to
the time without data from the daemon.
"""

import json
import time
from collections.abc import Mapping
from typing import Any

from daemon.contract.http.routes import ProblemType, Route

RETRY_PATIENCE_S = 30.0
"""How long a request is retried while the daemon is starting or busy."""
RETRY_PAUSE_S = 0.5
"""Pause before a retry, if the daemon does not specify one."""
RETRIED = frozenset({ProblemType.NOT_READY, ProblemType.BUSY, ProblemType.TOO_MANY_REQUESTS})
FIELD_ERRORS_MAX = 5
"""Maximum field errors named in a problem's sentence; further ones are counted."""
CONNECT_TIMEOUT_S = 5.0
ANSWER_TIMEOUT_S = 120.0
MODEL_TIMEOUT_S = 900.0
"""Limit for requests that may wait for the model ([retrieval] filter_timeout_s) or for the index of an earlier commit."""
WHOLE_MEMORY_TIMEOUT_S = 3600.0
"""Limit for requests that read or write the whole memory."""
ANSWER_MARGIN_S = 120.0
"""Seconds added to a question's own time limit."""
WAIT_MARGIN_S = 10.0
_BY_ROUTE: Mapping[tuple[str, str], float | None] = {
    ("POST", Route.ASK): MODEL_TIMEOUT_S,
    ("POST", Route.JUDGE): MODEL_TIMEOUT_S,
    ("POST", Route.DOCUMENTS): 600.0,  # the documents are stored durably before the answer
    ("POST", Route.IMPORT): WHOLE_MEMORY_TIMEOUT_S,
    ("POST", Route.VERIFY): WHOLE_MEMORY_TIMEOUT_S,
    ("POST", Route.BACKUP): WHOLE_MEMORY_TIMEOUT_S,
    ("GET", Route.EXPORT): 300.0,
    ("GET", Route.EVENTS): None,
}


def parse_json(content: bytes) -> Any:
    """Parses JSON; returns None if it is invalid."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def is_problem(body: Any) -> bool:
    """Returns whether a parsed body is a problem document (RFC 9457), not the response of another server."""
    return isinstance(body, dict) and ("detail" in body or "title" in body)


def problem_type(problem: Mapping[str, Any]) -> str:
    """Returns a value of `ProblemType`, or an unknown type of another version of hippod."""
    return str(problem.get("type", "about:blank"))


def problem_sentence(problem: Mapping[str, Any]) -> str:
    """Returns a problem document as a sentence: its detail, and which fields are wrong."""
    text = str(problem.get("detail") or problem.get("title") or "hippod refused the request without a reason").strip()
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
    """Decides whether a refused request is retried, for `patience_s` seconds from now; None means without limit."""

    def __init__(self, patience_s: float | None = RETRY_PATIENCE_S) -> None:
        self._deadline = None if patience_s is None else time.monotonic() + patience_s

    def pause_s(self, problem: Mapping[str, Any]) -> float | None:
        """Returns the seconds to wait before the next try; None if the refusal is final or the next try would be too late."""
        if problem_type(problem) not in RETRIED:
            return None
        value = problem.get("retry_after_s")
        pause = float(value) if isinstance(value, int | float) and value > 0 else RETRY_PAUSE_S
        return None if self._deadline is not None and time.monotonic() + pause > self._deadline else pause


class EventStream:
    """Parses server-sent events whose data is one line of JSON, as hippod writes them."""

    def __init__(self) -> None:
        self._name = ""

    def read_line(self, line: str) -> tuple[str, Any] | None:
        """Returns the event's name and parsed data when its data line has arrived. Invalid JSON is returned as None."""
        key, _, value = line.partition(": ")
        if key == "event":
            self._name = value
        elif key == "data":
            return self._name, parse_json(value.encode())
        return None


def answer_timeout_s(method: str, path: str, fields: object = None) -> float | None:
    """Returns the seconds that a request may take; None means without limit. `fields` is the request's JSON, if it has one."""
    route = path.partition("?")[0]
    sent: Mapping[str, Any] = fields if isinstance(fields, dict) else {}
    own = sent.get("timeout_s")
    if route == Route.WAIT:
        return own + WAIT_MARGIN_S if isinstance(own, int | float) else None
    if route == Route.REEXTRACT and sent.get("dry_run"):
        return None  # the model reads a sample first
    if route in (Route.QUERY, Route.GRAPH):
        return MODEL_TIMEOUT_S if _may_take_long(sent) else ANSWER_TIMEOUT_S
    limit = _BY_ROUTE.get((method, route), ANSWER_TIMEOUT_S)
    return max(limit, own + ANSWER_MARGIN_S) if limit is not None and isinstance(own, int | float) else limit


def _may_take_long(query: Mapping[str, Any]) -> bool:
    """Whether a query may load an earlier commit, or call the model (as in modes that walk the graph)."""
    from memory.retrieval.modes import MODES  # loaded only for queries

    mode = MODES.get(str(query.get("mode")))  # without a mode, the daemon uses the configured one
    return mode is None or mode.walks_graph or query.get("as_of") is not None
