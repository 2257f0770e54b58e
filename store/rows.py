"""Arrays of row numbers, in two widths."""

import numpy as np
from numpy.typing import NDArray

Rows32 = NDArray[np.int32]
Rows64 = NDArray[np.int64]
