"""The daemon. Whatever is imported of it, this comes first: libraries read these once, when they are loaded."""

import os

# numpy's OpenBLAS keeps its threads spinning for tens of milliseconds after every product, on processors that the next step
# of a query needs: with it, walking a large graph takes twice as long. 4 is the least that it takes, 2⁴ cycles.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")

# While Lance rewrites a table, a processor is left for commits and queries.
os.environ.setdefault("LANCE_CPU_THREADS", str(max(len(os.sched_getaffinity(0)) - 1, 1)))

# By itself Lance reads with so many threads at once that small tables leave seventy behind, each with memory of its own.
os.environ.setdefault("LANCE_IO_THREADS", "4")

# Arrow's own allocator keeps some ten MB for what may come, beside what the C library keeps, which is told not to
# (`daemon.runtime.allocator`).
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
