"""The memory written down, so that starting reads it instead of working it out again.

`snapshot-<commit>/` beside the tables holds what follows from them and takes long to derive: vectors (mapped into memory,
not read), postings, sketches, edges, counts. Texts and documents are read from the tables, and the commits after the
snapshot's are applied on top (`store.checkpoint.recovery`). A folder is complete or absent: it is written under
another name, synced,
and renamed. Every file's checksum is in `manifest.json`; nothing in it is ever executed.
"""

import json
import os
import shutil
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from store.durable_files import sync
from store.index.arrays import BLOCK, VectorsView
from store.index.bm25 import Postings, SavedPostings, terms
from store.index.state import NOTHING, Image
from store.log.plan import SynonymRule
from store.types import ExtractionState, extraction_state

FORMAT = 5
PREFIX = "snapshot-"
UNFINISHED = "snapshot.new"
KINDS = ("passages", "phrases", "triples")
MOST_FORGOTTEN = 0.25
"""Share of rows that purging took from the tables, from which a snapshot is not worth keeping their places."""

PROBE = "Isn't it naïve, the cafe\u0301? 2,000 runners ran; 東京タワー"


class Unusable(Exception):
    """There is no snapshot to start from; the message says why."""


class SnapshotGivenUp(Exception):
    """The time for writing a snapshot was over before it was finished. Nothing of it stays; the one before does."""


@dataclass(frozen=True, slots=True)
class Capture:
    """What is written, as of one commit: views and shallow copies, taken while no commit is applied."""

    commit: int
    time: float
    dim: int
    next_id: Mapping[str, int]
    total_length: int
    arrays: Mapping[str, NDArray[Any]]
    vectors: Mapping[str, VectorsView]
    matrices: Mapping[str, Any]
    lists: Mapping[str, Sequence[NDArray[np.int32] | None]]
    extraction_states: Mapping[int, ExtractionState]
    postings: Postings
    passages: int


def capture(image: Image, commit: int, time: float) -> Capture | None:
    """Takes hold of the image as it is; some 50 ms a million phrases. None where too much of it was purged."""
    rows = {"passages": len(image.passages), "phrases": len(image.phrases), "triples": len(image.predicates)}
    if image.forgotten > MOST_FORGOTTEN * sum(rows.values()):
        return None
    arrays: dict[str, NDArray[Any]] = {f"{name}-ids": image.ids[name].view() for name in KINDS}
    maps: dict[str, dict[Any, int]] = {
        "passages": image.passage_rows,
        "phrases": image.phrase_rows,
        "triples": image.triple_rows,
    }
    for name in KINDS if image.forgotten else ():
        known = np.zeros(rows[name], np.bool_)
        known[np.fromiter(maps[name].values(), np.int64, len(maps[name]))] = True
        arrays[f"{name}-known"] = known
    arrays["phrases-sketches"] = image.sketches.view()
    for name in ("passage", "phrase", "triple"):
        arrays[f"{name}-counts"] = getattr(image, f"{name}_counts").view().array()
    return Capture(
        commit,
        time,
        image.dim,
        dict(image.next_id),
        image.total_length,
        arrays,
        {name: getattr(image, f"{name[:-1]}_vectors").view() for name in KINDS},
        {name: matrix.view(image.shape(name)) for name, matrix in image.matrices.items()},
        {"effective": list(image.effective), "extracted": list(image.extracted)},
        dict(image.extraction_states),
        image.postings,
        rows["passages"],
    )


def write(
    folder: Path, captured: Capture, folded: Mapping[str, Any], rule: SynonymRule, on_time: Callable[[], None]
) -> Path:
    """Writes `captured`, with its matrices `folded` into one CSR each, and drops older snapshots.

    `on_time` is called before each file; what it raises is raised here. Raises OSError. Either way nothing unfinished stays.
    """
    place = folder / UNFINISHED
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    try:
        return _written(folder, place, captured, folded, rule, on_time)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise


