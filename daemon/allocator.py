"""Memory that was freed, given back to the system: by themselves glibc and Arrow keep it for what may come."""

import ctypes
from contextlib import suppress

import pyarrow as pa


def give_back() -> None:
    """Some milliseconds; does nothing where the C library has no such call."""
    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
