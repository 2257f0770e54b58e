"""`hippod --inspect` finds the commonest mistakes: each is made here, and found with what to do about it."""

import errno
import grp
import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from consumers.splitting import SplitSettings
from daemon.app.reparse import cut_files_anew
from daemon.config import Config, load_config
from daemon.config_types.mounts import mount_of
from daemon.contract.finding import Finding, guarded
from daemon.doctor import inspect_config
from daemon.doctor.access_rights import secrets, socket_rights
from daemon.doctor.connectivity import encoder, llm
from daemon.doctor.machine import formats, memory, open_files, packages
from daemon.doctor.store import disk, store, writable
from daemon.sources.folder_checks import drive, hard_links
from daemon.sources.kafka.declaration import KAFKA
from memory.encoder.hashing import DEFAULT_DIM, HASH_ENCODER_NAME
from memory.encoder.registry import ENCODER_BACKENDS
from store.errors import StoreDamaged
from store.lance.import_shim import lancedb
from store.log import commits
from store.log.store_lock import StoreLock, lock_owner
from store.reencode.new_vectors import NewVectors, Target
from store.store import Store
from store.types import EncoderIdentity
from tests.e2e.real_hippod import NO_PRIVILEGE, clean_environment, write_config
from tests.memory.llm.model_server import ModelServer, Status, obedient

HASH = EncoderIdentity(HASH_ENCODER_NAME, DEFAULT_DIM)
Configured = Callable[..., Config]


@pytest.fixture
def configured(tmp_path: Path) -> Configured:
    """A configuration with a store in the test's folder and these further sections."""

    def make(**sections: Any) -> Config:
        sections = {"store": {"path": str(tmp_path / "store")}, "encoder": {"backend": "hash"}} | sections
        return load_config(write_config(tmp_path / "hippod.toml", sections), {"HOME": str(tmp_path)})

    return make


def named(found: Iterator[Finding], name: str) -> Finding:
    """The worst finding of that name."""
    mine = [each for each in found if each.name == name]
    assert mine, f"nothing was found about {name}"
    return max(mine, key=lambda each: ("ok", "warn", "fail").index(each.status))


def bad(found: Iterator[Finding], name: str, *said: str, status: str = "fail") -> None:
    finding = named(found, name)
    assert finding.status == status, finding
    assert all(word in f"{finding.detail} {finding.hint}" for word in said), finding
    assert finding.hint, finding


def make(folder: Path, identity: EncoderIdentity = HASH, *, saved: bool = False) -> None:
    with Store(folder, identity) as opened:
        if saved:
            assert opened.write_checkpoint()


# The document formats.


