"""A followed folder as the daemon runs it: the source, what is known of it, and how it is reported."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from consumers.folder import FolderSettings, FolderSource, file_uri
from consumers.types import Fingerprint
from daemon.config.sections import Folder
from daemon.contract import SourceStatus
from daemon.pipeline.pipeline import Pipeline

UNREAD = Fingerprint(0, 0, 0)
"""Stands for a file whose documents are in the memory without a position: it is read again, or removed if it is gone."""


class FollowedFolder:
    """One `[[folder]]`, from start to stop."""

    def __init__(self, folder: Folder, pipeline: Pipeline, positions: Mapping[str, Any]) -> None:
        settings = FolderSettings(
            path=folder.path,
            include=tuple(folder.include),
            exclude=tuple(folder.exclude),
            settle_ms=folder.settle_ms,
            polling=folder.polling,
            poll_interval_s=folder.poll_interval_s,
            follow_symlinks=folder.follow_symlinks,
            max_bytes=folder.max_bytes,
        )
        self.name = settings.source
        prefix = file_uri(settings.root).rstrip("/") + "/"
        known = dict.fromkeys((uri for uri in pipeline.containers if uri.startswith(prefix)), UNREAD)
        known |= {uri: Fingerprint.from_json(at) for uri, at in positions.items() if uri.startswith(prefix)}
        self._source = FolderSource(settings, known, pipeline.emit, touched=pipeline.touched)
        pipeline.follow(self.name, self._source.committed)

    def start(self) -> None:
        self._source.start()

    def rescan(self) -> None:
        """Looks for what no event told of; does not wait."""
        self._source.rescan()

    def status(self, pending: int) -> SourceStatus:
        state = self._source.state
        return SourceStatus(
            kind="folder",
            name=self.name,
            state=state.state,
            lag=pending + state.pending,
            detail=state.detail or None,  # type: ignore[call-arg]
            files=state.files,
            last_scan_at=state.last_scan_at,
        )

    async def catch_up(self) -> None:
        loop = asyncio.get_running_loop()
        told = asyncio.Event()
        # Not a thread that waits: a first scan takes minutes, and clients that give up would each leave one behind.
        self._source.rescan(lambda _told: _from_afar(loop, told.set))
        await told.wait()

    def stop(self) -> None:
        self._source.stop()


def _from_afar(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the loop has ended, and with it whoever waited
        loop.call_soon_threadsafe(call)
