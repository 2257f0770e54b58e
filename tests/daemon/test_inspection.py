"""`hippod --inspect` finds the commonest mistakes: each is made here, and found with what to do about it."""

import json
import os
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.config import Config, load_config
from daemon.inspection import inspect
from daemon.inspection.finding import Finding
from daemon.inspection.folders import drive, file_system, hard_links
from daemon.inspection.machine import files, memory, versions
from daemon.inspection.models import encoder, kafka, llm
from daemon.inspection.secrets import secrets
from daemon.inspection.store import store
from memory.encoder.hashing import DEFAULT_DIM, NAME
from store import commits
from store.lock import holder
from store.store import Store
from store.types import EncoderIdentity
from tests.e2e.running import NO_PRIVILEGE, clean_environment, write_config
from tests.models.model_server import ModelServer, Status, obedient

HASH = EncoderIdentity(NAME, DEFAULT_DIM)
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
            assert opened.save()


# The store.


def test_a_store_of_another_encoder(configured: Configured, tmp_path: Path) -> None:
    make(tmp_path / "store", EncoderIdentity("someone/else", 768))
    bad(store(configured()), "store encoder", "someone/else (768 dimensions)", NAME, "[encoder]")


def test_a_store_of_a_newer_format(configured: Configured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commits, "FORMAT", 999)
    make(tmp_path / "store")
    bad(store(configured()), "store", "format 999", "upgrade")


def test_a_store_that_is_damaged(configured: Configured, tmp_path: Path) -> None:
    make(tmp_path / "store")
    for file in (tmp_path / "store" / "commits.lance").rglob("*.lance"):
        os.truncate(file, 10)
    bad(store(configured()), "store", "cannot be read", "--restore")


def test_a_restore_that_was_interrupted(configured: Configured, tmp_path: Path) -> None:
    make(tmp_path / "store")
    (tmp_path / "store" / "restoring").touch()
    bad(store(configured()), "store", "interrupted")


