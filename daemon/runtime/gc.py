"""Settings of the Python interpreter: how threads take turns, and which objects the garbage collector leaves alone."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SWITCH_INTERVAL_S = 0.0005
"""How long a thread may keep the interpreter while another waits for it. A commit takes it some hundred times: with Python's
5 ms, looking back or purging at the same time made a commit of 20 ms take a second (`bench growth`)."""


def shorten_switch_interval() -> None:
    """For the whole process."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)


def pause_collection() -> None:
    """Until the end of the next `frozen_objects`: collections during imports find nothing, and take a quarter of the time."""
    gc.disable()


@contextmanager
def frozen_objects() -> Iterator[None]:
    """Objects made within this block, and before it, stay: no garbage collection goes through them, now or later.

    A collection through a memory of 100 thousand passages stops all threads for half a second.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.freeze()
