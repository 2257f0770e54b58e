"""Attacks on files: read by another user, replaced while hippod runs, a deleted lock, a hostile backup."""

import fcntl
import json
import os
import resource
import shutil
import socket
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.e2e.real_hippod import Daemon, hippod, until, write_config

pytestmark = pytest.mark.daemon


@contextmanager
def open_umask() -> Iterator[None]:
    """Sets the umask 000 for processes started inside the `with` block."""
    before = os.umask(0)
    try:
        yield
    finally:
        os.umask(before)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Yields a daemon that was started with the umask 000."""
    daemon = Daemon(tmp_path_factory.mktemp("files"))
    try:
        with open_umask():
            daemon.launch()
        daemon.wait_ready()
        daemon.write("ada.txt", "Ada Lind keeps the lighthouse at Vessel Point.")
        daemon.wait()
        yield daemon
    finally:
        daemon.close()
        print(f"--- {daemon.home} logged:\n{daemon.log_text()[-6000:]}")


def open_to_others(*roots: Path) -> dict[str, str]:
    """Returns the mode of each file and folder at and below `roots` that other users can access."""
    found = {}
    for root in roots:
        for path in (root, *root.rglob("*")):
            mode = path.lstat().st_mode
            if not stat.S_ISLNK(mode) and stat.S_IMODE(mode) & 0o077:
                found[str(path)] = oct(stat.S_IMODE(mode))
    return found


# File modes.


def test_store_and_backup_are_unreadable_for_other_users_for_any_umask(live: Daemon) -> None:
    with live.reading_paused():
        live.add({"id": "waits", "text": "This document waits in the inbox."})
        assert list((live.store / "inbox").glob("*.jsonl"))
        assert open_to_others(live.store) == {}
    live.wait()
    folder, objects = live.home / "backup", live.home / "objects"
    live.ctl_json("backup", folder)
    live.ctl_json("backup", objects.as_uri())
    assert any(path.is_file() for path in objects.rglob("*"))
    assert open_to_others(live.store, folder, objects) == {}
    assert stat.S_IMODE(live.socket.stat().st_mode) == 0o660


# The store's folder is moved while hippod runs.


def assert_refuses(live: Daemon, name: str) -> None:
    """Asserts that a file saved now is not reported as stored, and that every report gives the reason."""
    uri = live.write(name, f"Bruno Tamm wrote {name} while the store was away.")
    until(lambda: "was deleted, renamed or unmounted" in live.status().get("trouble", ""), "status says so")
    for response in (
        live.http.post("/v1/wait", json={"timeout_s": 2}),
        live.http.post("/v1/documents", json={"documents": [{"id": name, "text": "not kept"}]}),
    ):
        assert response.status_code in (409, 503), response.text
        assert "was deleted, renamed or unmounted" in response.json()["detail"]
    waited = live.ctl("wait")
    assert waited.code == 1, waited
    commits = [each for each in live.ctl("--json", "doctor").json["checks"] if each["name"] == "commits"]
    assert [each["status"] for each in commits] == ["fail"]
    until(lambda: live.documents().get(uri, {}).get("state") == "pending", "the file waits")
    until(lambda: any("is not the folder" in each["error"] for each in live.events("commit_failed")), "the log says so")
    assert all(passage["document"] != uri for passage in live.query(name))


def assert_goes_on(live: Daemon, name: str) -> None:
    """Asserts that files saved meanwhile are stored once the folder is back."""
    live.wait()
    assert live.documents()[live.uri(name)]["state"] == "indexed"
    assert "trouble" not in live.status()


@contextmanager
def moved(folder: Path) -> Iterator[Path]:
    """Moves the folder away inside the `with` block; then puts it back, replacing the present one."""
    away = folder.with_name("away")
    folder.rename(away)
    try:
        yield away
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        away.rename(folder)


def test_renamed_store_refuses_changes_and_creates_nothing_at_its_old_path(live: Daemon) -> None:
    with moved(live.store):
        assert_refuses(live, "renamed.txt")
        assert not live.store.exists()
    assert_goes_on(live, "renamed.txt")


def test_a_backup_that_fails_leaves_nothing_behind(live: Daemon, tmp_path: Path) -> None:
    targets = tmp_path / "backup", (tmp_path / "objects").as_uri()
    with moved(live.store):
        for target in targets:
            assert live.ctl("backup", target).code == 1
            assert [path.name for path in tmp_path.iterdir()] == []
    for target in targets:
        live.ctl_json("backup", target)


def test_folder_that_replaced_the_store_is_not_modified(live: Daemon) -> None:
    with moved(live.store) as away:
        shutil.copytree(away, live.store)
        before = {path: path.stat().st_mtime_ns for path in live.store.rglob("*")}
        assert_refuses(live, "replaced.txt")
        assert {path: path.stat().st_mtime_ns for path in live.store.rglob("*")} == before
    assert_goes_on(live, "replaced.txt")


def test_replaced_table_folder_refuses_changes_and_is_not_modified(live: Daemon) -> None:
    with moved(live.store / "passages.lance"):
        (live.store / "passages.lance").mkdir()
        assert_refuses(live, "emptied.txt")
        assert list((live.store / "passages.lance").iterdir()) == []
    assert_goes_on(live, "emptied.txt")
    assert live.ctl_json("verify")["problems"] == []


# The lock.


def test_a_second_hippod_is_refused_though_the_lock_file_was_deleted(live: Daemon, tmp_path: Path) -> None:
    with (live.store / "lock").open() as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # as releases do that lock the file alone
    assert live.process is not None
    config = write_config(
        tmp_path / "second.toml",
        {"store": {"path": str(live.store)}, "encoder": {"backend": "hash"}, "api": {"socket": str(tmp_path / "s")}},
    )
    for _ in range(2):  # the second time, the file exists from the first attempt
        (live.store / "lock").unlink(missing_ok=True)
        second = hippod(tmp_path, "--config", str(config))
        assert second.code == 3, second
        assert f"is open in hippod with pid {live.process.pid}" in second.err
    shutil.rmtree(live.home / "lock-backup", ignore_errors=True)
    live.ctl_json("backup", live.home / "lock-backup")
    restored = hippod(tmp_path, "--config", str(config), "--restore", str(live.home / "lock-backup"))
    assert restored.code == 3, restored
    assert f"is open in hippod with pid {live.process.pid}" in restored.err
    assert live.ctl_json("verify")["problems"] == []


# No file can be opened.


def test_the_limit_of_open_files_does_not_flood_the_log(live: Daemon) -> None:
    assert live.process is not None
    pid, before = live.process.pid, resource.prlimit(live.process.pid, resource.RLIMIT_NOFILE)
    lines = len(live.log_text().splitlines())
    with ExitStack() as stack:
        few = len(os.listdir(f"/proc/{pid}/fd")) + 2
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (few, before[1]))
        stack.callback(resource.prlimit, pid, resource.RLIMIT_NOFILE, before)
        for _ in range(40):
            client = stack.enter_context(socket.socket(socket.AF_UNIX))
            client.connect(str(live.socket))
        # asyncio reports each of its 2,048 attempts a second to accept a connection.
        until(lambda: any("muted_s" in each for each in live.events("uncaught_error")), "the limit is met")
    until(lambda: live.http.get("/healthz").status_code == 200, "hippod answers again")
    live.wait()
    added = live.log_text().splitlines()[lines:]
    assert len(added) < 100, added[:100]


# A hostile backup.


@pytest.fixture(scope="module")
def stopped(live: Daemon, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A backup to be changed by an attacker, and a folder to restore it to."""
    home = tmp_path_factory.mktemp("hostile")
    live.ctl_json("backup", home / "backup")
    return home, home / "backup"


