"""Copies of a store as a process leaves it that ends at some step of a change of the tables."""

import os
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from store.lance.checksums import NAME as CHECKSUMS
from store.lance.checksums import SUFFIXES
from store.lance.layout import DATA, TRANSACTIONS, VERSIONS, file_names, table_folder
from store.lance.schema import TABLES

SAMPLE = 6
"""Number of copies that a test opens, which takes about a second each. None for all of them."""


@contextmanager
def copied_at_every_step(store: Path, place: Path, steps: Sequence[tuple[Any, str]]) -> Iterator[list[Path]]:
    """Copies the store as a killed process leaves it, before and after each call of a step (object, name) in the block."""
    copies: list[Path] = []

    def copy() -> None:
        copies.append(place / f"{len(copies)}")
        shutil.copytree(store, copies[-1], ignore=shutil.ignore_patterns("lock"))

    def around(of: Any, name: str) -> Any:
        step = getattr(of, name)

        def stepped(*given: object, **more: object) -> object:
            copy()
            try:
                return step(*given, **more)
            finally:
                copy()

        return mock.patch.object(of, name, stepped)

    with ExitStack() as patches:
        for of, name in steps:
            patches.enter_context(around(of, name))
        yield copies


def sampled(copies: Sequence[Path], seed: str) -> Iterator[Path]:
    """Yields some copies, which differ between the seeds. Every second copy is as after a power loss."""
    count = len(copies) if SAMPLE is None else min(SAMPLE, len(copies))
    chosen = random.Random(seed)
    for number in sorted(chosen.sample(range(len(copies)), count)):
        if number % 2:
            tear(copies[number], chosen.randrange(3 * len(TEARS)))
        yield copies[number]


TEARS: Sequence[Callable[[Path], object]] = (
    lambda path: path.write_bytes(b""),
    lambda path: path.write_bytes(bytes(path.stat().st_size)),
    lambda path: os.truncate(path, path.stat().st_size // 2),
    lambda path: path.unlink(),
)
"""What a power loss may leave of a file that nobody flushed: nothing, zeros, a part, no file."""


def tear(store: Path, kind: int) -> None:
    """Tears the files of one folder (manifests, rows or transactions) that nobody flushed: their checksums are not recorded."""
    folder, change = (VERSIONS, DATA, TRANSACTIONS)[kind % 3], TEARS[kind // 3]
    recorded = (store / CHECKSUMS).read_text()
    for name in TABLES:
        place = table_folder(store, name)
        for file in sorted(file_names(place)[folder]):
            if file.endswith(SUFFIXES) and f" {place.name}/{folder}/{file} " not in recorded:
                change(place / folder / file)
