"""A folder source over a real tree, with its emitted events: shared by the tests of the folder source."""

import os
import stat
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from consumers.folder import FolderSettings, FolderState, FolderWatcher, HardLinks, file_uri
from consumers.types import FileChanged, FileEvent, FileMoved, FileRefused, FileRemoved, Fingerprint, content_digest

PATIENCE_S = 90.0
Kind = TypeVar("Kind", bound=FileEvent)


def until(true: Callable[[], Any], what: str = "it") -> None:
    """Waits until `true()` holds; fails after a generous time limit."""
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.005)


def uri(path: Path | bytes) -> str:
    return file_uri(os.fsencode(path))


def digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()


def rescanned(source: FolderWatcher) -> bool:
    """Rescans the folder; returns whether all findings of the scan were emitted."""
    told: Future[bool] = Future()
    source.rescan(told.set_result)
    return told.result(PATIENCE_S)


class Daemon:
    """The state of a daemon after the events so far: digests by URI, refusals, positions for a restart."""

    def __init__(self, known: Mapping[str, Fingerprint] | None = None) -> None:
        self.events: list[FileEvent] = []
        self.states: list[FolderState] = []
        self.positions: dict[str, Fingerprint] = dict(known or {})
        self.refused: dict[str, FileRefused] = {}
        self.touched: list[str] = []
        self.lock = Lock()

    def emit(self, event: FileEvent) -> None:
        with self.lock:
            self.events.append(event)
            match event:
                case FileChanged():
                    self.positions[event.uri] = event.fingerprint
                    self.refused.pop(event.uri, None)
                case FileMoved():
                    before = self.positions.pop(event.old_uri)
                    assert before.digest == event.fingerprint.digest, "a move keeps the content"
                    assert event.uri not in self.positions, "nothing is moved onto a known file"
                    self.positions[event.uri] = event.fingerprint
                case FileRemoved():
                    assert event.uri in self.positions or event.uri in self.refused, "only what is known is removed"
                    self.positions.pop(event.uri, None)
                    self.refused.pop(event.uri, None)
                case FileRefused():
                    self.refused[event.uri] = event
                    self.positions.pop(event.uri, None)

    def touch(self, name: str, fingerprint: Fingerprint) -> None:
        with self.lock:
            self.touched.append(name)
            self.positions[name] = fingerprint

    def on_state(self, state: FolderState) -> None:
        self.states.append(state)

    @property
    def digests(self) -> dict[str, str | None]:
        with self.lock:
            return {name: position.digest for name, position in self.positions.items()}

    def kinds(self, *of: type[Kind]) -> list[Kind]:
        with self.lock:
            return [event for event in self.events if isinstance(event, of)]

    def forget_events(self) -> None:
        with self.lock:
            self.events.clear()


class Folder:
    """Starts sources over one root one after another, each with the positions of the previous one."""

    def __init__(self, root: Path, polling: bool, max_bytes: int = 1 << 26) -> None:
        self.root = root
        self.polling = polling
        self.max_bytes = max_bytes
        self.daemon = Daemon()
        self.started: FolderWatcher | None = None

    @property
    def source(self) -> FolderWatcher:
        """The started source."""
        assert self.started is not None
        return self.started

    def start(self, hard_links: HardLinks | None = None, **settings: Any) -> Daemon:
        given = {
            "settle_ms": 40,
            "polling": self.polling,
            "poll_interval_s": 0.05,
            "max_bytes": self.max_bytes,
            **settings,
        }
        self.daemon.refused.clear()
        self.started = FolderWatcher(
            FolderSettings(self.root, **given),
            dict(self.daemon.positions),
            self.daemon.emit,
            self.daemon.on_state,
            self.daemon.touch,
            hard_links=hard_links,
        )
        self.started.start()
        return self.daemon

    def scanned(self, **settings: Any) -> Daemon:
        """Starts the source and waits for the events of the first scan."""
        self.start(**settings)
        self.rescan()
        return self.daemon

    def rescan(self) -> None:
        assert rescanned(self.source)

    def stop(self) -> None:
        if self.started is not None:
            self.started.stop()
            self.started = None

    def restart(self, **settings: Any) -> Daemon:
        self.stop()
        self.daemon.forget_events()
        return self.scanned(**settings)

    def commit(self) -> None:
        """Reports the emitted events to the source as committed."""
        for name, position in self.daemon.positions.items():
            self.source.committed(name, position)

    def state(self) -> FolderState:
        return self.source.state

    def on_disk(self) -> dict[str, str]:
        """Returns the digests, by URI, of the files that are followed by default.

        Leaves out symbolic links, special files, and hard links to files that are not followed. Of the default exclusions, it
        knows hidden and temporary files, virtual environments, and the build folders of Cargo.
        """
        found: dict[str, str] = {}
        followed_names: Counter[int] = Counter()
        links: dict[str, os.stat_result] = {}
        for top, names, files in os.walk(os.fsencode(self.root)):
            if b"pyvenv.cfg" in (*names, *files) and top != os.fsencode(self.root):
                names.clear()
                continue
            unwanted = {b"target"} if b"Cargo.toml" in (*names, *files) else set()
            names[:] = [name for name in names if not name.startswith(b".") and name not in unwanted]
            for name in files:
                path = os.path.join(top, name)
                status = os.lstat(path)
                if stat.S_ISREG(status.st_mode) and not name.startswith(b".") and not name.endswith((b".tmp", b"~")):
                    with open(path, "rb") as file:
                        content = file.read()
                    read = digest(content[: self.max_bytes])
                    found[file_uri(path)] = content_digest(read, len(content), self.max_bytes)
                    followed_names[status.st_ino] += 1
                    links[file_uri(path)] = status
        return {
            name: read for name, read in found.items() if followed_names[links[name].st_ino] == links[name].st_nlink
        }

    def settled(self) -> None:
        """Waits until the events match the disk, without requesting a scan."""
        until(lambda: self.daemon.digests == self.on_disk(), "the tree to be told")
