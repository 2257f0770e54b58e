"""Parses files again after a change of `[passages]` or of an external program that parsing needs.

The store records the settings and programs with which its files were parsed. So documents that need a missing program are
parsed after its installation, and the memory equals a fresh build on the same machine. `daemon.config.store_settings` handles
`[encoder]`, and the store itself handles `[graph]`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import structlog

from consumers.failure_codes import FailureCode
from consumers.omissions import OmissionKind
from consumers.parsing.programs.installed import CONVERTER, OCR, find_programs, identities
from consumers.splitting import SplitSettings
from daemon.config.sections import Parsing
from daemon.config.store_settings import passages_position, split_of_store
from daemon.parser_pool.pool import ParserPool
from daemon.pipeline.work_items import container_uri
from store.store import CommitResult, Store
from store.types import Batch, Document, State

log = structlog.get_logger()
PROGRAMS_KEY = "settings/programs"
"""Key of the position that records the programs with which the followed files were parsed."""
_WITH_PICTURES = frozenset(
    (
        OmissionKind.RECOGNISED,
        OmissionKind.UNCERTAIN,
        OmissionKind.PAGE_WITHOUT_TEXT,
        OmissionKind.PICTURE,
        OmissionKind.ATTACHMENT,
    )
)
_WITHOUT_TEXT = frozenset((FailureCode.NEEDS_OCR, FailureCode.NO_TEXT, FailureCode.NOT_A_DOCUMENT))


def cut_files_anew(store: Store, split: SplitSettings) -> None:
    """Marks the followed files to be parsed again, in one commit, if they were not split with the settings `split`."""
    if split == split_of_store(store.positions):
        return
    files = mark_outdated(store, store.commit, store.positions, passages_position(split))
    log.info("passages_cut_anew", files=files, max_tokens=split.max_tokens, min_tokens=split.min_tokens)


def mark_outdated(
    store: Store, commit: Callable[[Batch], CommitResult], files: Iterable[str], settings: Mapping[str, Any]
) -> int:
    """Marks `files` to be parsed again, and records `settings`, in one commit. Returns how many of `files` are followed
    files."""
    found = {
        key: {**position, "reader": None}
        for key in files
        if isinstance(position := store.positions.get(key), Mapping) and "reader" in position
    }
    commit(Batch(positions={**found, **settings}))
    return len(found)


class ProgramWatch:
    """Compares the installed programs with the programs that the store records."""

    def __init__(
        self, store: Store, commit: Callable[[Batch], CommitResult], pool: ParserPool, parsing: Parsing
    ) -> None:
        """`commit` commits a batch to `store`, also while the pipeline commits other batches."""
        self._store = store
        self._commit = commit
        self._pool = pool
        self._parsing = parsing

    def check_at_start(self) -> None:
        """Marks the affected files, so that the scan of their folders parses them again."""
        self._update()

    async def check(self, parse_again: Callable[[Callable[[Document], bool]], Awaitable[object]]) -> None:
        """Looks for the programs; if they have changed, calls `parse_again` for the affected documents. Use on the event loop.
        If `check` fails, the next call finds the same change, because the store still records the earlier programs."""
        programs = await asyncio.to_thread(find_programs, self._parsing.ocr, self._parsing.ocr_languages)
        if identities(programs) != identities(self._pool.limits.programs):
            self._pool.limits = replace(self._pool.limits, programs=programs)
        if affected := await asyncio.to_thread(self._update):
            await parse_again(lambda document: document.uri in affected)

    def _update(self) -> frozenset[str]:
        """Marks the files of documents that the present programs may parse with another result; returns these documents."""
        before, now = self._store.positions.get(PROGRAMS_KEY, {}), identities(self._pool.limits.programs)
        changed = {key for key in before.keys() | now.keys() if before.get(key) != now.get(key)}
        if not changed:
            return frozenset()
        affected = frozenset(each.uri for each in self._store.documents() if is_affected(each, changed))
        containers = {container_uri(uri) for uri in affected}
        files = mark_outdated(self._store, self._commit, containers, {PROGRAMS_KEY: now})
        if before or files:  # a new store has no earlier programs
            log.info("programs_changed", programs=", ".join(now.values()) or "none", files=files)
        return affected


def is_affected(document: Document, changed: set[str]) -> bool:
    """Returns whether a change of these programs may change the result of parsing the document."""
    if OCR in changed and (
        (document.state is State.SKIPPED and document.code in _WITHOUT_TEXT)
        or any(each.kind in _WITH_PICTURES for each in document.left_out)
    ):
        return True
    is_converted = document.code == FailureCode.NEEDS_CONVERTER or "converted_by" in document.metadata
    return CONVERTER in changed and is_converted
