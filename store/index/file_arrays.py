"""Large arrays in files, whose pages the system can drop when memory is short and read again later.

A new array is in a file without a name. The file disappears with the last view of the array, or with the process. Its pages
count as file memory (`RssFile`), not as anonymous memory (`RssAnon`), which can only be swapped out. The file has the layout of
a .npy file, so a complete array can be linked to a name instead of being written again.
"""

import os
import tempfile
from contextlib import suppress
from math import prod
from mmap import MADV_RANDOM, MADV_WILLNEED, PAGESIZE, mmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

FILE_MIN_BYTES = 1 << 20
"""Minimum size of an array that is allocated in a file."""

MADV_COLD = 20
"""Advice number of Linux 5.4 and later; `mmap` defines it only in Python 3.13 and later."""

DENSE_ROWS = 16
"""The whole file is read ahead if more than 1 / DENSE_ROWS of its rows are requested."""

PAGED_IN_BYTES = 64 << 20
"""Number of bytes of a file that are read into memory at a time."""

HEADER_BYTES = PAGESIZE
"""Size of a nameless file's header; the array after the header is aligned to a page."""


class NamelessFile(mmap):
    """The mapping of a file without a name that contains one array in .npy format."""

    descriptor = -1
    shape: tuple[int, ...] = ()
    dtype: np.dtype[Any] = np.dtype(np.void)

    def __del__(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)


class MappedArray(np.memmap[Any, Any]):
    """An array mapped from a file. The array stores the file's inode, because the file's name may change or be removed."""

    inode = 0
    mapping: mmap | None = None
    begins = 0
    """Offset of the array within `mapping` in bytes."""


def map_file(file: Path) -> NDArray[Any]:
    """Maps the array in a .npy file, read-only. Raises OSError or ValueError."""
    mapped = np.load(file, mmap_mode="r", allow_pickle=False).view(MappedArray)
    mapped.inode = file.stat().st_ino
    mapped.mapping = _mapping(mapped)
    mapped.begins = len(mapped.mapping) - mapped.nbytes if mapped.mapping is not None else 0
    return np.asarray(mapped)


def map_scattered(file: Path) -> NDArray[Any]:
    """Maps the array in a .npy file read-only, for random access to single rows.

    Disables the system's readahead, which would read up to megabytes around each row and evict pages that are needed.
    """
    array = map_file(file)
    if (mapping := _mapping(array)) is not None:
        mapping.madvise(MADV_RANDOM)
    return array


def read_ahead(array: NDArray[Any], rows: NDArray[np.int64] | None = None) -> None:
    """Asks the system to read `rows` of a mapped array, or the whole file, before they are accessed.

    Otherwise each page would be waited for separately. `array` must be a leading part of a mapped file; other arrays are
    ignored.
    """
    mapped = _mapped(array)
    if mapped is None or (mapping := mapped.mapping) is None:
        return
    if rows is None or len(rows) > len(array) // DENSE_ROWS:
        mapping.madvise(MADV_WILLNEED)
        return
    width, begins = mapped.nbytes // len(mapped), mapped.begins
    # Python integers, because numpy would take ten times as long for the usual one or two rows.
    for row in rows.tolist():
        begin = begins + row * width
        page = begin - begin % PAGESIZE
        mapping.madvise(MADV_WILLNEED, page, begin + width - page)


def page_in(array: NDArray[Any]) -> None:
    """Reads the mapped part of `array` into memory and touches each page, so that later accesses do not wait.

    The first access to a page takes microseconds even if the system has the page cached. Releases the GIL during the work. Does
    nothing if `array` is not mapped.
    """
    if not is_mapped(array):
        return
    octets = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    for start in range(0, len(octets), PAGED_IN_BYTES):
        octets[start : start + PAGED_IN_BYTES : PAGESIZE].max()
    octets[-1:].max(initial=0)  # the array need not begin at a page


def drop_first(array: NDArray[Any]) -> None:
    """Asks the system to reclaim the mapped pages of `array` before other pages if memory becomes short.

    Without this call, a single sequential read would evict pages that random accesses need. Does nothing if `array` is not
    mapped or the system does not support the request.
    """
    mapped = _mapped(array)
    if mapped is not None and mapped.mapping is not None:
        with suppress(OSError):
            mapped.mapping.madvise(MADV_COLD)


