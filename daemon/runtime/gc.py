"""Settings of the Python interpreter: thread switching and garbage collection."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SWITCH_INTERVAL_S = 0.0005
"""How long a thread may keep the interpreter while another one waits for it. A commit acquires it some hundred times: with
Python's default of 5 ms, a concurrent purge or query at an earlier commit made a commit of 20 ms take a second
(`bench growth`)."""


def shorten_switch_interval() -> None:
    """Applies `SWITCH_INTERVAL_S` to the whole process."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)


def pause_collection() -> None:
    """Disables garbage collection until the end of the next `frozen_objects`.

    Collections during imports find nothing, and take a quarter of the time.
    """
    gc.disable()


@contextmanager
def frozen_objects() -> Iterator[None]:
    """Excludes all objects that exist at the end of the block from garbage collection, now and later.

    Collecting a memory of 100 thousand passages stops all threads for half a second.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.freeze()
