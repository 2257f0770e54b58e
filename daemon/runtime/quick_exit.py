"""Ends a process without tearing down its interpreter, which would take some tenths of a second for a loaded daemon.

The tear-down only delays a restart: the system frees the memory of the process anyway.
"""

import atexit
import os
import sys
from contextlib import suppress


class QuickExit:
    """Ends the process at exit. Create it before anything else registers with `atexit`, so that it runs last.

    `code` is the exit status. While it is None, Python exits normally, so that an exception determines the status.
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