def test_a_clock_that_is_behind_the_last_commit(
    configured: Configured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = time.time() + 86_400
    with monkeypatch.context() as clock:
        clock.setattr(commits.time, "time", lambda: later)
        make(tmp_path / "store")
    bad(store(configured()), "clock", "timedatectl", status="warn")


def test_a_snapshot_that_is_damaged(configured: Configured, tmp_path: Path) -> None:
    make(tmp_path / "store", saved=True)
    assert named(store(configured()), "snapshot").status == "ok"
    [place] = (tmp_path / "store").glob("snapshot-*")
    victim = max(place.glob("*.npy"), key=lambda path: path.stat().st_size)
    victim.write_bytes(victim.read_bytes()[:-1] + b"?")
    bad(store(configured()), "snapshot", "damaged", "nothing is lost", status="warn")


def test_a_snapshot_that_is_old(configured: Configured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "store", saved=True)
    monkeypatch.setattr(sys.modules["daemon.inspection.store"], "MANY_COMMITS", -1)
    bad(store(configured()), "snapshot", "[schedule] snapshot", status="warn")


def test_a_lock_names_its_holder_and_one_that_is_left_is_none(configured: Configured, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    make(folder)
    assert "last held by process" in named(store(configured()), "lock").detail
    with Store(folder, HASH):
        assert holder(folder) == os.getpid()
        assert f"held by process {os.getpid()}" in named(store(configured()), "lock").detail
    assert holder(folder) is None


def test_entries_of_another_user_in_the_store(configured: Configured, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    make(tmp_path / "store")
    os.chown(tmp_path / "store" / "head", 65534, -1)
    bad(store(configured()), "store directory", "another user", "chown", status="warn")


# Secrets, packages, memory, files.


def test_secrets_that_others_may_read(configured: Configured, tmp_path: Path) -> None:
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


def test_a_package_of_another_version(configured: Configured, monkeypatch: pytest.MonkeyPatch) -> None:
    assert named(versions(configured()), "packages").status == "ok"
    installed = {"torch": "1.0.0", "lancedb": "0.40.0"}
    monkeypatch.setattr("daemon.inspection.machine.requires", lambda _name: ["torch==2.13.0", "nowhere-to-be-found>=1"])
    monkeypatch.setattr("daemon.inspection.machine.version", lambda name: installed[name])
    with pytest.raises(KeyError):
        list(versions(configured()))  # what is not foreseen is a finding of its own
    assert any(each.name == "versions" and "KeyError" in each.detail for each in inspect(configured()))
    monkeypatch.setattr("daemon.inspection.machine.requires", lambda _name: ["torch==2.13.0"])
    bad(versions(configured()), "packages", "torch is 1.0.0, hippod was made with 2.13.0")


def test_too_little_memory(configured: Configured, monkeypatch: pytest.MonkeyPatch) -> None:
    assert named(memory(configured()), "memory").status == "ok"
    monkeypatch.setattr("daemon.inspection.machine.NEEDED", {"hash": 1 << 50})
    bad(memory(configured()), "memory", "GiB of swap", "more memory")


def test_enough_open_files(configured: Configured) -> None:
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 8192:
        pytest.skip("this machine has too few")
    assert named(files(configured()), "open files").status == "ok"


# Folders.


def test_a_network_drive_that_is_not_polled(tmp_path: Path) -> None:
    folder = tmp_path / "drive"
    folder.mkdir()
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 0:20 / / rw shared:1 - ext4 /dev/sda1 rw\n"
        f"40 22 0:33 / {folder} rw,relatime shared:5 - nfs4 server:/export rw,vers=4.2\n"
        f"41 22 0:34 / {folder}-other rw - cifs //server/share rw\n"
    )
    assert (file_system(folder, mounts), file_system(tmp_path, mounts)) == ("nfs4", "ext4")
    bad(drive(folder, False, mounts), f"drive {folder}", "nfs4", "polling = true", status="warn")
    assert named(drive(folder, True, mounts), f"drive {folder}").status == "ok"
    assert list(drive(tmp_path, False, mounts)) == []
    assert file_system(tmp_path, tmp_path / "absent") == ""


def test_hard_links_that_the_kernel_does_not_guard(tmp_path: Path) -> None:
    setting = tmp_path / "protected_hardlinks"
    setting.write_text("0\n")
    bad(hard_links(setting), "hard links", "sysctl", status="warn")
    setting.write_text("1\n")
    assert list(hard_links(setting)) == []


# The encoder, the model's server, brokers.


def test_an_encoder_that_is_not_on_this_machine(configured: Configured, tmp_path: Path) -> None:
    empty = tmp_path / "model"
    empty.mkdir()
    library = {"backend": "sentence-transformers"}
    bad(encoder(configured(encoder={**library, "model": str(empty)})), "encoder model", "safetensors")
    bad(encoder(configured(encoder={**library, "model": "no-one/has-this"})), "encoder model", "not on this machine")
    assert named(encoder(configured(encoder=library)), "encoder model").status == "ok"
    away = {"backend": "openai", "model": "m", "base_url": "http://127.0.0.1:1/v1"}
    bad(encoder(configured(encoder=away)), "encoder model", "does not answer", "[encoder] base_url")


def test_a_model_server_is_asked_for_real(configured: Configured) -> None:
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


def test_a_broker_that_cannot_be_reached(configured: Configured) -> None:
    config = configured(kafka=[{"brokers": ["127.0.0.1:1"], "topics": ["news"]}])
    bad(kafka(config), "kafka news", "127.0.0.1:1", "brokers")
    with socket.create_server(("127.0.0.1", 0)) as broker:
        threading.Thread(target=broker.accept, daemon=True).start()
        up = configured(kafka=[{"brokers": [f"127.0.0.1:{broker.getsockname()[1]}"], "topics": ["news"]}])
        assert named(kafka(up), "kafka news").status == "ok"


# Through the door.


def test_hippod_prints_what_it_finds_and_permissions_apply(tmp_path: Path) -> None:
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
    bad(iter(found), "store directory", "cannot be written", "chown")
    bad(iter(found), "open files", "only 300 open files", "LimitNOFILE", status="warn")
    assert not (closed / "store").exists()
