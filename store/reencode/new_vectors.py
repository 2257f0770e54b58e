"""The vectors of a new encoder, which stay in the store's folder until they replace the old vectors; and the texts that still
lack a new vector.

The file `vectors` is a sequence of records of equal length: the key of a text, its vector, a checksum. Records are only
appended, so that after a crash, encoding continues with the texts without a record. Reading stops at the first incomplete or
damaged record; its text and the texts of later records are encoded again.
"""

import hashlib
import json
import shutil
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.durable_files import durable_file
from store.errors import NotEncoded
from store.fixed_point import Fixed, width
from store.index.live_index import KINDS, LiveIndex
from store.lance.layout import table_folder
from store.types import MENTION, EncoderIdentity, PassageText, Triple

FOLDER = "reencode"
TARGET = "target.json"
VECTORS = "vectors"
KEY_BYTES = 16
CHECKED_RECORDS = 8192
"""Number of records that opening reads at a time."""
ROWS_AT_ONCE = 4096
"""Number of a table's rows whose texts are looked up at a time."""
MERGED_KEYS, MERGED_SHARE = 65_536, 0.125
"""New keys are merged into the sorted keys once there are at least MERGED_KEYS of them and at least MERGED_SHARE of the sorted
keys."""
VECTOR_COPIES = 3
"""Number of copies of the new vectors: in their file, in the new tables, and in the index's files."""
CODES_SHARE = 0.3
"""Size of the vectors' codes in the index, as a share of the size of the vectors."""

Key = bytes


def key_of(kind: str, *parts: str) -> Key:
    """Returns the key of a text; `kind` is a table's name. Equal keys mean equal kinds and parts."""
    lengths = ",".join(str(len(part)) for part in parts)
    text = "\0".join((kind, lengths, *parts)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=KEY_BYTES).digest()


@dataclass(frozen=True, slots=True)
class Target:
    """The encoder, and the prefix that its server receives before each passage."""

    encoder: str
    dim: int
    passage_prefix: str | None = None

    @property
    def identity(self) -> EncoderIdentity:
        return EncoderIdentity(self.encoder, self.dim)


