"""After any sequence of changes to a tree, with restarts, one scan makes all reported events correct."""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from consumers.types import FileChanged, FileMoved, FileRemoved
from tests.consumers.folder.support import Folder, until

DIRECTORIES = ("", "d", "d/target", "f", "target")
"""Two of them are excluded while there is a `Cargo.toml` next to them."""
NAMES = ("a", "b", "c", "x.tmp", "Cargo.toml", "pyvenv.cfg")
directory = st.sampled_from(DIRECTORIES)
name = st.sampled_from(NAMES)
step = st.one_of(
    st.tuples(st.just("write"), directory, name, st.binary(max_size=3)),
    st.tuples(st.just("save"), directory, name, st.binary(max_size=3)),
    st.tuples(st.just("move"), directory, name, directory, name),
    st.tuples(st.just("link"), directory, name, directory, name),
    st.tuples(st.just("delete"), directory, name),
    st.tuples(st.just("touch"), directory, name),
    st.tuples(st.just("move directory"), directory, directory),
    st.tuples(st.just("delete directory"), directory),
    st.tuples(st.just("symlink"), directory, name, directory),
    st.tuples(st.just("rescan")),
    st.tuples(st.just("settle")),
    st.tuples(st.just("restart")),
    st.tuples(st.just("change while down"), directory, name, st.binary(max_size=3), directory, directory),
)


def _apply(folder: Folder, step: tuple[object, ...]) -> None:
    root = folder.root
    match step:
        case ("write", str(d), str(n), bytes(content)):
            (root / d).mkdir(parents=True, exist_ok=True)
            (root / d / n).write_bytes(content)
        case ("save", str(d), str(n), bytes(content)):
            (root / d).mkdir(parents=True, exist_ok=True)
            (root / d / "saving").write_bytes(content)
            (root / d / "saving").rename(root / d / n)
        case ("move", str(d), str(n), str(e), str(m)):
            (root / e).mkdir(parents=True, exist_ok=True)
            (root / d / n).rename(root / e / m)
        case ("link", str(d), str(n), str(e), str(m)):
            os.link(root / d / n, root / e / m, follow_symlinks=False)
        case ("delete", str(d), str(n)):
            (root / d / n).unlink()
        case ("touch", str(d), str(n)):
            os.utime(root / d / n)
        case ("move directory", str(d), str(e)):
            (root / d).rename(root / e / "moved")
        case ("delete directory", str(d)) if d:
            shutil.rmtree(root / d)
        case ("symlink", str(d), str(n), str(e)):
            (root / d / n).symlink_to(root / e)
        case ("rescan",):
            folder.rescan()
        case ("settle",):
            until(lambda: not _confirm(folder) and folder.daemon.digests == folder.on_disk(), "the tree to be told")
        case ("restart",):
            folder.restart()
        case ("change while down", str(d), str(n), bytes(content), str(e), str(f)):
            folder.stop()
            for one in (("write", d, n, content), ("move directory", e, f), ("delete", f, n)):
                _try(folder, one)
            folder.start()


def _confirm(folder: Folder) -> int:
    """Confirms pending removals, if the scan misses so much of the folder that it waits for confirmation."""
    return folder.source.confirm()


def _try(folder: Folder, step: tuple[object, ...]) -> None:
    with contextlib.suppress(OSError):  # the step's file does not exist, so nothing changes
        _apply(folder, step)


RANDOM = settings(deadline=None, phases=(Phase.generate,), suppress_health_check=[HealthCheck.too_slow])
STEPS = st.lists(step, min_size=1, max_size=25)


@pytest.mark.slow
@settings(RANDOM, max_examples=60)
@given(steps=STEPS)
def test_watch_events_of_random_changes_reproduce_the_folder(steps: list[tuple[object, ...]]) -> None:
    check_events(steps, polling=False)


@pytest.mark.slow
@settings(RANDOM, max_examples=15)  # a poll takes some tenths of a second
@given(steps=STEPS)
def test_poll_events_of_random_changes_reproduce_the_folder(steps: list[tuple[object, ...]]) -> None:
    check_events(steps, polling=True)


def check_events(steps: list[tuple[object, ...]], polling: bool) -> None:
    top = Path(tempfile.mkdtemp(prefix="folder-"))
    folder = Folder(top / "root", polling, max_bytes=2)
    folder.root.mkdir()
    (folder.root / "never moved").write_bytes(b"the folder is not empty")
    try:
        folder.start(settle_ms=10)
        for one in steps:
            _try(folder, one)
        folder.rescan()
        while _confirm(folder):
            folder.rescan()
        assert folder.daemon.digests == folder.on_disk()
        folder.restart()
        assert folder.daemon.digests == folder.on_disk()
        assert not folder.daemon.kinds(FileChanged, FileMoved, FileRemoved)
    finally:
        folder.stop()
        shutil.rmtree(top)
