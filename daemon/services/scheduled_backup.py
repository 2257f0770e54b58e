"""Scheduled backups, whose interval continues over restarts."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import structlog

from daemon.services.progress import ProgressBoard
from store.backup.remote import send
from store.durable_files import durable_file
from store.store import Store

LAST_BACKUP_FILE = "backup.last"
"""File in the store's folder with the target and the time of the last scheduled backup."""

log = structlog.get_logger()


class BackupTimes(Protocol):
    """The settings of `[schedule]` for backups."""

    backup_to: str | None
    backup_keep: float


class ScheduledBackup:
    """Sends backups. `run` is called in the scheduler's threads, and raises the errors of `send`, which the scheduler logs."""

    def __init__(
        self,
        store: Store,
        times: Callable[[], BackupTimes],
        progress: ProgressBoard,
        stopping: Callable[[], bool],
    ) -> None:
        self._store = store
        self._times = times
        self._progress = progress
        self._stopping = stopping
        self._last: Path = store.folder / LAST_BACKUP_FILE

    def last_run(self) -> float:
        """Returns the time of the last backup to the present target, in Unix seconds; 0 if there was none."""
        try:
            last = json.loads(self._last.read_bytes())
            return float(last["made"]) if last["url"] == self._times().backup_to else 0.0
        except (OSError, ValueError, KeyError, TypeError):
            return 0.0

    def run(self) -> None:
        times = self._times()
        if times.backup_to is None:
            return
        with self._progress.running("backup", "files") as task:
            sent = send(self._store, times.backup_to, task.update, keep_s=times.backup_keep, cancelled=self._stopping)
        with durable_file(self._last) as file:
            file.write(json.dumps({"url": times.backup_to, "made": sent.made}).encode())
        log.info(
            "backup_sent",
            commit=sent.backup.commit,
            files=sent.sent_files,
            bytes=sent.sent_bytes,
            pruned=sent.pruned,
            backup=sent.name,
        )
