"""The daemon. Whatever is imported of it, this comes first."""

import os

# numpy's OpenBLAS keeps its threads spinning for tens of milliseconds after every product, on processors that the next step
# of a query needs: with it, walking a large graph takes twice as long. It reads this once, when numpy is loaded; 4 is the
# least that it takes, 2⁴ cycles.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
