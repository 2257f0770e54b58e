"""Copies of a store as a process leaves it that ends at some step of a change of the tables."""

import random
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from store.lance.layout import is_known_name, manifests, table_folder, version_of
from store.lance.schema import TABLES, commits
from store.lance.tables import read_unopened
from store.log.mark import read_mark

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
            done = step(*given, **more)
            copy()
            return done

        return mock.patch.object(of, name, stepped)

    with ExitStack() as patches:
        for of, name in steps:
            patches.enter_context(around(of, name))
        yield copies


def sampled(copies: Sequence[Path], seed: str) -> Iterator[Path]:
    """Yields some copies, which differ between the seeds. Every second copy is as after a power loss."""
    count = len(copies) if SAMPLE is None else min(SAMPLE, len(copies))
    for number in sorted(random.Random(seed).sample(range(len(copies)), count)):
        if number % 2:
            tear(copies[number])
        yield copies[number]


def tear(store: Path) -> None:
    """Leaves what a power loss may leave of versions that belong to no commit, whose files nobody flushed."""
    mark = read_mark(store)
    rows = commits.from_table(read_unopened(store, "commits", commits.SCHEMA.names)) if mark is None else []
    versions = mark.versions if mark is not None else rows[-1].versions
    for name in TABLES:
        for manifest in manifests(table_folder(store, name)):
            if name in versions and is_known_name(manifest) and version_of(manifest) > versions[name]:
                manifest.write_bytes(bytes(manifest.stat().st_size))