def is_mapped(array: NDArray[Any]) -> bool:
    """Whether `array` is part of a file that `map_file` mapped."""
    return _mapped(array) is not None


def mapped_inode(array: NDArray[Any]) -> int | None:
    """Returns the inode of the file from which `array` is mapped; None if `array` is not mapped. The inode's number is not
    reused while the file is mapped."""
    mapped = _mapped(array)
    return None if mapped is None else mapped.inode


def _mapping(array: NDArray[Any]) -> mmap | None:
    """Returns the memory mapping that contains `array`, or None."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    # numpy refers to a buffer through a memory view.
    base = base.obj if isinstance(base, memoryview) else base
    return base if isinstance(base, mmap) else None


def _mapped(array: NDArray[Any]) -> MappedArray | None:
    """Returns the array made by `map_file` that contains `array`, or None."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if isinstance(base, MappedArray):
            return base
        base = base.base
    return None


class ArrayStorage:
    """Allocates large arrays: in nameless files in `folder`, or in memory if `folder` is None."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Returns an uninitialised array. Uses memory if the disk lacks space for the array."""
        size = prod(shape) * np.dtype(dtype).itemsize
        if self._folder is None or size < FILE_MIN_BYTES:
            return np.empty(shape, dtype)
        try:
            pages = _map_nameless_file(self._folder, shape, np.dtype(dtype))
        except OSError:
            return np.empty(shape, dtype)
        return np.frombuffer(pages, dtype, offset=HEADER_BYTES).reshape(shape)


IN_MEMORY = ArrayStorage()


def link_file(array: NDArray[Any], file: Path) -> bool:
    """Links the nameless file of `array` to the name `file`, as a .npy file. Nothing may write to the array afterwards.

    Returns False and does nothing if `array` is not a whole nameless file, or if the file system cannot link such a file.
    """
    mapping = _mapping(array)
    if not isinstance(mapping, NamelessFile) or mapping.descriptor < 0:
        return False
    begins = np.frombuffer(mapping, np.uint8).ctypes.data + HEADER_BYTES
    if array.ctypes.data != begins or (array.shape, array.dtype) != (mapping.shape, mapping.dtype):
        return False
    opened = os.open("/proc/self/fd", os.O_RDONLY | os.O_DIRECTORY)
    try:
        # The entry in /proc is a symbolic link to the file; Python follows it only if a directory descriptor is given.
        os.link(str(mapping.descriptor), file, src_dir_fd=opened)
    except OSError:
        return False
    finally:
        os.close(opened)
    return True


def _map_nameless_file(folder: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NamelessFile:
    """Creates and maps a nameless file. Raises OSError, also if the disk is full."""
    descriptor = _open_nameless_file(folder)
    try:
        size = HEADER_BYTES + prod(shape) * dtype.itemsize
        # Reserves the disk space now, because writing to a mapped page without disk space would kill the process.
        os.posix_fallocate(descriptor, 0, size)
        os.pwrite(descriptor, _npy_header(shape, dtype), 0)
        pages = NamelessFile(descriptor, size)
    except BaseException:
        os.close(descriptor)
        raise
    pages.descriptor, pages.shape, pages.dtype = descriptor, shape, dtype
    return pages


def _open_nameless_file(folder: Path) -> int:
    """Returns the descriptor of a new nameless file. Raises OSError."""
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError:
        # Some file systems (NFS, older overlays) do not support O_TMPFILE. An unlinked file cannot get a name again.
        descriptor, name = tempfile.mkstemp(prefix="scratch-", dir=folder)
        Path(name).unlink()
        return descriptor


def _npy_header(shape: tuple[int, ...], dtype: np.dtype[Any]) -> bytes:
    """Returns a .npy header (format 1.0) that is `HEADER_BYTES` long."""
    described = repr({"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape})
    magic = np.lib.format.magic(1, 0)
    text = described.encode("latin1").ljust(HEADER_BYTES - len(magic) - 3) + b"\n"
    return magic + len(text).to_bytes(2, "little") + text
