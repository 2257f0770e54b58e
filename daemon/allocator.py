"""How memory is taken from the system and given back: by itself glibc keeps what was freed for what may come."""

import ctypes
from contextlib import suppress

ARENAS = 2
"""Heaps for all threads together. By itself glibc makes up to eight for each core, and each keeps what it once needed."""

LEAST, MOST = 1 << 20, 32 << 20
"""Bounds of `fit`, in bytes; glibc takes no more."""

ROW_BYTES = 128
"""What a query or a commit makes and drops for each row, generously: several arrays of a few bytes a row."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
"""The numbers by which glibc's `mallopt` knows the settings."""

_fitted = 0


def take_thriftily() -> None:
    """Settings for a memory that is empty yet. Before other threads are started."""
    _set(_M_ARENA_MAX, ARENAS)
    fit(0)


def fit(rows: int) -> None:
    """Has pieces that are large for a memory of so many rows (phrases, triples) lie in pages of their own that go back at once.

    By itself glibc draws that line at the largest piece that was ever freed, up to 32 MiB. Then arrays of renewals, purges and
    rewritten tables leave holes in the heap, which what is small and lasts keeps open: a tenth of the resident memory of a
    small store. Fixed and low it would have the system clear the pages of every array that a commit or a query makes, again and
    again: a quarter of the time of a bulk load. What a heap may keep at its end grows along.
    """
    global _fitted
    size = min(max(LEAST, 1 << (ROW_BYTES * rows).bit_length()), MOST)
    if size != _fitted:
        _set(_M_MMAP_THRESHOLD, size)
        _set(_M_TRIM_THRESHOLD, 2 * size)
        _fitted = size


def give_back() -> None:
    """Some milliseconds; does nothing where the C library has no such call."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _set(setting: int, value: int) -> None:
    """Does nothing where the C library has no such setting."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(setting, value)
