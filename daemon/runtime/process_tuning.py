"""Configures glibc's allocator, garbage collection and thread switching for the whole process.

By default, glibc keeps much of the freed memory.
"""

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

ARENAS_MAX = 2
"""Maximum arenas of all threads together. By default, glibc creates up to eight arenas per core, and arenas hardly shrink."""
THRESHOLD_MIN, THRESHOLD_MAX = 1 << 20, 32 << 20
"""Bounds of the mmap threshold, in bytes. The upper bound is glibc's maximum."""
ROW_BYTES = 128
"""Maximum bytes per row that a query or commit allocates and frees: several arrays with a few bytes per row."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
"""Parameters of glibc's `mallopt`."""

SWITCH_INTERVAL_S = 0.0005
"""Time for which a thread may keep the interpreter while another thread waits for it. A commit acquires the interpreter some
hundred times. With Python's default of 5 ms, a commit concurrent with a purge or a query of an earlier commit took 1 s instead
of 20 ms (`bench growth`)."""

_threshold = 0


def configure_malloc() -> None:
    """Configures glibc for a memory without content (`scale_mmap_threshold` adapts it). Call before other threads are
    started."""
    _mallopt(_M_ARENA_MAX, ARENAS_MAX)
    scale_mmap_threshold(0)


def scale_mmap_threshold(rows: int) -> None:
    """Makes glibc map large allocations separately, so that freeing them returns them to the system at once.

    `rows` (of phrases and triples) determines from which size an allocation is large. By default, this threshold is the largest
    allocation ever freed, up to 32 MiB. Arrays of rebuilds, purges and rewritten tables then leave holes between small
    permanent objects in the heap. The system does not get these holes back: a tenth of the resident memory of a small store.
    With a low fixed threshold, the system would clear the pages of all arrays at each commit and query: a quarter of the time
    of a bulk load. The heap may keep free memory of up to twice the threshold at its end.
    """
    global _threshold
    threshold = min(max(THRESHOLD_MIN, 1 << (ROW_BYTES * rows).bit_length()), THRESHOLD_MAX)
    if threshold != _threshold:
        _mallopt(_M_MMAP_THRESHOLD, threshold)
        _mallopt(_M_TRIM_THRESHOLD, 2 * threshold)
        _threshold = threshold


def trim_heap() -> None:
    """Returns free memory to the system; takes some milliseconds. Has no effect if the C library lacks `malloc_trim`."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _mallopt(parameter: int, value: int) -> None:
    """Calls `mallopt`. Has no effect if the C library lacks the function or the parameter."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(parameter, value)


def shorten_switch_interval() -> None:
    """Applies `SWITCH_INTERVAL_S` to the whole process."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)


def pause_collection() -> None:
    """Disables garbage collection until the end of the next `frozen_objects`.

    Collections during imports free nothing and take a quarter of the time.
    """
    gc.disable()


@contextmanager
def frozen_objects() -> Iterator[None]:
    """Permanently excludes all objects that exist at the end of the block from garbage collection.

    A collection with a memory of 100,000 passages would stop all threads for half a second.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.freeze()
