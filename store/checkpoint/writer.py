"""Writes a checkpoint's folder."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from store.checkpoint.capture import KIND_OF_TEXTS, CheckpointCapture
from store.checkpoint.files import (
    FORMAT,
    HASH_ARRAYS,
    LIST_ARRAYS,
    MANIFEST,
    PREFIX,
    UNFINISHED,
    manifest_checksum,
    newest,
    terms_of_probe,
)
from store.durable_files import checksum_of, sync
from store.index.bm25 import PostingsArrays
from store.index.columns.documents import passages_texts, shell_table
from store.index.columns.hashed_rows import SortedHashes
from store.index.columns.row_lists import ListArrays
from store.index.columns.texts import BLOCK_TEXTS, TextArrays, blocks_of
from store.index.file_arrays import link_file, mapped_inode
from store.index.vectors.codes import GROUPED_MIN_ROWS
from store.index.vectors.matrix import BLOCK_VECTORS
from store.types import SynonymRule


def write(
    folder: Path,
    captured: CheckpointCapture,
    folded: Mapping[str, Any],
    rule: SynonymRule,
    check_time: Callable[[], None],
) -> Path:
    """Writes `captured`, with each matrix as one CSR in `folded`, and removes older checkpoints.

    Calls `check_time` before each file and lets its exception through. Raises OSError. An error leaves no unfinished files.
    """
    place = folder / UNFINISHED
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    try:
        return _write_folder(folder, place, captured, folded, rule, check_time)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise


def _write_folder(
    folder: Path,
    place: Path,
    captured: CheckpointCapture,
    folded: Mapping[str, Any],
    rule: SynonymRule,
    check_time: Callable[[], None],
) -> Path:
    writer = _Writer(place, newest(folder), check_time)
    for name, array in captured.arrays.items():
        writer.array(name, array)
    for name, view in captured.vectors.items():
        writer.array(f"{name}-encoded", view.known)
        for start, block in view.blocks():
            # Full blocks never change: those in the previous checkpoint are linked, not rewritten.
            writer.array(f"{name}-vectors-{start // BLOCK_VECTORS:05d}", block, linkable=len(block) == BLOCK_VECTORS)
        for start, coded in view.coded_blocks() if view.n >= GROUPED_MIN_ROWS else ():
            if len(coded.units) == BLOCK_VECTORS:
                writer.array(f"{name}-codes-{start // BLOCK_VECTORS:05d}", coded.codes, linkable=True)
                writer.array(f"{name}-units-{start // BLOCK_VECTORS:05d}", coded.units, linkable=True)
    for position, run in enumerate(captured.runs):
        for name, array in run.arrays().items():
            writer.array(f"bands-{position:02d}-{name}", array, linkable=True)
    for name, matrix in folded.items():
        for part in ("data", "indices", "indptr"):
            writer.array(f"{name}-{part}", getattr(matrix, part))
    forgotten = {}
    for name, (rows, began) in captured.hashed_rows.items():
        check_time()
        hashes = rows.folded(*began)
        writer.hashes(name, hashes)
        forgotten[name] = np.ones(captured.names if name == "names" else len(captured.arrays[f"{name}-ids"]), np.bool_)
        forgotten[name][hashes[1]] = False
    for name, texts in captured.texts.items():
        # Purged texts must leave the disk.
        writer.texts(name, texts.blocks(forgotten[KIND_OF_TEXTS[name]]))
    for name, lists in captured.lists.items():
        writer.lists(name, lists.arrays())
    check_time()
    writer.table("documents", shell_table(captured.documents))
    writer.texts("documents", blocks_of(passages_texts(captured.documents.values())))
    numbers_by_uri = {uri: number for number, uri in enumerate(captured.documents)}
    writer.lists("holders", captured.holders.arrays(numbers_by_uri))
    check_time()
    languages = {}
    for name, postings in (
        ("postings", captured.postings.to_arrays(captured.passages, forgotten["passages"])),
        ("name-postings", captured.name_postings.to_arrays(captured.names, forgotten["names"])),
    ):
        writer.postings(name, postings)
        languages[name] = sorted(postings.languages)
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
        "block": BLOCK_VECTORS,
        "rule": [rule.threshold, rule.variants],
        "terms": terms_of_probe(),
        "languages": languages,
        "next_id": captured.next_id,
        "total_length": captured.total_length,
        "shapes": {name: list(matrix.shape) for name, matrix in folded.items()},
        "files": writer.files,
    }
    manifest["checksum"] = manifest_checksum(json.loads(json.dumps(manifest)))
    (place / MANIFEST).write_text(json.dumps(manifest))
    sync(place / MANIFEST)
    sync(place)
    final = folder / f"{PREFIX}{captured.commit}"
    shutil.rmtree(final, ignore_errors=True)
    place.rename(final)
    sync(folder)
    for other in folder.glob(f"{PREFIX}*"):
        if other != final:
            shutil.rmtree(other, ignore_errors=True)
    return final


class _Writer:
    """Writes and syncs files, and collects their checksums.

    A block that the previous checkpoint contains is hard-linked. A block in a nameless file is linked to its new name.
    """

    def __init__(self, place: Path, before: Path | None, check_time: Callable[[], None]) -> None:
        self._place = place
        self._check_time = check_time
        self._before = before
        self._known: dict[str, list[int]] = {}
        if before is not None:
            try:
                self._known = json.loads((before / MANIFEST).read_text())["files"]
            except (OSError, ValueError, KeyError):
                self._before = None
        self.files: dict[str, list[int]] = {}
        """By name: [bytes, CRC-32]."""

    def array(self, name: str, array: NDArray[Any], linkable: bool = False) -> None:
        self._check_time()
        file = self._place / f"{name}.npy"
        # The previous checkpoint may have numbered rows differently, so the content of the block decides.
        if linkable and self._before is not None and file.name in self._known and self._linked(file, array):
            return
        if not (linkable and link_file(array, file)):
            with file.open("wb") as out:
                np.save(out, np.ascontiguousarray(array), allow_pickle=False)
        self._note(file)

    def _linked(self, file: Path, array: NDArray[Any]) -> bool:
        assert self._before is not None
        old = self._before / file.name
        try:
            # A block that is mapped from this very file equals it, so its content need not be compared.
            if mapped_inode(array) != old.stat().st_ino and not np.array_equal(
                np.load(old, mmap_mode="r", allow_pickle=False), array
            ):
                return False
            os.link(old, file)
        except (OSError, ValueError):
            return False
        self.files[file.name] = self._known[file.name]
        return True

    def texts(self, name: str, blocks: Iterator[TextArrays]) -> None:
        """Writes the texts in blocks. Full blocks never change."""
        for number, (starts, octets) in enumerate(blocks):
            whole = len(starts) > BLOCK_TEXTS
            self.array(f"{name}-text-{number:05d}", octets, linkable=whole)
            self.array(f"{name}-text-starts-{number:05d}", starts, linkable=whole)

    def hashes(self, name: str, hashes: SortedHashes) -> None:
        self.array(f"{name}-{HASH_ARRAYS[0]}", hashes[0])
        self.array(f"{name}-{HASH_ARRAYS[1]}", hashes[1])

    def postings(self, name: str, postings: PostingsArrays) -> None:
        for part in ("starts", "rows", "counts", "lengths"):
            self.array(f"{name}-{part}", getattr(postings, part))
        self.texts(f"{name}-terms", postings.terms.blocks(postings.unused))
        self.hashes(name, postings.places)

    def lists(self, name: str, lists: ListArrays) -> None:
        for part in LIST_ARRAYS:
            self.array(f"{name}-{part}", getattr(lists, part))

    def strings(self, name: str, texts: Sequence[str]) -> None:
        self.table(name, pa.table({"text": pa.array(texts, pa.large_string())}))

    def table(self, name: str, table: pa.Table) -> None:
        self._check_time()
        file = self._place / f"{name}.arrow"
        with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, table.schema) as out:
            out.write_table(table)
        self._note(file)

    def _note(self, file: Path) -> None:
        sync(file)
        self.files[file.name] = [file.stat().st_size, checksum_of(file)]
