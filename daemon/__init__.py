"""The daemon. Whatever is imported of it, this comes first: libraries read these once, when they are loaded."""

import os

# A product of numpy's runs on one processor. Its OpenBLAS would share out even that of nine vectors, and its threads wait for
# each other: on a busy machine, 16 ms for what takes 0.1. What is large is cut into parts instead (`store.index.parallel`).
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# While Lance rewrites a table, a processor is left for commits and queries.
os.environ.setdefault("LANCE_CPU_THREADS", str(max(len(os.sched_getaffinity(0)) - 1, 1)))

# By itself Lance reads with so many threads at once that small tables leave seventy behind, each with memory of its own.
os.environ.setdefault("LANCE_IO_THREADS", "4")

# Arrow's own allocator keeps some ten MB for what may come, beside what the C library keeps, which is told not to
# (`daemon.runtime.allocator`).
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
