"""Benchmarks of hippod's cost and answer quality. See `bench.__main__`."""

import daemon  # noqa: F401  # Before numpy is loaded: its threads are to behave as they do in the daemon.
