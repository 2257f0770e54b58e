"""One life of the daemon: `lifecycle` listens, opens the memory (`open_memory`), serves and stops; the rest looks at it."""
