"""Reads mapped files into memory in the background, so that random accesses do not wait for the disk."""

import threading
from collections.abc import Collection, Mapping
from typing import Any, Protocol
from weakref import WeakSet

from numpy.typing import NDArray

from store.index.file_arrays import is_mapped, page_in
from store.index.parallel import in_background


class Mapped(Protocol):
    """A structure of mapped arrays, compared by identity."""

    def arrays(self) -> Mapping[str, NDArray[Any]]: ...


class Pager:
    """Pages in each structure once. Thread-safe."""

    def __init__(self, name: str) -> None:
        """`name`: name of the background threads."""
        self._name = name
        self._brought: WeakSet[Mapped] = WeakSet()
        """The present parts. Weak references, because a replaced part must not keep its file's disk space in use."""
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def bring(self, parts: Collection[Mapped]) -> None:
        """Starts to page in the parts that the previous call did not contain. `parts` must be all present parts."""
        with self._lock:
            cold = [part for part in parts if part not in self._brought]
            if not cold:
                return
            self._brought = WeakSet(parts)
            earlier = self._thread
            arrays = [array for part in cold for array in part.arrays().values() if is_mapped(array)]

            def read() -> None:
                # Threads read one after another.
                if earlier is not None:
                    earlier.join()
                while arrays:
                    page_in(arrays.pop(0))

            if arrays:
                self._thread = in_background(read, self._name)
