"""Brings what is mapped from files into memory beside all else, so that who reads it here and there waits for no page."""

import threading
from collections.abc import Collection, Hashable, Mapping
from typing import Any, Protocol

from numpy.typing import NDArray

from store.index.file_arrays import is_mapped, page_in
from store.index.parallel import in_background


class Mapped(Hashable, Protocol):
    """Something that is made of arrays, and equal to nothing but itself."""

    def arrays(self) -> Mapping[str, NDArray[Any]]: ...


class Pager:
    """Brings each part in once. May be used from any thread."""

    def __init__(self, name: str) -> None:
        """`name`: of its threads."""
        self._name = name
        self._brought: set[Mapped] = set()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def bring(self, parts: Collection[Mapped]) -> None:
        """Begins with those of `parts`, which are all that there are by now, that were not asked for before."""
        with self._lock:
            cold = [part for part in parts if part not in self._brought]
            if cold:
                self._brought = set(parts)
                self._begin([array for part in cold for array in part.arrays().values() if is_mapped(array)])

    def forget(self, part: Mapped) -> None:
        """Lets go of a part that something else took the place of: its file may take room on the disk for as long."""
        with self._lock:
            self._brought.discard(part)

    def _begin(self, arrays: list[NDArray[Any]]) -> None:
        if not arrays:
            return
        earlier = self._thread

        def read() -> None:
            # Who waits for the last thread waits for all.
            if earlier is not None:
                earlier.join()
            for array in arrays:
                page_in(array)

        self._thread = in_background(read, self._name)

    def wait(self) -> None:
        """Until all that was asked for is in memory."""
        if self._thread is not None:
            self._thread.join()