def test_missing_library_of_a_format_is_reported(configured: Configured, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "PDF" in named(formats(configured()), "formats").detail
    monkeypatch.setattr(sys.modules["daemon.doctor.machine"], "find_spec", lambda name: None if "pdf" in name else 1)
    bad(formats(configured()), "formats", "PDF", "pypdfium2", "make install")


# The store.


def test_store_of_another_encoder_is_reported(configured: Configured, tmp_path: Path) -> None:
    make(tmp_path / "store", EncoderIdentity("openai/gone", 768))
    named_both = ("openai/gone (768 dimensions)", HASH_ENCODER_NAME, "[encoder]")
    bad(store(configured()), "store encoder", *named_both, "hippod --reencode")
    make(tmp_path / "store2", EncoderIdentity(HASH_ENCODER_NAME, 8))
    shutil.rmtree(tmp_path / "store")
    (tmp_path / "store2").rename(tmp_path / "store")
    bad(store(configured()), "store encoder", "8 dimensions", "hippoctl reencode", status="warn")
    NewVectors(tmp_path / "store", Target(HASH_ENCODER_NAME, DEFAULT_DIM)).close()
    assert named(store(configured()), "store encoder").status == "ok"


def test_store_with_different_synonym_settings_is_a_warning(configured: Configured, tmp_path: Path) -> None:
    make(tmp_path / "store")
    assert named(store(configured()), "store graph").status == "ok"
    changed = configured(graph={"synonym_threshold": 0.9, "synonym_variants": False})
    bad(store(changed), "store graph", "synonym_threshold 0.8", "0.9, synonym_variants false", "restart", status="warn")


def test_store_with_different_passage_settings_is_a_warning(configured: Configured, tmp_path: Path) -> None:
    make(tmp_path / "store")
    assert named(store(configured()), "store passages").status == "ok"
    changed = configured(passages={"max_tokens": 800})
    bad(store(changed), "store passages", "max_tokens 400", "[passages] has max_tokens 800", "restart", status="warn")
    with Store(tmp_path / "store", HASH) as opened:
        cut_files_anew(opened, SplitSettings(800))
    assert named(store(changed), "store passages").status == "ok"


def test_store_with_the_encoder_of_an_earlier_release_is_a_warning(configured: Configured, tmp_path: Path) -> None:
    make(tmp_path / "store", EncoderIdentity("sentence-transformers/all-MiniLM-L6-v2", 384))
    found = named(store(configured(encoder={"backend": "sentence-transformers"})), "store encoder")
    assert found.status == "warn"
    assert "first 256 tokens" in found.detail and "hippoctl reencode" in found.hint


def test_store_of_a_newer_format_is_reported(
    configured: Configured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits, "FORMAT", 999)
    make(tmp_path / "store")
    bad(store(configured()), "store", "format 999", "upgrade")


def test_unreadable_upgrade_backup_is_a_warning(configured: Configured, tmp_path: Path) -> None:
    make(tmp_path / "store")
    backup = tmp_path / "store" / "upgrade-backup-format-3-commit-7"
    backup.mkdir()
    bad(store(configured()), "upgrade backup", str(backup), "cannot be read", "delete it", status="warn")
    (backup / "backup.json").write_text(json.dumps({"made": 86_400.0}))
    found = named(store(configured()), "upgrade backup")
    assert (found.status, str(backup) in found.detail, "kept until 1970-02-01" in found.detail) == ("ok", True, True)


def test_damaged_store_is_reported_with_the_restore_option(configured: Configured, tmp_path: Path) -> None:
    make(tmp_path / "store")
    for file in (tmp_path / "store" / "commits.lance").rglob("*.lance"):
        os.truncate(file, 10)
    bad(store(configured()), "store", "cannot be read", "Error: ", str(tmp_path), "--restore")
    with pytest.raises(StoreDamaged):
        make(tmp_path / "store")


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (PermissionError(errno.EACCES, "Permission denied"), "chown -R"),
        (RuntimeError("lance error: LanceError(IO): Input/output error (os error 5)"), "dmesg"),
        (MemoryError(), "memory is used up"),
        (KeyError("encoder"), "start hippod"),
        (TypeError("an error in hippod"), "itself failed"),
    ],
)
def test_unreadable_log_is_reported_without_the_restore_option(
    configured: Configured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, advice: str
) -> None:
    def fails(_folder: Path) -> None:
        raise error

    make(tmp_path / "store")
    monkeypatch.setattr(sys.modules["daemon.doctor.store"], "summarize_store", fails)
    found = [each for each in guarded("store", lambda: store(configured())) if each.status != "ok"]
    assert [(type(error).__name__ in each.detail, str(error) in each.detail) for each in found] == [(True, True)]
    assert advice in found[0].hint
    assert "--restore" not in found[0].hint


def test_store_without_commits_is_reported_and_can_be_opened(configured: Configured, tmp_path: Path) -> None:
    make(tmp_path / "store")
    shutil.rmtree(tmp_path / "store" / "log")
    lancedb.connect(str(tmp_path / "store")).open_table("commits").delete("true")
    assert "no commit yet" in named(store(configured()), "store").detail
    make(tmp_path / "store")
    assert "commit 1 of" in named(store(configured()), "store").detail


def test_interrupted_restore_is_reported(configured: Configured, tmp_path: Path) -> None:
    make(tmp_path / "store")
    (tmp_path / "store" / "restoring").touch()
    bad(store(configured()), "store", "interrupted")


