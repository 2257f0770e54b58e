"""Reads mapped files into memory in the background, so that random accesses do not wait for the disk."""

import threading
from collections.abc import Collection, Hashable, Mapping
from typing import Any, Protocol

from numpy.typing import NDArray

from store.index.file_arrays import is_mapped, page_in
from store.index.parallel import in_background


class Mapped(Hashable, Protocol):
    """A structure of mapped arrays that is equal only to itself."""

    def arrays(self) -> Mapping[str, NDArray[Any]]: ...


class Pager:
    """Pages in each structure once. Thread-safe."""

    def __init__(self, name: str) -> None:
        """`name`: name of the background threads."""
        self._name = name
        self._brought: set[Mapped] = set()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def bring(self, parts: Collection[Mapped]) -> None:
        """Starts to page in the parts that earlier calls did not contain. `parts` must be all present parts."""
        with self._lock:
            cold = [part for part in parts if part not in self._brought]
            if cold:
                self._brought = set(parts)
                self._begin([array for part in cold for array in part.arrays().values() if is_mapped(array)])

    def forget(self, part: Mapped) -> None:
        """Forgets a part that was replaced. If the pager kept the part, the part's file would still use disk space."""
        with self._lock:
            self._brought.discard(part)

    def _begin(self, arrays: list[NDArray[Any]]) -> None:
        if not arrays:
            return
        earlier = self._thread

        def read() -> None:
            # Threads read one after another.
            if earlier is not None:
                earlier.join()
            for array in arrays:
                page_in(array)

        self._thread = in_background(read, self._name)
