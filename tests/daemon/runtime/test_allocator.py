"""The size from which an allocation gets its own pages, for the C library that this Python uses."""

import platform
import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

ROUND = """
import ctypes
import numpy as np
from daemon.runtime.process_tuning import scale_mmap_threshold, configure_malloc
class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in
                ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]
libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Info
configure_malloc()
scale_mmap_threshold({rows})
for _ in range(3):  # by itself the C library would raise the line with each of these
    large = np.ones(16 << 20, np.uint8)
    del large
before = libc.mallinfo2().hblkhd
held = np.ones({size}, np.uint8)
print(libc.mallinfo2().hblkhd - before)
"""


def in_pages_of_its_own(rows: int, size: int) -> bool:
    done = subprocess.run(
        [sys.executable, "-c", ROUND.format(rows=rows, size=size)], capture_output=True, text=True, check=True
    )
    return int(done.stdout) >= size


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library decides otherwise")
def test_mmap_threshold_of_the_allocator_grows_with_the_number_of_passages():
    assert in_pages_of_its_own(5_000, 2 << 20)
    assert not in_pages_of_its_own(5_000, 1 << 19)
    assert not in_pages_of_its_own(1_000_000, 8 << 20)
    assert in_pages_of_its_own(1_000_000, 40 << 20)