def test_clock_before_the_last_commit_is_a_warning(
    configured: Configured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = time.time() + 86_400
    with monkeypatch.context() as clock:
        clock.setattr(time, "time", lambda: later)
        make(tmp_path / "store")
    bad(store(configured()), "clock", "timedatectl", status="warn")


def test_damaged_checkpoint_is_a_warning(configured: Configured, tmp_path: Path) -> None:
    make(tmp_path / "store", saved=True)
    assert named(store(configured()), "checkpoint").status == "ok"
    [place] = (tmp_path / "store").glob("snapshot-*")
    victim = max(place.glob("*.npy"), key=lambda path: path.stat().st_size)
    victim.write_bytes(victim.read_bytes()[:-1] + b"?")
    bad(store(configured()), "checkpoint", "damaged", "nothing is lost", status="warn")


def test_old_checkpoint_is_a_warning(configured: Configured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "store", saved=True)
    monkeypatch.setattr(sys.modules["daemon.doctor.store"], "OLD_CHECKPOINT_COMMITS", -1)
    bad(store(configured()), "checkpoint", "[schedule] snapshot", status="warn")


def test_lock_finding_names_the_current_or_last_holder(configured: Configured, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    make(folder)
    assert "last held by process" in named(store(configured()), "lock").detail
    with Store(folder, HASH):
        assert lock_owner(folder) == os.getpid()
        assert f"held by process {os.getpid()}" in named(store(configured()), "lock").detail
    assert lock_owner(folder) is None


def test_store_files_of_another_user_are_a_warning(configured: Configured, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    make(tmp_path / "store")
    os.chown(tmp_path / "store" / "head", 65534, -1)
    bad(store(configured()), "store directory", "another user", "chown", status="warn")


def test_store_file_removed_during_the_check_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "store")

    scandir = os.scandir

    def with_one_gone(folder: Path) -> list[Any]:
        (folder / "gone").touch()
        entries = list(scandir(folder))
        (folder / "gone").unlink()
        return entries

    with monkeypatch.context() as listing:
        listing.setattr(os, "scandir", with_one_gone)
        listing.setattr(os, "listdir", lambda folder: [entry.name for entry in with_one_gone(Path(folder))])
        assert writable(tmp_path / "store").status == "ok"


# Room on the disk.


def on_disk(config: Config) -> Finding:
    return named(inspect_config(config), "disk")


def test_full_disk_is_a_failure_and_low_space_a_warning(
    configured: Configured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def free(size: int) -> None:
        usage = SimpleNamespace(total=1 << 40, used=(1 << 40) - size, free=size)
        monkeypatch.setattr(shutil, "disk_usage", lambda _place: usage)

    free(0)
    bad(disk(configured()), "disk", "0 MiB free", "make room", "[store] path")
    free(500 << 20)
    bad(disk(configured()), "disk", "500 MiB free", "1,024 MiB should stay free", status="warn")
    free(2 << 30)
    assert named(disk(configured()), "disk").status == "ok"


def test_free_space_must_fit_a_copy_of_the_largest_table(
    configured: Configured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "store")
    with (tmp_path / "store" / "passages.lance" / "large").open("wb") as file:
        file.truncate(3 << 30)  # a hole: it takes no room here
    usage = SimpleNamespace(total=1 << 40, used=0, free=2 << 30)
    monkeypatch.setattr(shutil, "disk_usage", lambda _place: usage)
    bad(disk(configured()), "disk", "2,048 MiB free", "3,072 MiB should stay free", status="warn")


def test_disk_with_few_inodes_is_a_warning_and_with_none_a_failure(
    configured: Configured, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = SimpleNamespace(total=1 << 40, used=0, free=1 << 40)
    monkeypatch.setattr(shutil, "disk_usage", lambda _place: usage)
    for left, status in ((5_000, "warn"), (3, "fail")):
        inodes = SimpleNamespace(f_files=1 << 20, f_favail=left)
        monkeypatch.setattr(os, "statvfs", lambda _place, now=inodes: now)
        bad(disk(configured()), "disk", f"{left:,} inodes", status=status)


@pytest.mark.process
def test_disk_check_uses_the_default_store_path_or_that_of_the_environment(tmp_path: Path) -> None:
    file = write_config(tmp_path / "hippod.toml", {"encoder": {"backend": "hash"}})
    by_default = load_config(file, {"HOME": str(tmp_path)})
    assert by_default.store.path.is_relative_to(tmp_path)
    assert f"at {tmp_path}" in on_disk(by_default).detail
    (tmp_path / "elsewhere").mkdir()
    configuration = load_config(file, {"HOME": str(tmp_path), "HIPPOD_STORE__PATH": str(tmp_path / "elsewhere")})
    assert on_disk(configuration).detail.endswith(f"at {tmp_path / 'elsewhere'}")


# The socket.


@pytest.mark.process
def test_socket_mode_or_group_different_from_the_configuration_is_a_warning(
    configured: Configured, tmp_path: Path
) -> None:
    groups = sorted({grp.getgrgid(gid).gr_name for gid in (os.getgid(), *os.getgroups())})
    place = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(place))  # the absolute path may be too long
        place.chmod(0o660)
        assert list(socket_rights(configured(api={"socket": str(place)}))) == []
        same = {"socket": str(place), "mode": "0660", "group": grp.getgrgid(place.stat().st_gid).gr_name}
        assert list(socket_rights(configured(api=same))) == []
        place.chmod(0o600)
        bad(
            socket_rights(configured(api=same)),
            "socket rights",
            "has mode 0600, [api] mode is 0660",
            "systemctl edit hippod.socket",
            "SocketMode=0660",
            status="warn",
        )
        assert list(socket_rights(configured(api={"socket": str(place)}))) == []  # what is not written is not missed
        place.chmod(0o660)
        another = next(each.gr_name for each in grp.getgrall() if each.gr_name not in groups)
        bad(
            socket_rights(configured(api=same | {"group": another})),
            "socket rights",
            f"[api] group is {another}",
            f"SocketGroup={another}",
            status="warn",
        )
        found = list(inspect_config(configured(api=same | {"group": another})))
        assert any(each.name == "socket rights" for each in found)
    place.unlink()
    assert list(socket_rights(configured(api=same))) == []


# Secrets, packages, memory, files.


def test_secret_files_accessible_to_other_users_are_a_warning(configured: Configured, tmp_path: Path) -> None:
    token, key = tmp_path / "token", tmp_path / "key"
    token.write_text("short")
    key.write_text("k" * 40)
    token.chmod(0o644)
    key.chmod(0o660)
    llm_section = {"base_url": "http://127.0.0.1:1/v1", "model": "m", "api_key_file": str(key)}
    config = configured(api={"tcp": "127.0.0.1:7411", "token_file": str(token)}, llm=llm_section)
    bad(secrets(config), "token_file", "every user", f"chmod o-rwx {token}", status="warn")
    bad(secrets(config), "token", "5 characters", "openssl rand", status="warn")
    bad(secrets(config), "api_key_file", "changed by its group", status="warn")
    token.write_text("t" * 40)
    for path in (token, key):
        path.chmod(0o600)
    assert {finding.status for finding in secrets(config)} == {"ok"}


@pytest.mark.process
def test_package_with_another_version_is_reported(configured: Configured, monkeypatch: pytest.MonkeyPatch) -> None:
    assert named(packages(configured()), "packages").status == "ok"
    installed = {"turbovec": "1.0.0", "lancedb": "0.40.0"}
    monkeypatch.setattr("daemon.doctor.machine.requires", lambda _name: ["turbovec==1.1.2", "nowhere-to-be-found>=1"])
    monkeypatch.setattr("daemon.doctor.machine.version", lambda name: installed[name])
    with pytest.raises(KeyError):
        list(packages(configured()))  # what is not foreseen is a finding of its own
    found = list(inspect_config(configured()))  # all, so that no check goes on in its thread after the test
    assert any(each.name == "packages" and "KeyError" in each.detail for each in found)
    monkeypatch.setattr("daemon.doctor.machine.requires", lambda _name: ["turbovec==1.1.2"])
    bad(packages(configured()), "packages", "turbovec is 1.0.0, hippod needs 1.1.2")


def test_too_little_memory_is_reported(configured: Configured, monkeypatch: pytest.MonkeyPatch) -> None:
    assert named(memory(configured()), "memory").status == "ok"
    huge = replace(ENCODER_BACKENDS["hash"], memory_bytes=1 << 50)
    monkeypatch.setitem(ENCODER_BACKENDS, "hash", huge)
    bad(memory(configured()), "memory", "GiB of swap", "more memory")


def test_sufficient_open_files_limit_is_ok(configured: Configured) -> None:
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 8192:
        pytest.skip("this machine has too few")
    assert named(open_files(configured()), "open files").status == "ok"


# Folders.


@pytest.mark.parametrize("name", ["drive", "Büro", "two words", "no\u00a0break"])
def test_network_drive_without_polling_is_a_warning(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    mounts = tmp_path / "mountinfo"
    at = str(folder).replace(" ", "\\040")
    mounts.write_text(
        "22 1 0:20 / / rw shared:1 - ext4 /dev/sda1 rw\n"
        f"40 22 0:33 / {at} rw,relatime shared:5 - nfs4 server:/export rw,vers=4.2\n"
        f"41 22 0:34 / {at}-other rw - cifs //server/share rw\n"
        f"42 22 0:35 / {at}-view rw - fuse.bindfs /srv/beneath rw\n"
    )
    view = tmp_path / f"{name}-view"
    view.mkdir()
    bad(drive(view, False, mounts), f"drive {view}", "fuse.bindfs", "polling = true", status="warn")
    assert list(drive(view, True, mounts)) == []
    assert (mount_of(folder, mounts).type, mount_of(tmp_path, mounts).type) == ("nfs4", "ext4")
    bad(drive(folder, False, mounts), f"drive {folder}", "nfs4", "polling = true", status="warn")
    assert named(drive(folder, True, mounts), f"drive {folder}").status == "ok"
    assert list(drive(tmp_path, False, mounts)) == []
    assert mount_of(tmp_path, tmp_path / "absent").type == ""


def test_unprotected_hard_links_are_a_warning(tmp_path: Path) -> None:
    setting = tmp_path / "protected_hardlinks"
    setting.write_text("0\n")
    bad(hard_links(setting), "hard links", "sysctl", status="warn")
    setting.write_text("1\n")
    assert list(hard_links(setting)) == []


# The encoder, the model's server, brokers.


def test_missing_or_unreachable_encoder_is_reported(configured: Configured, tmp_path: Path) -> None:
    empty = tmp_path / "model"
    empty.mkdir()
    library = {"backend": "sentence-transformers"}
    bad(encoder(configured(encoder={**library, "model": str(empty)})), "encoder model", "safetensors")
    bad(encoder(configured(encoder={**library, "model": "no-one/has-this"})), "encoder model", "not on this machine")
    assert named(encoder(configured(encoder=library)), "encoder model").status == "ok"
    away = {"backend": "openai", "model": "m", "base_url": "http://127.0.0.1:1/v1"}
    bad(encoder(configured(encoder=away)), "encoder model", "does not answer", "[encoder] base_url")


def test_llm_check_sends_a_probe_and_reports_failures(configured: Configured) -> None:
    def section(url: str, timeout_s: float = 60.0) -> Config:
        return configured(llm={"base_url": url, "model": "m", "timeout_s": timeout_s})

    with ModelServer(obedient) as server:
        assert named(llm(section(server.url)), "llm").status == "ok"
        assert [call.purpose for call in server.calls] == ["probe"]
        server.script = lambda _call: Status(401)
        bad(llm(section(server.url)), "llm", "401")
    bad(llm(section("http://127.0.0.1:1/v1")), "llm", "127.0.0.1:1", "[llm] base_url")
    with socket.create_server(("127.0.0.1", 0)) as idle:  # takes connections and never says a word
        bad(llm(section(f"http://127.0.0.1:{idle.getsockname()[1]}/v1", 0.5)), "llm")
    assert named(llm(configured()), "llm").status == "ok"


def test_unreachable_kafka_broker_is_reported(configured: Configured) -> None:
    config = configured(kafka=[{"brokers": ["127.0.0.1:1"], "topics": ["news"]}])
    bad(KAFKA.inspect(config.tables(KAFKA)), "kafka news", "127.0.0.1:1", "brokers")
    with socket.create_server(("127.0.0.1", 0)) as broker:
        threading.Thread(target=broker.accept, daemon=True).start()
        up = configured(kafka=[{"brokers": [f"127.0.0.1:{broker.getsockname()[1]}"], "topics": ["news"]}])
        assert named(KAFKA.inspect(up.tables(KAFKA)), "kafka news").status == "ok"


# Through the door.


@pytest.mark.daemon
def test_inspect_prints_findings_as_json_under_limited_permissions(tmp_path: Path) -> None:
    drive_ = tmp_path / "drive"
    drive_.mkdir()
    (drive_ / "secret.txt").write_text("x")
    (drive_ / "secret.txt").chmod(0)
    (drive_ / "room").mkdir(mode=0)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    sections = {
        "store": {"path": str(closed / "store")},
        "encoder": {"backend": "hash"},
        "folder": [{"path": str(drive_)}],
    }
    config = write_config(tmp_path / "hippod.toml", sections)
    done = subprocess.run(
        [sys.executable, "-c", NO_PRIVILEGE, "-m", "daemon.main", "--config", str(config), "--inspect"],
        env=clean_environment(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=90,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300)),
    )
    assert done.returncode == 0, done.stderr
    found = [Finding(**each) for each in json.loads(done.stdout)["findings"]]
    bad(iter(found), f"drive {drive_}", "2 cannot be read", "setfacl")
    bad(iter(found), "store directory", "cannot be written", "chmod u+rwx")
    bad(iter(found), "open files", "only 300 open files", "LimitNOFILE", status="warn")
    assert not (closed / "store").exists()


def inspected_by_another(tmp_path: Path, **sections: Any) -> dict[str, Finding]:
    """What `hippod --inspect` finds as a user to whom permissions apply."""
    config = write_config(tmp_path / "hippod.toml", {"encoder": {"backend": "hash"}} | sections)
    done = subprocess.run(
        [sys.executable, "-c", NO_PRIVILEGE, "-m", "daemon.main", "--config", str(config), "--inspect"],
        env=clean_environment(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert done.returncode == 0, done.stderr
    assert "itself failed" not in done.stdout
    return {each["name"]: Finding(**each) for each in json.loads(done.stdout)["findings"]}


@pytest.fixture
def shut(tmp_path: Path) -> Path:
    """A directory that is another user's alone, as the package's /var/lib/hippod is."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory away")
    place = tmp_path / "shut"
    make(place / "store")
    os.chown(place, 65534, -1)
    place.chmod(0o700)
    return place


@pytest.mark.daemon
@pytest.mark.parametrize("below", ["", "store", "store/not/yet"])
def test_store_hidden_by_another_user_is_a_warning(tmp_path: Path, shut: Path, below: str) -> None:
    found = inspected_by_another(tmp_path, store={"path": str(shut / below)})
    for name, detail in (("store directory", "is not visible to this user"), ("memory", "this user cannot see")):
        assert (found[name].status, found[name].hint) == ("warn", "run `sudo hippoctl doctor`"), found[name]
        assert detail in found[name].detail
    assert found["disk"].detail.endswith(f"at {shut}")
    assert {"fail"} & {each.status for each in found.values()} == set()


@pytest.mark.daemon
def test_store_link_into_a_hidden_directory_is_reported_as_not_visible(tmp_path: Path, shut: Path) -> None:
    (tmp_path / "link").symlink_to(shut / "store")
    found = inspected_by_another(tmp_path, store={"path": str(tmp_path / "link")})
    assert found["store directory"].detail == f"{tmp_path / 'link'} is not visible to this user"


@pytest.mark.daemon
def test_tables_unreadable_for_this_user_are_not_reported_as_damaged(tmp_path: Path, shut: Path) -> None:
    shut.chmod(0o755)
    for place in (shut / "store", *(shut / "store").iterdir()):
        os.chown(place, 65534, -1)
        place.chmod(0o700 if place.is_dir() else 0o600)
    (shut / "store").chmod(0o755)
    config = {"path": str(shut / "store")}
    found = inspected_by_another(tmp_path, store=config)
    assert (found["store"].status, found["store"].hint) == ("warn", "run `sudo hippoctl doctor`")
    bad(iter(found.values()), "store directory", "owned by uid 65534", "chown")
    with StoreLock(shut / "store"):  # a hippod runs: it writes, so this user is only another one
        finding = inspected_by_another(tmp_path, store=config)["store directory"]
        assert (finding.status, finding.hint) == ("warn", "run `sudo hippoctl doctor`")
        assert f"process {os.getpid()} has it open" in finding.detail


@pytest.mark.skipif(find_spec("sentence_transformers") is None, reason="other models need the extra torch")
@pytest.mark.daemon
def test_encoder_model_hidden_by_another_user_is_a_warning(tmp_path: Path, shut: Path) -> None:
    section = {"backend": "sentence-transformers", "model": str(shut / "model")}
    found = inspected_by_another(tmp_path, store={"path": str(tmp_path / "store")}, encoder=section)
    assert (found["encoder model"].status, found["encoder model"].hint) == ("warn", "run `sudo hippoctl doctor`")
