"""Pages mapped files into memory in the background, so that random accesses do not wait for the disk."""

import threading
from collections.abc import Collection, Hashable, Mapping
from typing import Any, Protocol

from numpy.typing import NDArray

from store.index.file_arrays import is_mapped, page_in
from store.index.parallel import in_background


class Mapped(Hashable, Protocol):
    """A part that consists of arrays and is equal only to itself."""

    def arrays(self) -> Mapping[str, NDArray[Any]]: ...


class Pager:
    """Pages in each part once. Thread-safe."""

    def __init__(self, name: str) -> None:
        """`name`: the name of its threads."""
        self._name = name
        self._brought: set[Mapped] = set()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def bring(self, parts: Collection[Mapped]) -> None:
        """Starts paging in the parts that were not requested before. `parts` is the complete present list."""
        with self._lock:
            cold = [part for part in parts if part not in self._brought]
            if cold:
                self._brought = set(parts)
                self._begin([array for part in cold for array in part.arrays().values() if is_mapped(array)])

    def forget(self, part: Mapped) -> None:
        """Drops a replaced part. Otherwise its file would continue to use disk space."""
        with self._lock:
            self._brought.discard(part)

    def _begin(self, arrays: list[NDArray[Any]]) -> None:
        if not arrays:
            return
        earlier = self._thread

        def read() -> None:
            # One thread reads at a time.
            if earlier is not None:
                earlier.join()
            for array in arrays:
                page_in(array)

        self._thread = in_background(read, self._name)
