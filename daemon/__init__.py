"""The daemon. Importing any part of it first sets environment variables that libraries read when they are loaded."""

import os

# A numpy product runs on one processor. OpenBLAS would distribute even a product of nine vectors over threads that wait for
# each other: on a busy machine this takes 16 ms instead of 0.1 ms. Large products are split by `store.index.parallel` instead.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Leaves a processor for commits and queries while Lance rewrites a table.
os.environ.setdefault("LANCE_CPU_THREADS", str(max(len(os.sched_getaffinity(0)) - 1, 1)))

# By default Lance reads with so many threads that small tables leave seventy threads behind, each with its own memory.
os.environ.setdefault("LANCE_IO_THREADS", "4")

# Arrow's own allocator retains about ten MB in addition to what the C library retains, see `daemon.runtime.process_tuning`.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