def _written(
    folder: Path,
    place: Path,
    captured: Capture,
    folded: Mapping[str, Any],
    rule: SynonymRule,
    on_time: Callable[[], None],
) -> Path:
    writer = _Writer(place, newest(folder), on_time)
    for name, array in captured.arrays.items():
        writer.array(name, array)
    for name, view in captured.vectors.items():
        writer.array(f"{name}-encoded", view.known)
        for start, block in view.blocks():
            # Whole blocks never change: those of the snapshot before are linked, not written again.
            writer.array(f"{name}-vectors-{start // BLOCK:05d}", block, keep=len(block) == BLOCK)
    for name, matrix in folded.items():
        for part in ("data", "indices", "indptr"):
            writer.array(f"{name}-{part}", getattr(matrix, part))
    for name, rows in captured.lists.items():
        _write_lists(writer, name, rows)
    on_time()
    postings = captured.postings.saved(captured.passages)
    for name in ("starts", "rows", "counts", "lengths"):
        writer.array(f"postings-{name}", getattr(postings, name))
    writer.strings("postings-terms", postings.terms)
    number = {state: n for n, state in enumerate(dict.fromkeys(captured.extraction_states.values()))}
    writer.strings("extraction-states", [json.dumps(astuple(state)) for state in number])
    writer.array("extraction-rows", np.array(list(captured.extraction_states), np.int32))
    numbers = [number[state] for state in captured.extraction_states.values()]
    writer.array("extraction-numbers", np.array(numbers, np.int32))
    manifest = {
        "format": FORMAT,
        "commit": captured.commit,
        "time": captured.time,
        "dim": captured.dim,
        "block": BLOCK,
        "rule": [rule.threshold, rule.cap],
        "terms": terms(PROBE),
        "next_id": captured.next_id,
        "total_length": captured.total_length,
        "shapes": {name: list(matrix.shape) for name, matrix in folded.items()},
        "files": writer.files,
    }
    (place / "manifest.json").write_text(json.dumps(manifest))
    sync(place / "manifest.json")
    sync(place)
    final = folder / f"{PREFIX}{captured.commit}"
    shutil.rmtree(final, ignore_errors=True)
    place.rename(final)
    sync(folder)
    for other in folder.glob(f"{PREFIX}*"):
        if other != final:
            shutil.rmtree(other, ignore_errors=True)
    return final


def newest(folder: Path) -> Path | None:
    """The folder of the newest snapshot."""
    found = [path for path in folder.glob(f"{PREFIX}*") if path.name[len(PREFIX) :].isdigit()]
    return max(found, key=lambda path: int(path.name[len(PREFIX) :]), default=None)


def discard(folder: Path) -> None:
    """Removes every snapshot."""
    for place in folder.glob(f"{PREFIX}*"):
        shutil.rmtree(place)


class _Writer:
    """Files with their checksums, each synced; a block that the snapshot before has is linked from there."""

    def __init__(self, place: Path, before: Path | None, on_time: Callable[[], None]) -> None:
        self._place = place
        self._on_time = on_time
        self._before = before
        self._known: dict[str, list[int]] = {}
        if before is not None:
            try:
                self._known = json.loads((before / "manifest.json").read_text())["files"]
            except (OSError, ValueError, KeyError):
                self._before = None
        self.files: dict[str, list[int]] = {}
        """name: [bytes, crc32]"""

    def array(self, name: str, array: NDArray[Any], keep: bool = False) -> None:
        self._on_time()
        file = self._place / f"{name}.npy"
        # A block may hold other rows if the snapshot before was of another numbering: its content decides.
        if keep and self._before is not None and file.name in self._known and self._linked(file, array):
            return
        with file.open("wb") as out:
            np.save(out, np.ascontiguousarray(array), allow_pickle=False)
        self._note(file)

    def _linked(self, file: Path, array: NDArray[Any]) -> bool:
        assert self._before is not None
        old = self._before / file.name
        try:
            # A start maps blocks, and later snapshots link them: such a one need not be read to be known for the same.
            if _mapped_inode(array) != old.stat().st_ino and not np.array_equal(
                np.load(old, mmap_mode="r", allow_pickle=False), array
            ):
                return False
            os.link(old, file)
        except (OSError, ValueError):
            return False
        self.files[file.name] = self._known[file.name]
        return True

    def strings(self, name: str, texts: Sequence[str]) -> None:
        self._on_time()
        file = self._place / f"{name}.arrow"
        table = pa.table({"text": pa.array(texts, pa.large_string())})
        with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, table.schema) as out:
            out.write_table(table)
        self._note(file)

    def _note(self, file: Path) -> None:
        sync(file)
        self.files[file.name] = [file.stat().st_size, _checksum(file)]


class _Mapped(np.memmap[Any, Any]):
    """An array that is a file's, whatever becomes of the file's name."""

    inode = 0


