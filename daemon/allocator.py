"""How memory is taken from the system and given back: by itself glibc keeps what was freed for what may come."""

import ctypes
from contextlib import suppress

ARENAS = 2
"""Heaps for all threads together. By itself glibc makes up to eight for each core, and each keeps what it once needed."""

MAPPED = 1 << 20
"""Bytes from which a piece of memory has pages of its own, which go back with it. By itself glibc raises this to the largest
piece that was ever freed, up to 32 MiB; arrays of every query and every renewal then leave holes in the heap that what is
small and lasts keeps open: a tenth of the resident memory of a small store."""

SPARE = 4 << 20
"""Bytes that stay free at the end of the heap between two calls of `give_back`."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
"""The numbers by which glibc's `mallopt` knows the settings."""


def take_thriftily() -> None:
    """Sets the above. Before other threads are started; does nothing where the C library has no such call."""
    with suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_ARENA_MAX, ARENAS)
        libc.mallopt(_M_MMAP_THRESHOLD, MAPPED)
        libc.mallopt(_M_TRIM_THRESHOLD, SPARE)


def give_back() -> None:
    """Some milliseconds; does nothing where the C library has no such call."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
