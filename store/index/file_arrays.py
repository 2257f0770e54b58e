"""Large arrays in files, so that the system can drop their pages when memory is short and read them again.

An array that is filled here lies in a file without a name: it is gone with the last view of it, and with the process. The
pages count as the file's (`RssFile`), not as memory that only swap could free (`RssAnon`). The file is laid out as numpy's
.npy is, so that it can be given a name once the array is complete: what is to last is then not written a second time.
"""

import os
import tempfile
from contextlib import suppress
from math import prod
from mmap import MADV_RANDOM, MADV_WILLNEED, PAGESIZE, mmap
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

FILE_MIN_BYTES = 1 << 20
"""A smaller array is not worth a file."""

MADV_COLD = 20
"""Of Linux from 5.4 on, which Python names from 3.13 on."""

DENSE_ROWS = 16
"""Where more than one row of so many is wanted, a file is read as a whole."""

PAGED_IN_BYTES = 64 << 20
"""How much of a file is brought into memory at a time."""

HEADER_BYTES = PAGESIZE
"""What a nameless file has before the array, which begins with a page."""


class NamelessFile(mmap):
    """The mapping of a file without a name that holds one array, as a .npy file does."""

    descriptor = -1
    shape: tuple[int, ...] = ()
    dtype: np.dtype[Any] = np.dtype(np.void)

    def __del__(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)


class MappedArray(np.memmap[Any, Any]):
    """An array mapped from a file, which remembers the file whatever becomes of its name."""

    inode = 0
    mapping: mmap | None = None
    begins = 0
    """Where the array begins in `mapping`."""


def map_file(file: Path, mode: Literal["r", "c"] = "r") -> NDArray[Any]:
    """The array in a .npy file: read-only, or with "c" what is written to it is written to a copy.

    Raises OSError or ValueError.
    """
    mapped = np.load(file, mmap_mode=mode, allow_pickle=False).view(MappedArray)
    mapped.inode = file.stat().st_ino
    mapped.mapping = _mapping(mapped)
    mapped.begins = len(mapped.mapping) - mapped.nbytes if mapped.mapping is not None else 0
    return np.asarray(mapped)


def map_scattered(file: Path) -> NDArray[Any]:
    """The same read-only, for an array of which single rows are read here and there.

    Left to itself the system reads what lies about a row too, megabytes on some disks, and drops for it what is needed.
    """
    array = map_file(file)
    if (mapping := _mapping(array)) is not None:
        mapping.madvise(MADV_RANDOM)
    return array


def read_ahead(array: NDArray[Any], rows: NDArray[np.int64] | None = None) -> None:
    """Has the system read what is about to be read of a file that `array` is the beginning of: `rows`, or all of it.

    Otherwise each page would be waited for by itself. Nothing where `array` is of no file.
    """
    mapped = _mapped(array)
    if mapped is None or (mapping := mapped.mapping) is None:
        return
    if rows is None or len(rows) > len(array) // DENSE_ROWS:
        mapping.madvise(MADV_WILLNEED)
        return
    width, begins = mapped.nbytes // len(mapped), mapped.begins
    # Plain numbers: mostly there are one or two rows, for which numpy takes ten times as long.
    for row in rows.tolist():
        begin = begins + row * width
        page = begin - begin % PAGESIZE
        mapping.madvise(MADV_WILLNEED, page, begin + width - page)


def page_in(array: NDArray[Any]) -> None:
    """Brings into memory what `array` is of a file, and looks at each page, so that nobody waits for a first look later.

    The first look at a page takes microseconds even where the system has it in its cache. Other threads run meanwhile. Nothing
    where `array` is of no file.
    """
    if not is_mapped(array):
        return
    octets = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    for start in range(0, len(octets), PAGED_IN_BYTES):
        octets[start : start + PAGED_IN_BYTES : PAGESIZE].max()
    octets[-1:].max(initial=0)  # the array need not begin with a page


def drop_first(array: NDArray[Any]) -> None:
    """Has the system drop what `array` is of a file before what others read, where it is short of memory.

    Otherwise what is read once, from end to end, takes the place of what is read here and there. Nothing where `array` is of no
    file, or the system cannot do it.
    """
    mapped = _mapped(array)
    if mapped is not None and mapped.mapping is not None:
        with suppress(OSError):
            mapped.mapping.madvise(MADV_COLD)


def is_mapped(array: NDArray[Any]) -> bool:
    """Whether `array` is of a file that `map_file` mapped."""
    return _mapped(array) is not None


def mapped_inode(array: NDArray[Any]) -> int | None:
    """The inode of the file whose mapping `array` is a part of. While it is mapped no other file is given that number."""
    mapped = _mapped(array)
    return None if mapped is None else mapped.inode


def _mapping(array: NDArray[Any]) -> mmap | None:
    """The mapping that `array` is a part of."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    # numpy holds a buffer by such a view.
    base = base.obj if isinstance(base, memoryview) else base
    return base if isinstance(base, mmap) else None


def _mapped(array: NDArray[Any]) -> MappedArray | None:
    """What `map_file` mapped and `array` is a part of."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if isinstance(base, MappedArray):
            return base
        base = base.base
    return None


class ArrayStorage:
    """Where large arrays are made: in nameless files of `folder`, or in memory where that is None."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """An array that is not filled yet. In memory where the disk has no room for it."""
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
    """Gives the nameless file that `array` is all of the name `file`, as a .npy file that nobody may write to from now on.

    False where there is none, or the file system gives such a file no name: then nothing has happened.
    """
    mapping = _mapping(array)
    if not isinstance(mapping, NamelessFile) or mapping.descriptor < 0:
        return False
    begins = np.frombuffer(mapping, np.uint8).ctypes.data + HEADER_BYTES
    if array.ctypes.data != begins or (array.shape, array.dtype) != (mapping.shape, mapping.dtype):
        return False
    opened = os.open("/proc/self/fd", os.O_RDONLY | os.O_DIRECTORY)
    try:
        # What stands there is a link to the file; with a folder's descriptor Python has the system follow it.
        os.link(str(mapping.descriptor), file, src_dir_fd=opened)
    except OSError:
        return False
    finally:
        os.close(opened)
    return True


def _map_nameless_file(folder: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NamelessFile:
    """Raises OSError, also where the disk has no room."""
    descriptor = _open_nameless_file(folder)
    try:
        size = HEADER_BYTES + prod(shape) * dtype.itemsize
        # A page that has no place on the disk when it is written to would end the process.
        os.posix_fallocate(descriptor, 0, size)
        os.pwrite(descriptor, _npy_header(shape, dtype), 0)
        pages = NamelessFile(descriptor, size)
    except BaseException:
        os.close(descriptor)
        raise
    pages.descriptor, pages.shape, pages.dtype = descriptor, shape, dtype
    return pages


def _open_nameless_file(folder: Path) -> int:
    """The descriptor of a new one. Raises OSError."""
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError:
        # Some file systems (NFS, older overlays) know no such files. One that has lost its name is given none again.
        descriptor, name = tempfile.mkstemp(prefix="scratch-", dir=folder)
        Path(name).unlink()
        return descriptor


def _npy_header(shape: tuple[int, ...], dtype: np.dtype[Any]) -> bytes:
    """`HEADER_BYTES` of them: numpy.lib.format, version 1.0."""
    described = repr({"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape})
    magic = np.lib.format.magic(1, 0)
    text = described.encode("latin1").ljust(HEADER_BYTES - len(magic) - 3) + b"\n"
    return magic + len(text).to_bytes(2, "little") + text