def _mapped_inode(array: NDArray[Any]) -> int | None:
    """The inode of the file whose mapping `array` is a part of. While it is mapped no other file is given that number."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if isinstance(base, _Mapped):
            return base.inode
        base = base.base
    return None


def _write_lists(writer: _Writer, name: str, rows: Sequence[NDArray[np.int32] | None]) -> None:
    """Lists of rows as one array and where each begins; None is told from an empty list by a third array."""
    starts = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([0 if part is None else len(part) for part in rows], out=starts[1:])
    writer.array(f"{name}-starts", starts)
    writer.array(f"{name}-none", np.array([part is None for part in rows], np.bool_))
    writer.array(f"{name}-rows", np.concatenate([NOTHING, *(part for part in rows if part is not None)]))


class Saved:
    """A snapshot folder that was checked: its arrays mapped into memory, its strings read."""

    def __init__(self, place: Path, dim: int, rule: SynonymRule) -> None:
        """Raises Unusable where it cannot be started from."""
        self._place = place
        try:
            manifest = json.loads((place / "manifest.json").read_text())
            expected = (FORMAT, dim, BLOCK, [rule.threshold, rule.cap], terms(PROBE))
            found = tuple(manifest[key] for key in ("format", "dim", "block", "rule", "terms"))
            if found != expected:
                raise Unusable(f"{place.name} was made by another version or with other settings")
            self.commit = int(manifest["commit"])
            self.time = float(manifest["time"])
            self.next_id: dict[str, int] = manifest["next_id"]
            self.total_length = int(manifest["total_length"])
            self.shapes: dict[str, list[int]] = manifest["shapes"]
            self._files: dict[str, list[int]] = manifest["files"]
            with ThreadPoolExecutor(2) as checkers:
                for name, good in zip(self._files, checkers.map(self._whole, self._files), strict=True):
                    if not good:
                        raise Unusable(f"{place.name}/{name} is damaged")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Unusable(f"{place.name} cannot be read: {error}") from error

    def _whole(self, name: str) -> bool:
        file = self._place / name
        size, checksum = self._files[name]
        return file.stat().st_size == size and _checksum(file) == checksum

    def has(self, name: str) -> bool:
        return f"{name}.npy" in self._files

    def array(self, name: str) -> NDArray[Any]:
        file = self._place / f"{name}.npy"
        mapped = np.load(file, mmap_mode="r", allow_pickle=False).view(_Mapped)
        mapped.inode = file.stat().st_ino
        return np.asarray(mapped)

    def strings(self, name: str) -> list[str]:
        with pa.memory_map(str(self._place / f"{name}.arrow")) as source:
            texts: list[str] = pa.ipc.open_file(source).read_all()["text"].to_pylist()
            return texts

    def vectors(self, name: str) -> list[NDArray[np.float32]]:
        count = sum(file.startswith(f"{name}-vectors-") for file in self._files)
        return [self.array(f"{name}-vectors-{i:05d}") for i in range(count)]

    def matrix(self, name: str) -> Any:
        parts = tuple(self.array(f"{name}-{part}") for part in ("data", "indices", "indptr"))
        return sparse.csr_array(parts, shape=tuple(self.shapes[name]))

    def lists(self, name: str) -> list[NDArray[np.int32] | None]:
        rows, none = np.array(self.array(f"{name}-rows")), self.array(f"{name}-none").tolist()
        starts = self.array(f"{name}-starts").tolist()
        return [None if no else rows[starts[i] : starts[i + 1]] for i, no in enumerate(none)]

    def postings(self) -> Postings:
        arrays = (self.array(f"postings-{name}") for name in ("starts", "rows", "counts", "lengths"))
        return Postings(SavedPostings(self.strings("postings-terms"), *arrays))

    def extraction_states(self) -> dict[int, ExtractionState]:
        """Who read each passage and what became of it, by row; one object for those that are equal."""
        states = [extraction_state(*json.loads(text)) for text in self.strings("extraction-states")]
        rows, numbers = self.array("extraction-rows").tolist(), self.array("extraction-numbers").tolist()
        return {row: states[number] for row, number in zip(rows, numbers, strict=True)}


def _checksum(file: Path) -> int:
    checksum = 0
    with file.open("rb") as content:
        while part := content.read(1 << 20):
            checksum = zlib.crc32(part, checksum)
    return checksum
