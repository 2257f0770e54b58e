"""Reads a checkpoint's folder."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from store.checkpoint.files import (
    CHECKED_LATER,
    FORMAT,
    HASH_ARRAYS,
    LIST_ARRAYS,
    MANIFEST,
    CheckpointUnusable,
    manifest_checksum,
    terms_of_probe,
)
from store.durable_files import checksum_of
from store.fixed_point import Fixed
from store.index.bm25 import Postings, PostingsArrays
from store.index.columns.documents import shells
from store.index.columns.hashed_rows import SortedHashes
from store.index.columns.row_lists import ListArrays
from store.index.columns.texts import SavedTexts, Texts
from store.index.file_arrays import ArrayStorage, map_file, map_scattered, mapped_inode
from store.index.synonyms.sorted_bands import BAND_ARRAYS, SortedBands, bands_of_arrays
from store.index.vectors.codes import CodedBlock
from store.index.vectors.matrix import BLOCK_VECTORS
from store.types import Document, ExtractionState, SynonymRule, extraction_state
from store.untrusted_names import inside


class SavedCheckpoint:
    """A checkpoint mapped into memory. All sizes are checked, and the checksums of all files except `CHECKED_LATER`."""

    def __init__(self, place: Path, dim: int, rule: SynonymRule) -> None:
        """Raises CheckpointUnusable if the store cannot be opened from the checkpoint."""
        self._place = place
        try:
            manifest = json.loads((place / MANIFEST).read_text())
            expected = (FORMAT, dim, BLOCK_VECTORS, [rule.threshold, rule.variants], terms_of_probe())
            found = tuple(manifest[key] for key in ("format", "dim", "block", "rule", "terms"))
            if found != expected:
                raise CheckpointUnusable(f"{place.name} was made by another version or with other settings")
            if manifest.pop("checksum") != manifest_checksum(manifest):
                raise CheckpointUnusable(f"{place.name}/{MANIFEST} is damaged")
            self.commit = int(manifest["commit"])
            self.time = float(manifest["time"])
            self.next_id: dict[str, int] = manifest["next_id"]
            self.total_length = int(manifest["total_length"])
            self.shapes: dict[str, list[int]] = manifest["shapes"]
            self.languages = {str(name): frozenset(map(str, found)) for name, found in manifest["languages"].items()}
            self._files: dict[str, list[int]] = manifest["files"]
            with ThreadPoolExecutor(2) as checkers:
                for name, good in zip(self._files, checkers.map(self._is_intact, self._files), strict=True):
                    if not good:
                        raise CheckpointUnusable(f"{place.name}/{name} is damaged")
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise CheckpointUnusable(f"{place.name} cannot be read: {error}") from error

    def _is_intact(self, name: str) -> bool:
        file = inside(self._place, name)
        size, checksum = self._files[name]
        if file.stat().st_size != size:
            return False
        return any(part in name for part in CHECKED_LATER) or checksum_of(file) == checksum

    def has(self, name: str) -> bool:
        return f"{name}.npy" in self._files

    def array(self, name: str) -> NDArray[Any]:
        return map_file(self._place / f"{name}.npy")

    def strings(self, name: str) -> list[str]:
        with pa.memory_map(str(self._place / f"{name}.arrow")) as source:
            texts: list[str] = pa.ipc.open_file(source).read_all()["text"].to_pylist()
            return texts

    def vectors(self, name: str) -> list[Fixed]:
        count = sum(file.startswith(f"{name}-vectors-") for file in self._files)
        return [map_vectors(self._place, name, number) for number in range(count)]

    def runs(self) -> list[SortedBands]:
        """Returns the bands of the first sketches, sorted."""
        return map_runs(self._place)

    def codes(self, name: str) -> list[CodedBlock]:
        """Returns the codes of full blocks, if the checkpoint has them."""
        count = sum(file.startswith(f"{name}-codes-") for file in self._files)
        found = (map_codes(self._place, name, number) for number in range(count))
        return [each for each in found if each is not None]

    def matrix(self, name: str) -> Any:
        parts = tuple(self.array(f"{name}-{part}") for part in ("data", "indices", "indptr"))
        return sparse.csr_array(parts, shape=tuple(self.shapes[name]))

    def lists(self, name: str) -> ListArrays:
        return map_lists(self._place, name)

    def texts(self, name: str) -> SavedTexts:
        return map_texts(self._place, name)

    def hashes(self, name: str) -> SortedHashes:
        return map_hashes(self._place, name)

    def documents(self) -> list[Document]:
        """Returns the documents in the order in which `holders` numbers them."""
        with pa.memory_map(str(self._place / "documents.arrow")) as source:
            return shells(pa.ipc.open_file(source).read_all(), self.texts("documents"))

    def postings(self, name: str, storage: ArrayStorage) -> Postings:
        starts, rows, counts, lengths = (
            self.array(f"{name}-{part}") for part in ("starts", "rows", "counts", "lengths")
        )
        terms = Texts(self.texts(f"{name}-terms"))
        return Postings(
            PostingsArrays(terms, self.hashes(name), starts, rows, counts, lengths, self.languages[name]), storage
        )

    def extraction_states(self) -> dict[int, ExtractionState]:
        """Returns the state of each passage's extraction, by row. Equal states share one object."""
        states = [extraction_state(*json.loads(text)) for text in self.strings("extraction-states")]
        rows, numbers = self.array("extraction-rows").tolist(), self.array("extraction-numbers").tolist()
        return {row: states[number] for row, number in zip(rows, numbers, strict=True)}


