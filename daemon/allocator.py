"""How memory is taken from the system and given back: by themselves glibc and Arrow keep what was freed for what may come."""

import ctypes
from contextlib import suppress

ARENAS = 2
_M_ARENA_MAX = -8
"""The number by which glibc's `mallopt` knows the setting."""


def few_arenas() -> None:
    """Has all threads share two heaps: by itself glibc makes up to eight for each core, and each keeps what it once needed.

    Before other threads are started.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, ARENAS)


def give_back() -> None:
    """Some milliseconds; does nothing where the C library has no such call."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
