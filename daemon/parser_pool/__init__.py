"""The child processes that parse untrusted content."""