def map_vectors(place: Path, name: str, number: int) -> Fixed:
    """Maps a block of vectors of the checkpoint at `place`."""
    return map_scattered(place / f"{name}-vectors-{number:05d}.npy")


def map_runs(place: Path) -> list[SortedBands]:
    """Maps the sorted bands of the checkpoint at `place`."""
    runs: list[SortedBands] = []
    for number in range(len(list(place.glob(f"bands-*-{BAND_ARRAYS[0]}.npy")))):
        arrays = (map_file(place / f"bands-{number:02d}-{name}.npy") for name in BAND_ARRAYS)
        runs.append(bands_of_arrays(runs[-1].end if runs else 0, *arrays))
    return runs


def map_texts(place: Path, name: str, before: SavedTexts | None = None) -> SavedTexts:
    """Maps a column of texts of the checkpoint at `place`.

    Keeps the arrays of `before` that are mapped from the same files: a new mapping would have to fault in each page again.
    """
    known = list(before.arrays) if before is not None else []

    def mapped(file: Path, number: int, part: int) -> NDArray[Any]:
        same = number < len(known) and mapped_inode(known[number][part]) == file.stat().st_ino
        return known[number][part] if same else map_file(file)

    files = enumerate(sorted(place.glob(f"{name}-text-starts-*.npy")))
    return SavedTexts(
        [(mapped(file, at, 0), mapped(place / file.name.replace("-starts-", "-"), at, 1)) for at, file in files]
    )


def map_hashes(place: Path, name: str) -> SortedHashes:
    """Maps the sorted hashes of the checkpoint at `place`."""
    hashes, rows = (map_file(place / f"{name}-{part}.npy") for part in HASH_ARRAYS)
    return hashes, rows


def map_lists(place: Path, name: str) -> ListArrays:
    """Maps lists of rows of the checkpoint at `place`."""
    return ListArrays(*(map_file(place / f"{name}-{part}.npy") for part in LIST_ARRAYS))


def map_codes(place: Path, name: str, number: int) -> CodedBlock | None:
    """Maps the codes of a block of vectors of the checkpoint at `place`; returns None if it has none."""
    file = place / f"{name}-codes-{number:05d}.npy"
    return CodedBlock(map_file(file), map_file(place / f"{name}-units-{number:05d}.npy")) if file.exists() else None
