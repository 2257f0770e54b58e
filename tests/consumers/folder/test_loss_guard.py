"""If a scan misses most of a folder, removals wait for confirmation; files that events report as deleted are removed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from consumers.folder import FolderSettings, FolderWatcher
from consumers.folder.tree.file_status import read_fingerprint
from consumers.types import EXCLUSIONS_VERSION, FileMoved, FileRemoved, Fingerprint
from tests.e2e.real_hippod import until


class Folder:
    """A folder, and the memory's documents of it."""

    def __init__(self, path: Path, files: int) -> None:
        self.path = path
        path.mkdir()
        self.files = [path / f"{number}.txt" for number in range(files)]
        for number, file in enumerate(self.files):
            file.write_text(f"text {number}")
        self.known: dict[str, Fingerprint] = {}
        self.events: list[Any] = []

    @contextmanager
    def followed(self, documents: Callable[[str], int] = lambda _uri: 1, **settings: Any) -> Iterator[FolderWatcher]:
        def emit(event: Any) -> None:
            self.events.append(event)
            if isinstance(event, FileRemoved):
                self.known.pop(event.uri)
            else:
                self.known.pop(getattr(event, "old_uri", ""), None)
                self.known[event.uri] = event.fingerprint

        settings = {"polling": True, "poll_interval_s": 0.05, "settle_ms": 0} | settings
        watcher = FolderWatcher(FolderSettings(self.path, **settings), dict(self.known), emit, documents=documents)
        watcher.start()
        try:
            until(lambda: watcher.state.last_scan_at is not None and not watcher.state.pending, "it is scanned")
            yield watcher
        finally:
            watcher.stop()

    def read(self) -> None:
        with self.followed():
            until(lambda: len(self.known) == len(self.files), "all is read")
        self.events.clear()

    @property
    def removed(self) -> int:
        return sum(isinstance(event, FileRemoved) for event in self.events)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path / "drive", 8)
    folder.read()
    return folder


def says(watcher: FolderWatcher, what: str) -> bool:
    return what in watcher.state.detail


def unlink(files: list[Path]) -> None:
    for file in files:
        file.unlink()


def test_loss_of_more_than_half_needs_confirmation_even_after_restarts(folder: Folder) -> None:
    unlink(folder.files[:5])
    for known in (8, 9):
        with folder.followed() as watcher:
            assert watcher.state.unconfirmed == 5
            told = f"5 of {known} documents are missing; they are kept until `hippoctl confirm {folder.path}`"
            until(partial(says, watcher, told), "it says so between two scans")
            (folder.path / "new.txt").write_text("new")
            until(lambda: any(uri.endswith("new.txt") for uri in folder.known), "what is new is read")
        assert folder.removed == 0
    with folder.followed() as watcher:
        assert watcher.confirm() == 5
        until(lambda: folder.removed >= 5, "they are forgotten")
        until(lambda: not watcher.state.unconfirmed and not watcher.state.detail, "it says nothing more")
        assert watcher.confirm() == 0


def test_missing_files_that_return_before_confirmation_are_kept(folder: Folder) -> None:
    kept = {file: file.read_text() for file in folder.files}
    unlink(folder.files[:7])
    with folder.followed() as watcher:
        assert watcher.state.unconfirmed == 7
        for file, text in kept.items():
            file.write_text(text)
        until(lambda: not watcher.state.unconfirmed, "they are back")
    assert folder.removed == 0
    assert len(folder.known) == 8


@pytest.mark.parametrize(
    ("settings", "gone"), [({"confirm_loss": False}, 8), ({}, 4)], ids=["switched off", "half is not more than half"]
)
def test_loss_of_up_to_half_or_with_the_guard_off_removes_documents(
    folder: Folder, settings: dict[str, Any], gone: int
) -> None:
    unlink(folder.files[:gone])
    (folder.path / "other.txt").write_text("other")
    with folder.followed(**settings):
        until(lambda: folder.removed == gone, "they are forgotten")


def test_loss_in_a_small_folder_needs_no_confirmation(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "small", 4)
    folder.read()
    unlink(folder.files[:3])
    with folder.followed():
        until(lambda: folder.removed == 3, "they are forgotten")


