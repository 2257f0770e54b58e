"""A run of the daemon: `lifecycle` listens, opens the memory (`open_memory`), serves and stops; the other modules report on
it."""
