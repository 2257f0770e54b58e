"""The daemon. Importing any of its modules first sets environment variables that libraries read when they are loaded."""

import os

# Run a numpy product on one processor. OpenBLAS would distribute even a product of nine vectors over threads that wait for each
# other: on a busy machine this takes 16 ms instead of 0.1 ms. Large products are split by `store.index.parallel` instead.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Leaves a processor for commits and queries while Lance rewrites a table.
os.environ.setdefault("LANCE_CPU_THREADS", str(max(len(os.sched_getaffinity(0)) - 1, 1)))

# By default, Lance starts so many reader threads that small tables leave 70 idle threads, each with its own memory.
os.environ.setdefault("LANCE_IO_THREADS", "4")

# Arrow's own allocator retains about 10 MB in addition to the memory that the C library retains
# (`daemon.runtime.process_tuning`).
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
