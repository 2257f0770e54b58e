"""Puts the temporary files of the suite into memory.

A store flushes every file that it writes. On a disk, the flushes take a fifth of the processor time of a store's test and most
of its waiting. They matter in a power loss only, which no test can cause: tests of one simulate what it leaves.
"""

import os
import shutil
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
FREE_BYTES = 4 << 30
"""Free memory that the suite needs there: twice what it uses. `systemd/test_slim.py` alone copies an environment of 1 GB."""


def use_memory() -> None:
    """Makes MEMORY the folder of temporary files, also of the processes that tests start.

    A folder that the user chose by TMPDIR stays, and so does the default one if MEMORY is small or forbids programs, as in
    many containers.
    """
    if "TMPDIR" in os.environ or not MEMORY.is_dir() or not os.access(MEMORY, os.W_OK):
        return
    if os.statvfs(MEMORY).f_flag & os.ST_NOEXEC or shutil.disk_usage(MEMORY).free < FREE_BYTES:
        return
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)
