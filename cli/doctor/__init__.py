"""The checks of `doctor`: those of `hippod --inspect`, and those of a client: the socket, and the daemon's status."""
