"""The bounds that a client must keep. Nothing is imported: hippoctl reads them before it has asked anything."""

TIMEOUT_MAX_S = 7 * 24 * 3600.0
"""The longest time limit that a client may set."""
QUERY_CHARS_MAX = 32_768
"""The longest query, in characters. An encoder reads a small part of that."""
K_MAX = 1_000
NODES_MAX = 2_000
STEPS_MAX = 20
LENGTH_MAX = 4_000
"""Words of the longest answer that can be asked for."""
SESSION_PATTERN = r"^\w[\w.-]{0,59}$"
AFTER_TIMEOUT_MAX_S = 60.0
"""How long a query may wait for the positions in `after`."""