HOSTILE = ["x/../../../escaped.txt", "passages.lance/../../../escaped.txt", "lock"]


def test_a_restore_writes_nothing_outside_of_the_store(stopped: tuple[Path, Path]) -> None:
    home, backup = stopped
    store = home / "a" / "b" / "store"
    config = write_config(home / "restore.toml", {"store": {"path": str(store)}, "encoder": {"backend": "hash"}})
    note = json.loads((backup / "backup.json").read_text())
    (home / "escaped.txt").write_text("planted")
    for name in HOSTILE:
        changed = home / "changed"
        shutil.rmtree(changed, ignore_errors=True)
        shutil.copytree(backup, changed)
        if name == "lock":
            (changed / name).write_text("planted")
        (changed / "backup.json").write_text(json.dumps({**note, "sizes": {**note["sizes"], name: len("planted")}}))
        restored = hippod(home, "--config", str(config), "--restore", str(changed))
        assert restored.code == 3, (name, restored)
        assert repr(name) in restored.err, (name, restored)
        assert not store.exists() or [path.name for path in store.iterdir()] in ([], ["lock"]), name
        assert sorted(path.name for path in home.rglob("escaped*")) == ["escaped.txt"]


def test_restore_refuses_links_in_a_backup_and_follows_none_in_the_store(stopped: tuple[Path, Path]) -> None:
    home, backup = stopped
    secret = home / "secret"
    secret.write_text("secret")
    linked = home / "linked"
    shutil.copytree(backup, linked)
    name = next(name for name in json.loads((backup / "backup.json").read_text())["sizes"] if name.endswith(".lance"))
    size = (linked / name).stat().st_size
    (linked / name).unlink()
    (linked / name).symlink_to(secret)
    secret.write_bytes(b"s" * size)
    store = home / "linked-store"
    config = write_config(home / "linked.toml", {"store": {"path": str(store)}, "encoder": {"backend": "hash"}})
    refused = hippod(home, "--config", str(config), "--restore", str(linked))
    assert (refused.code, "symbolic link" in refused.err) == (3, True), refused

    # The target folder was prepared: the first files that hippod writes there are links to others' files.
    outside = home / "outside"
    outside.mkdir()
    shutil.rmtree(store, ignore_errors=True)
    store.mkdir(mode=0o777)
    store.chmod(0o777)
    (store / "restored.new").symlink_to(outside)
    (store / "restoring.part").symlink_to(outside / "part")
    os.mkfifo(store / "snapshot-1")
    with open_umask():
        restored = hippod(home, "--config", str(config), "--restore", str(backup))
    assert restored.code == 3, restored  # refused at `restoring.part`, which is removed
    assert list(outside.iterdir()) == []
    with open_umask():
        restored = hippod(home, "--config", str(config), "--restore", str(backup))
    assert restored.code == 0, restored
    assert list(outside.iterdir()) == []
    found = [path for path in store.rglob("*") if path.is_file() and "before-restore" not in str(path)]
    assert {path.stat().st_nlink for path in found} == {1}, "whoever wrote the backup has a link into the store"
    assert open_to_others(*(path for path in store.iterdir() if not path.name.startswith("before-"))) == {}


