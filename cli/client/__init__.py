"""One request to the daemon over its socket, and what belongs to it."""
