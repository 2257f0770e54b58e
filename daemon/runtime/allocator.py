"""How glibc takes memory from the system and gives it back. By default it keeps much of what was freed, for later."""

import ctypes
from contextlib import suppress

ARENAS_MAX = 2
"""Heaps for all threads together. By default glibc makes up to eight for each core, and none of them shrinks much."""
THRESHOLD_MIN, THRESHOLD_MAX = 1 << 20, 32 << 20
"""Bounds of the mmap threshold, in bytes; glibc accepts no higher one."""
ROW_BYTES = 128
"""What a query or a commit allocates and frees for each row, at most: several arrays of a few bytes a row."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
"""Parameters of glibc's `mallopt`."""

_threshold = 0


def configure_malloc() -> None:
    """Settings for a memory that is still empty. To be called before other threads are started."""
    _mallopt(_M_ARENA_MAX, ARENAS_MAX)
    scale_mmap_threshold(0)


def scale_mmap_threshold(rows: int) -> None:
    """Has glibc map large allocations on their own, so that they go back at once; `rows` (phrases, triples) say what is large.

    By default glibc sets this threshold to the largest allocation that was ever freed, up to 32 MiB. Then the arrays of
    rebuilds, purges and rewritten tables leave holes in the heap, kept open by small objects that last: a tenth of the
    resident memory of a small store. With a low, fixed threshold the system would clear the pages of every array that a
    commit or a query makes, again and again: a quarter of the time of a bulk load. The heap may keep twice the threshold
    at its end.
    """
    global _threshold
    threshold = min(max(THRESHOLD_MIN, 1 << (ROW_BYTES * rows).bit_length()), THRESHOLD_MAX)
    if threshold != _threshold:
        _mallopt(_M_MMAP_THRESHOLD, threshold)
        _mallopt(_M_TRIM_THRESHOLD, 2 * threshold)
        _threshold = threshold


def trim_heap() -> None:
    """Gives free memory back to the system, which takes some milliseconds. No effect where the C library has no such call."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _mallopt(parameter: int, value: int) -> None:
    """No effect where the C library has no such parameter."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(parameter, value)
