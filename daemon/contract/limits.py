"""Limits for requests. Imports nothing, because hippoctl needs them before it sends a request."""

TIMEOUT_MAX_S = 7 * 24 * 3600.0
"""Maximum time limit that a client may set."""
QUERY_CHARS_MAX = 32_768
"""Maximum characters of a query. An encoder uses only a small part of such a long one."""
K_MAX = 1_000
NODES_MAX = 2_000
"""Maximum nodes in a response of `graph`, whatever the memory's size. There are at most four edges per node."""
STEPS_MAX = 20
LENGTH_MAX = 4_000
"""Maximum words that may be requested for an answer."""
SESSION_PATTERN = r"^\w[\w.-]{0,59}$"
AFTER_TIMEOUT_MAX_S = 60.0
"""Maximum time that a query may wait for the positions in `after`."""