def test_lost_file_counts_by_its_number_of_documents(folder: Folder) -> None:
    unlink(folder.files[:1])
    with folder.followed(lambda uri: 100 if uri.endswith("/0.txt") else 1) as watcher:
        assert watcher.state.unconfirmed == 100
    assert folder.removed == 0


def test_moved_files_are_not_counted_as_lost(folder: Folder) -> None:
    (folder.path / "sub").mkdir()
    for file in folder.files:
        file.rename(folder.path / "sub" / file.name)
    with folder.followed() as watcher:
        until(lambda: len(folder.events) == 8, "they moved")
        assert watcher.state.unconfirmed == 0
    assert all(isinstance(event, FileMoved) for event in folder.events)


def test_loss_by_an_exclude_pattern_needs_confirmation(folder: Folder) -> None:
    with folder.followed(exclude=("*.txt",)) as watcher:
        assert watcher.state.unconfirmed == 8
    assert folder.removed == 0


def read_before(folder: Folder, *names: str, exclusions: int = 1) -> None:
    """Writes files, and marks them as parsed under an earlier version of the default exclusions."""
    for name in names:
        (folder.path / name).parent.mkdir(parents=True, exist_ok=True)
        (folder.path / name).write_text(name)
        found, _ = read_fingerprint(bytes(folder.path / name), bytes(folder.path), follow=False)
        folder.known[(folder.path / name).as_uri()] = replace(found, exclusions=exclusions)


@pytest.mark.parametrize("polling", [True, False])
def test_new_default_exclusion_removes_documents_only_after_confirmation(folder: Folder, polling: bool) -> None:
    """For any number of files, over restarts, and whatever happens to the files meanwhile."""
    read_before(folder, "#recycle/old.txt", "p/target/built.txt", "#recycle/later.txt")
    (folder.path / "p" / "Cargo.toml").write_text("[package]")
    for _ in range(2):
        with folder.followed(polling=polling) as watcher:
            assert watcher.state.unconfirmed == 3
            assert watcher.state.newly_excluded == {"recycle bin": 2, "build": 1}
            assert "(build 1, recycle bin 2), such as" in watcher.state.detail
            assert f"`hippoctl confirm {folder.path}`" in watcher.state.detail
            (folder.path / "#recycle" / "new.txt").write_text("never read before")
            watcher.rescan()
            until(lambda: not watcher.state.pending, "it is scanned again")
        assert folder.removed == 0
    (folder.path / "#recycle" / "later.txt").unlink()
    with folder.followed(polling=polling) as watcher:
        until(lambda: folder.removed == 1, "what is not there any more is forgotten")
        assert watcher.confirm() == 2
        until(lambda: folder.removed == 3, "they are forgotten")
        until(lambda: not watcher.state.unconfirmed and not watcher.state.detail, "it says nothing more")
    assert len(folder.known) == 9
    assert not any("new.txt" in uri for uri in folder.known)


def test_documents_included_again_by_an_exclamation_mark_stay(folder: Folder) -> None:
    read_before(folder, "#recycle/old.txt")
    with folder.followed(exclude=("!\\#recycle/",)) as watcher:
        assert watcher.state.unconfirmed == 0
    assert folder.removed == 0


@pytest.mark.parametrize(
    ("exclusions", "settings"),
    [(EXCLUSIONS_VERSION, {}), (1, {"confirm_loss": False})],
    ids=["known rule", "switched off"],
)
def test_documents_of_an_unguarded_exclusion_are_removed(
    folder: Folder, exclusions: int, settings: dict[str, Any]
) -> None:
    read_before(folder, "#recycle/old.txt", exclusions=exclusions)
    with folder.followed(**settings):
        until(lambda: folder.removed == 1, "it is forgotten")


def test_deletions_reported_by_events_need_no_confirmation(folder: Folder) -> None:
    with folder.followed(polling=False) as watcher:
        unlink(folder.files[:7])
        watcher.rescan()
        until(lambda: folder.removed == 7, "they are forgotten")
        until(lambda: watcher.state.unconfirmed == 0, "nothing waits")
