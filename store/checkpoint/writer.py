"""Writes a checkpoint's folder."""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from store.checkpoint.files import MANIFEST, PREFIX, UNFINISHED, manifest_checksum, newest, settings
from store.durable_files import sync
from store.index.live_index import KINDS, LiveIndex
from store.index.part import Part, PartFiles, PartWriter

MAX_PURGED_SHARE = 0.25
"""Share of purged rows above which no checkpoint is written: the index is rebuilt first."""


@dataclass(frozen=True, slots=True)
class CapturedIndex:
    """The index as of one commit: copies of its parts."""

    commit: int
    time: float
    next_id: Mapping[str, int]
    settings: list[Any]
    parts: Sequence[tuple[str, Part]]


def capture(index: LiveIndex, commit: int, time: float) -> CapturedIndex | None:
    """Captures the present index. Returns None if too many of its rows were purged.

    The caller holds the write lock, 50 ms for a million phrases, and prevents folding until `swap_in`.
    """
    if index.purged_rows > MAX_PURGED_SHARE * sum(map(index.size, KINDS)):
        return None
    parts = [(name, part.copy()) for name, part in index.parts()]
    return CapturedIndex(commit, time, dict(index.next_id), settings(index.dim, index.rule), parts)


def write(folder: Path, captured: CapturedIndex, check_time: Callable[[], None]) -> PartFiles:
    """Writes `captured`, and removes older checkpoints.

    Calls `check_time` before each file and lets its exception through. Raises OSError. An error leaves no unfinished files.
    """
    place = folder / UNFINISHED
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    try:
        files = _write_files(place, newest(folder), captured, check_time)
        final = folder / f"{PREFIX}{captured.commit}"
        shutil.rmtree(final, ignore_errors=True)
        place.rename(final)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    sync(folder)
    for other in folder.glob(f"{PREFIX}*"):
        if other != final:
            shutil.rmtree(other, ignore_errors=True)
    return PartFiles(final, files.files, files.values)


def _write_files(
    place: Path, before: Path | None, captured: CapturedIndex, check_time: Callable[[], None]
) -> PartWriter:
    known: Mapping[str, list[int]] = {}
    if before is not None:
        try:
            known = json.loads((before / MANIFEST).read_text())["files"]
        except (OSError, ValueError, KeyError):
            before = None
    files = PartWriter(place, before, known, check_time)
    for name, part in captured.parts:
        check_time()
        part.save(files, name)
    manifest = {
        "settings": captured.settings,
        "commit": captured.commit,
        "time": captured.time,
        "next_id": captured.next_id,
        "values": files.values,
        "files": files.files,
    }
    manifest["checksum"] = manifest_checksum(json.loads(json.dumps(manifest)))
    (place / MANIFEST).write_text(json.dumps(manifest))
    sync(place / MANIFEST)
    sync(place)
    return files


def swap_in(index: LiveIndex, captured: CapturedIndex, files: PartFiles) -> None:
    """Replaces data of the live index by the equal data in `files`, written from `captured`.

    The disk then contains the data once, and the next checkpoint can link the files. The caller holds the write lock. Raises
    OSError.
    """
    for (name, part), (_, saved) in zip(index.parts(), captured.parts, strict=True):
        part.map_saved(files, name, saved)
