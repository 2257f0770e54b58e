"""The child processes that parse what comes from outside."""