def target_of(store: Path) -> Target | None:
    """Returns the target of the re-encoding in progress in the store's folder; None if no re-encoding is in progress."""
    try:
        return Target(**json.loads((store / FOLDER / TARGET).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def discard(store: Path) -> None:
    """Ends a re-encoding and deletes its vectors."""
    # The target is deleted first, so that a crash in between leaves no target with only a part of its vectors.
    (store / FOLDER / TARGET).unlink(missing_ok=True)
    shutil.rmtree(store / FOLDER, ignore_errors=True)


class NewVectors:
    """The vectors of `target`, in the store's folder. Only one thread at a time may use the vectors."""

    def __init__(self, store: Path, target: Target) -> None:
        """Continues with the existing vectors of `target`. Vectors of another target are deleted first."""
        self.target = target
        folder = store / FOLDER
        if target_of(store) != target:
            discard(store)
            folder.mkdir(mode=0o700)
            with durable_file(folder / TARGET) as file:
                file.write(json.dumps(asdict(target)).encode())
        self._record = np.dtype(
            [("key", f"V{KEY_BYTES}"), ("vector", "<i2", (width(target.dim),)), ("checksum", "<u4")]
        )
        self._path = folder / VECTORS
        self._path.touch(mode=0o600)
        self._sorted: NDArray[np.bytes_] = np.empty(0, f"S{KEY_BYTES}")
        self._places: NDArray[np.int64] = np.empty(0, np.int64)
        """The record number of each key in `_sorted`."""
        self._recent: dict[Key, int] = {}
        """The record numbers of the keys that are not yet in `_sorted`."""
        self._count = self._recover()
        self._file = self._path.open("ab", buffering=0)

    def __len__(self) -> int:
        return self._count

    def _recover(self) -> int:
        """Reads the keys, and truncates the file at the first incomplete or damaged record. Returns the number of records."""
        keys: list[bytes] = []
        count = 0
        with self._path.open("r+b") as file:
            while block := file.read(CHECKED_RECORDS * self._record.itemsize):
                good = self._good(block)
                keys.append(np.frombuffer(block, self._record, good)["key"].tobytes())
                count += good
                if good < CHECKED_RECORDS:
                    break
            file.truncate(count * self._record.itemsize)
        self._merge(np.frombuffer(b"".join(keys), f"S{KEY_BYTES}"), np.arange(count))
        return count

    def _good(self, block: bytes) -> int:
        """Returns the number of intact records at the beginning of `block`."""
        size = self._record.itemsize
        count = len(block) // size
        stated = np.frombuffer(block, self._record, count)["checksum"]
        view = memoryview(block)
        for record in range(count):
            if zlib.crc32(view[record * size : (record + 1) * size - 4]) != stated[record]:
                return record
        return count

    def _merge(self, keys: NDArray[np.bytes_], places: NDArray[np.int64]) -> None:
        both = np.concatenate([self._sorted, keys])
        order = np.argsort(both, kind="stable")
        self._sorted, self._places = both[order], np.concatenate([self._places, places])[order]

    def add(self, keys: Sequence[Key], vectors: Fixed) -> None:
        """Appends the vectors of texts that have no vector yet. Raises OSError; in that case, none of the vectors was added."""
        records = np.zeros(len(keys), self._record)
        records["key"] = np.frombuffer(b"".join(keys), f"V{KEY_BYTES}")
        records["vector"] = vectors
        size = self._record.itemsize
        view = memoryview(records.tobytes())
        records["checksum"] = [zlib.crc32(view[row * size : (row + 1) * size - 4]) for row in range(len(keys))]
        written = self._file.write(records.tobytes())
        if written != records.nbytes:
            self._file.truncate(self._count * size)
            raise OSError(f"only {written} of {records.nbytes} bytes could be written to {self._path}")
        self._recent.update(zip(keys, range(self._count, self._count + len(keys)), strict=True))
        self._count += len(keys)
        if len(self._recent) >= max(MERGED_KEYS, MERGED_SHARE * len(self._sorted)):
            self._merge(np.array(list(self._recent), f"S{KEY_BYTES}"), np.array(list(self._recent.values())))
            self._recent.clear()

    def _places_of(self, keys: Sequence[Key]) -> NDArray[np.int64]:
        """Returns the record number of each key; -1 for a key without a record."""
        found = np.full(len(keys), -1, np.int64)
        if len(self._sorted):
            wanted = np.array(keys, f"S{KEY_BYTES}")
            at = np.minimum(np.searchsorted(self._sorted, wanted), len(self._sorted) - 1)
            known = self._sorted[at] == wanted
            found[known] = self._places[at[known]]
        for number, key in enumerate(keys):
            if (place := self._recent.get(key)) is not None:
                found[number] = place
        return found

    def lacking(self, keys: Sequence[Key]) -> list[int]:
        """Returns the positions in `keys` of the keys without a vector."""
        lacking: list[int] = np.flatnonzero(self._places_of(keys) < 0).tolist()
        return lacking

    def vectors_of(self, keys: Sequence[Key]) -> Fixed:
        """Returns the vectors of `keys`, shape (len(keys), dim + 1). Raises NotEncoded if a key has no vector."""
        places = self._places_of(keys)
        if (places < 0).any():
            raise NotEncoded("a text has no vector of the new encoder yet")
        if not len(keys):
            return np.empty((0, width(self.target.dim)), np.int16)
        records = np.memmap(self._path, self._record, "r", shape=(self._count,))
        vectors: Fixed = records["vector"][places]
        return vectors

    def close(self) -> None:
        self._file.close()


@dataclass(frozen=True, slots=True)
class TextsToEncode:
    """Texts of one kind that have no new vector, and their keys. `after`: the row at which the next call should begin."""

    after: int
    keys: Sequence[Key]
    passages: Sequence[PassageText] = ()
    phrases: Sequence[str] = ()
    triples: Sequence[Triple] = ()


def key_of_content(kind: str, content: Any) -> Key | None:
    """Returns the key of a passage, phrase or triple; None for a mention edge, which has no vector."""
    if kind == "passages":
        return key_of(kind, content.id)
    if kind == "phrases":
        return key_of(kind, content)
    return None if content[1] == MENTION else key_of(kind, *content)


def texts_to_encode(index: LiveIndex, kind: str, first: int, after: int, vectors: NewVectors) -> TextsToEncode:
    """Returns the texts without a new vector in a table's rows from `first` to before `after`."""
    keyed: dict[Key, Any] = {}
    for row in range(*np.searchsorted(index.ids[kind].view(), (first, after)).tolist()):
        content = index.content(kind, row)
        key = key_of_content(kind, content)
        if key is not None and _row_of(index, kind, content) == row:  # a purged text has no row, or a later one
            keyed[key] = content
    keys = list(keyed)
    lacking = [keys[place] for place in vectors.lacking(keys)]
    return TextsToEncode(after, lacking, **{kind: [keyed[key] for key in lacking]})


def _row_of(index: LiveIndex, kind: str, content: Any) -> int | None:
    if kind == "passages":
        return index.passage_rows.get(content.id)
    return index.phrase_rows.get(content) if kind == "phrases" else index.triple_row(content)


def needed_bytes(store: Path, rows: int, encoded: int, old_dim: int, dim: int) -> int:
    """Returns the additional number of bytes that the store will need: for the new vectors of `rows` texts, of which `encoded`
    texts already have theirs, and for the copy of the texts in the new tables."""
    vector = 2 * width(dim)
    tables = sum(
        file.stat().st_size for kind in KINDS for file in table_folder(store, kind).rglob("*") if file.is_file()
    )
    texts = max(tables - rows * 2 * width(old_dim), 0)
    return round(
        rows * vector * (VECTOR_COPIES + CODES_SHARE) + (rows - encoded) * KEY_BYTES - encoded * vector + texts
    )


def free_bytes(store: Path) -> int:
    return shutil.disk_usage(store).free
