"""Ends a process without taking its interpreter to pieces, which takes a loaded daemon some tenths of a second.

Whoever restarts hippod waits for it, and nothing is gained: the memory of a process is the system's to free.
"""

import atexit
import os
import sys
from contextlib import suppress


class QuickExit:
    """Make it before anything else that registers with `atexit`: what those do, and what threads finish, comes first.

    `code` is what the process ends with. While it is None, Python ends as usual: an exception's exit code is its own.
    """

    def __init__(self) -> None:
        self.code: int | None = None
        atexit.register(self._end)

    def _end(self) -> None:
        if self.code is None:
            return
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(self.code)
