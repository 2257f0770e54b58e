"""Followed folders: `[[folder]]`."""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field

from consumers.folder import FolderSettings, FolderWatcher, HardLinks, file_uri
from consumers.openat import FileAccess
from consumers.types import EMPTY, EXCLUSIONS_VERSION, Fingerprint
from daemon.config_types.path_validators import existing_directory
from daemon.config_types.values import AnyPath, Globs, Labels, MiB, Section
from daemon.config_types.values import Size as Bytes
from daemon.contract.base import is_empty
from daemon.contract.status import SourceStatus
from daemon.pipeline.ownership import Claim, OwnerKind
from daemon.sources.base import Source, SourceKind, SourceParts

if TYPE_CHECKING:
    from daemon.contract.finding import Finding
    from daemon.pipeline.pipeline import Pipeline
    from store.store import Store

OUTDATED = Fingerprint(0, 0, 0, exclusions=0)
"""Fingerprint of a file whose documents in the memory may be wrong: it is parsed again, or removed if it is gone."""


class FolderSection(Section):
    path: Annotated[AnyPath, AfterValidator(existing_directory)]
    """Directory to follow, with everything below it."""
    labels: Labels = ()
    """Labels of all documents in the folder, used by scopes."""
    labels_from_documents: bool = True
    """Whether labels in a document's metadata also count."""
    include: Annotated[Globs, Field(min_length=1)] = ("**",)
    """Patterns as in a .gitignore file, relative to `path`, that select the files to parse."""
    exclude: Globs = ()
    """Patterns of files to exclude, which override `include`; `!` cancels a pattern or a default exclusion
    (docs/reference/exclusions.md)."""
    settle_ms: Annotated[int, Field(ge=0, le=600_000)] = 200
    """Time for which a file must be unchanged before it is parsed."""
    polling: bool = False
    """Scan for changes instead of waiting for events; for network drives, which report no events."""
    poll_interval_s: Annotated[float, Field(ge=0.1, le=86400)] = 2.0
    """Interval between scans with `polling`."""
    follow_symlinks: bool = False
    max_bytes: Bytes = 64 * MiB
    """Maximum bytes to parse of one file. A larger file that can be parsed only as a whole is skipped."""
    confirm_loss: bool = True
    """Whether a scan waits for `hippoctl confirm` before removing more than half of the documents, or any by a new default
    exclusion."""

    @property
    def source_name(self) -> str:
        """The folder's name in `status`, and the `source` of its documents."""
        return os.fspath(self.path)

    @property
    def uri_prefix(self) -> str:
        """Prefix of the URIs of its files."""
        return file_uri(os.path.abspath(os.fsencode(self.path)).rstrip(b"/") + b"/")  # noqa: PTH100 - not every path is text


class FolderStatus(SourceStatus):
    """`files`: number of followed files. `last_scan_at`: when the folder was last compared with the memory, in Unix seconds.
    `unconfirmed`: documents that are missing, or excluded by a new default exclusion, and kept until `hippoctl confirm`.
    `newly_excluded`: the number of these documents that are excluded, by reason. `excluded`: excluded files and directories, by
    reason (docs/reference/exclusions.md); files in excluded directories are not counted."""

    detail: str | None
    files: int
    last_scan_at: float | None
    unconfirmed: int = 0
    newly_excluded: dict[str, int] = Field(default_factory=dict, exclude_if=is_empty)
    excluded: dict[str, int] = Field(default_factory=dict, exclude_if=is_empty)


class FolderSource(Source):
    """One `[[folder]]`; runs the folder's watcher."""

    kind = "folder"
    redelivers = True

    def __init__(
        self, folder: FolderSection, pipeline: "Pipeline", store: "Store", hard_links: HardLinks | None = None
    ) -> None:
        settings = FolderSettings(**folder.model_dump(exclude={"labels", "labels_from_documents"}))
        self.name = settings.source
        known = _known_files(self.name, folder.uri_prefix, pipeline, store)
        documents = pipeline.documents_by_file
        self._source = FolderWatcher(
            settings,
            known,
            pipeline.file_events.emit,
            touched=pipeline.file_events.touched,
            documents=lambda uri: max(documents.count(uri), 1),
            hard_links=None if folder.follow_symlinks else hard_links,
        )
        access = FileAccess(folder.follow_symlinks, os.fsencode(folder.path), max_bytes=folder.max_bytes)
        pipeline.follow_folder(self.name, access, known, self._source.committed)

    def start(self) -> None:
        self._source.start()

    async def stop(self) -> None:
        await asyncio.to_thread(self._source.stop)

    def rescan(self) -> None:
        self._source.rescan()

    def confirm(self) -> int:
        return self._source.confirm()

    def status(self, pending: int) -> FolderStatus:
        state = self._source.state
        return FolderStatus(
            kind=self.kind,
            name=self.name,
            state=state.state,
            lag=pending + state.pending,
            detail=state.detail or None,
            files=state.files,
            last_scan_at=state.last_scan_at,
            unconfirmed=state.unconfirmed,
            newly_excluded=dict(state.newly_excluded),
            excluded=dict(sorted(state.excluded.items())),
        )

    def pending_note(self) -> str | None:
        return f"{self.name} has not been scanned since the start" if self._source.awaits_first_scan else None

    async def delivered(self) -> None:
        loop = asyncio.get_running_loop()
        scanned = asyncio.Event()
        # Let no thread wait: a first scan takes minutes, and each client that disconnects would leave a thread behind.
        self._source.rescan(lambda _complete: _call_on(loop, scanned.set))
        await scanned.wait()


