"""The life cycle of every structure of the index: it is changed, copied, saved in a folder, and mapped from that folder.

`store.index.live_index.LiveIndex.parts` lists all structures. Opening a store maps the structures from a checkpoint's folder. A
running store copies them between two commits, saves the copies concurrently with later commits, and then maps the files.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from store.durable_files import checksum_of, sync
from store.index.file_arrays import link_file, map_file, map_scattered, mapped_inode

FileFacts = Mapping[str, list[int]]
"""For each file name: [size in bytes, CRC-32, 1 if a start skips the comparison of the CRC-32, else 0]."""


class PartFiles:
    """The files of an index in a complete folder."""

    def __init__(self, place: Path, files: FileFacts, values: Mapping[str, Any]) -> None:
        """`values`: small values by name, stored in the folder's manifest."""
        self.place, self._files, self.values = place, files, values

    def array(self, name: str, known: NDArray[Any] | None = None, scattered: bool = False) -> NDArray[Any]:
        """Maps an array. `scattered`: whether single rows will be read in random order.

        Returns `known` if it is mapped from the same file, because a new mapping would have to fault in each page again.
        """
        file = self.place / f"{name}.npy"
        if known is not None and mapped_inode(known) == file.stat().st_ino:
            return known
        return map_scattered(file) if scattered else map_file(file)

    def count(self, name: str) -> int:
        """Returns the number of arrays named `name`-00000, `name`-00001, and so on."""
        return sum(file.startswith(f"{name}-") and file[len(name) + 1 : -4].isdigit() for file in self._files)

    def table(self, name: str) -> pa.Table:
        with pa.memory_map(str(self.place / f"{name}.arrow")) as source:
            return pa.ipc.open_file(source).read_all()


class PartWriter:
    """Writes and syncs files in a new folder and collects their checksums.

    A block that the previous folder contains is hard-linked. A block in a nameless file is linked to its new name.
    """

    def __init__(self, place: Path, before: Path | None, known: FileFacts, check_time: Callable[[], None]) -> None:
        """`before`: the previous folder; `known`: the files of the previous folder. `check_time` is called before each file; an
        exception of `check_time` ends the writing."""
        self.place, self._before, self._known, self._check_time = place, before, known, check_time
        self.files: dict[str, list[int]] = {}
        self.values: dict[str, Any] = {}

    def array(self, name: str, array: NDArray[Any], immutable: bool = False, checked_later: bool = False) -> None:
        """Writes an array. `immutable`: nothing will ever change the array, so its file can be linked. `checked_later`: the
        file has so many bytes that a start compares only its size; a wrong byte would change only single scores."""
        self._check_time()
        file = self.place / f"{name}.npy"
        # The content of the block is compared, because the previous folder may have numbered rows differently.
        if (
            immutable
            and self._before is not None
            and file.name in self._known
            and self._linked(file, self._before, array)
        ):
            return
        if not (immutable and link_file(array, file)):
            with file.open("wb") as out:
                np.save(out, np.ascontiguousarray(array), allow_pickle=False)
        self._note(file, checked_later)

    def _linked(self, file: Path, before: Path, array: NDArray[Any]) -> bool:
        old = before / file.name
        try:
            # A block that is mapped from this file equals it, so its content need not be compared.
            if mapped_inode(array) != old.stat().st_ino and not np.array_equal(
                np.load(old, mmap_mode="r", allow_pickle=False), array
            ):
                return False
            os.link(old, file)
        except (OSError, ValueError):
            return False
        self.files[file.name] = self._known[file.name]
        return True

    def table(self, name: str, table: pa.Table) -> None:
        self._check_time()
        file = self.place / f"{name}.arrow"
        with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, table.schema) as out:
            out.write_table(table)
        self._note(file)

    def _note(self, file: Path, checked_later: bool = False) -> None:
        sync(file)
        self.files[file.name] = [file.stat().st_size, checksum_of(file), int(checked_later)]


class Foldable(ABC):
    """A structure that consists of an unchanging base and later changes. Many changes are merged into the base (folded).

    Folding copies the structure between two commits, folds the copy concurrently with later commits, and then uses its base.
    """

    @property
    @abstractmethod
    def due(self) -> bool:
        """Whether there are enough changes for folding, so that folding takes O(1) time per change."""

    @abstractmethod
    def copy(self) -> Self:
        """Returns an independent copy that shares the base. Takes O(changes) time."""

    @abstractmethod
    def fold(self) -> None:
        """Merges all changes into the base."""

    @abstractmethod
    def swap_in_fold(self, folded: Self) -> None:
        """Replaces the base by the base of `folded`, an earlier copy; changes made after the copy remain."""


class Part(ABC):
    """A structure of the index that can be saved. `name`: the prefix of its files' names."""

    @abstractmethod
    def copy(self) -> Self:
        """Returns an independent copy that shares all unchanging arrays. Takes O(changes since the last checkpoint) time;
        copies of counts, documents and extraction states take milliseconds."""

    @abstractmethod
    def save(self, files: PartWriter, name: str) -> None:
        """Writes the part. Called on a copy, which afterwards may be used only for `map_saved`."""

    @abstractmethod
    def load(self, files: PartFiles, name: str) -> None:
        """Fills an empty part from files."""

    def saved(self, files: PartFiles, name: str) -> None:  # noqa: B027
        """Called on the copy once its folder is complete, before `map_saved` and concurrently with commits."""

    def map_saved(self, files: PartFiles, name: str, saved: Self, /) -> None:  # noqa: B027
        """Replaces data in memory by the equal data in `files`, which `saved`, an earlier copy, has written.

        By default this does nothing, and the data stay in memory.
        """
