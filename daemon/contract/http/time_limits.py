"""How long a client waits for an answer: a limit for each route, and for questions by their mode.

hippoctl, the page that it serves, and the MCP server use these limits. The limit is the time without data from the daemon.
"""

from collections.abc import Mapping
from typing import Any

from daemon.contract.http.routes import Route

CONNECT_TIMEOUT_S = 5.0
ANSWER_TIMEOUT_S = 120.0
MODEL_TIMEOUT_S = 900.0
"""For an answer that may wait for the model ([retrieval] filter_timeout_s), or for the index of an earlier commit."""
WHOLE_MEMORY_TIMEOUT_S = 3600.0
"""For work that reads or writes the whole memory."""
ANSWER_MARGIN_S = 120.0
"""How much the limit exceeds the time limit in a question."""
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
    """Whether a query may call the model, as the modes that walk the graph do, or may be of an earlier commit."""
    from memory.retrieval.modes import MODES  # loaded only for queries

    mode = MODES.get(str(query.get("mode")))  # without a mode, the daemon uses the configured one
    return mode is None or mode.walks_graph or query.get("as_of") is not None