# An earlier release's store. The last test deletes the store.


def test_start_restricts_the_permissions_of_files_from_an_earlier_release(live: Daemon) -> None:
    assert live.stop() == 0
    (live.store / "notes").mkdir()
    (live.store / "notes" / "mine.txt").write_text("not hippod's")
    for path in (live.store, *live.store.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)
    (live.store / "torn").symlink_to(live.drive)
    live.drive.chmod(0o755)
    with open_umask():
        live.launch()
    live.wait_ready()
    [event] = live.events("store_tightened")
    assert event["closed"] > 20
    assert event["refused"] == 0
    (live.store / "torn").unlink()
    assert set(map(str, (live.store / "notes", live.store / "notes" / "mine.txt"))) == set(open_to_others(live.store))
    assert stat.S_IMODE(live.drive.stat().st_mode) == 0o755
    shutil.rmtree(live.store / "notes")
    assert live.query("lighthouse")
    assert live.restart().events("store_tightened") == [event]
    assert open_to_others(live.store) == {}


def test_deleted_store_is_rebuilt_from_all_files_after_a_restart(live: Daemon) -> None:
    shutil.rmtree(live.store)
    assert_refuses(live, "deleted.txt")
    assert not live.store.exists()
    assert live.stop() == 0
    assert not live.store.exists(), "the stop wrote into a folder that was deleted"
    live.start()
    live.wait()
    files = {path.as_uri() for path in live.drive.iterdir()}
    assert {uri for uri, each in live.documents().items() if each["state"] == "indexed"} == files
    assert live.uri("deleted.txt") in files