def _known_files(source: str, prefix: str, pipeline: "Pipeline", store: "Store") -> dict[str, Fingerprint]:
    """Returns the fingerprints of the folder's files in the store; `OUTDATED` for a file whose documents the store may lack.

    A file is `OUTDATED` if it has no position, if its documents are missing, or if their source is not a folder: earlier
    versions of hippod let messages remove or replace the documents of a file.
    """
    documents = pipeline.documents_by_file
    # If a file without `EMPTY` lacks its documents, a message removed them; or a client, if the store never followed a topic.
    restore = any(key.startswith("kafka:") for key in store.positions)

    def is_as_read(uri: str, position: Mapping[str, Any]) -> bool:
        uris = documents.of(uri)
        if not uris:
            return EMPTY in position or not restore
        found = (store.document(each) for each in uris)
        return all(each is None or each.source.startswith("/") for each in found)

    def has_passages(uri: str) -> bool:
        found = (store.document(each) for each in documents.of(uri))
        return any(each is not None and each.passages for each in found)

    known = {}
    for uri in dict.fromkeys(uri for uri in (*documents, *store.positions) if uri.startswith(prefix)):
        if pipeline.owners.owns(source, uri):
            position = store.positions.get(uri)
            read = position is not None and is_as_read(uri, position)
            fingerprint = Fingerprint.from_json(position) if position is not None and read else OUTDATED
            # Excluding a file without passages removes nothing, so it needs no confirmation.
            known[uri] = fingerprint if has_passages(uri) else replace(fingerprint, exclusions=EXCLUSIONS_VERSION)
    return known


def _call_on(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the loop has ended, so no task waits
        loop.call_soon_threadsafe(call)


def _make(folder: FolderSection, parts: SourceParts) -> FolderSource:
    # Only folders with equal labels share hard links: otherwise, a link into another folder would change which clients see the
    # file.
    labels = (frozenset(folder.labels), folder.labels_from_documents)
    return FolderSource(folder, parts.pipeline, parts.store, parts.hard_links.setdefault(labels, HardLinks()))


def _conflicts(folders: Sequence[FolderSection], own_paths: Mapping[str, Path]) -> list[str]:
    """Returns a sentence for each folder that is inside another folder or contains files that hippod writes."""
    problems = []
    places = sorted((folder.path.resolve(), number) for number, folder in enumerate(folders))
    for (outer, first), (inner, second) in pairwise(places):
        if inner == outer:
            problems.append(f'folder[{second}].path = "{inner}" is folder[{first}]\'s too; leave one of them out')
        elif inner.is_relative_to(outer):
            problems.append(
                f'folder[{second}].path = "{inner}" lies inside folder[{first}] ("{outer}"); '
                "follow the outer one only and choose its files with include and exclude"
            )
    for key, path in own_paths.items():
        own = path.resolve()
        problems += [
            f'{key} = "{own}" lies inside folder[{number}] ("{place}"), whose files are read as documents; '
            "choose a place outside of it"
            for place, number in places
            if own.is_relative_to(place)
        ]
    return problems


def _inspect(folders: Sequence[FolderSection]) -> "Iterator[Finding]":
    from daemon.sources.folder_checks import inspect_folders

    return inspect_folders([(folder.path, folder.polling) for folder in folders])


def _claims(folder: FolderSection) -> Iterator[Claim]:
    yield Claim(folder.uri_prefix, folder.source_name, OwnerKind.FOLDER)


FOLDER = SourceKind("folder", FolderSection, FolderStatus, _make, _conflicts, _claims, _inspect)
