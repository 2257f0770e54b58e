"""`doctor`: what `hippod --inspect` finds, and what only a client sees: its socket, and what the daemon says of itself."""
