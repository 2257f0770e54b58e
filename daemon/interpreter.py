"""How Python's threads share the interpreter, and what its garbage collector leaves alone."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SWITCH_S = 0.0005
"""For how long a thread may keep the interpreter that another waits for. A commit takes it some hundred times: with Python's
5 ms, looking back or purging beside it made one of 20 ms take a second (`bench growth`)."""


def share_fairly() -> None:
    """For the whole process."""
    sys.setswitchinterval(SWITCH_S)


@contextmanager
def lasting() -> Iterator[None]:
    """What is made within this, and before it, stays: no garbage collection goes through it, now or later.

    A round through a memory of 100 thousand passages stops all threads for half a second.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.freeze()
