"""A check that hangs is reported, and delays neither the other findings nor the end of the process."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from daemon.config import Config
from daemon.contract.finding import Finding
from daemon.doctor import findings_within, inspect_config
from tests.e2e.real_hippod import clean_environment, write_config

NEVER_ENDS = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
from daemon import doctor
from daemon.main import main

def hangs(_config):
    with ThreadPoolExecutor(1) as pool:  # Python waits for a pool's threads before it ends
        yield from pool.submit(threading.Event().wait).result()

doctor.CHECKS, doctor.TIMEOUT_S = (hangs,), 0.1
main(["--config", sys.argv[1], "--inspect"])
"""


def test_findings_before_a_hang_and_of_other_checks_are_kept() -> None:
    release = Event()

    def hangs() -> Iterator[Finding]:
        yield Finding("drive", "ok", "is there")
        release.wait()

    def finds() -> Iterator[Finding]:
        yield Finding("other", "ok", "looked at")

    def fails() -> Iterator[Finding]:
        raise RuntimeError("no such thing")

    try:
        found = list(findings_within(0.2, [("hangs", hangs), ("finds", finds), ("fails", fails)]))
    finally:
        release.set()
    assert [(each.name, each.status) for each in found] == [
        ("drive", "ok"),
        ("hangs", "warn"),
        ("other", "ok"),
        ("fails", "warn"),
    ]
    assert "did not finish within 0.2 s" in found[1].detail
    assert found[1].hint


def test_every_check_has_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    release = Event()

    def hangs(*_: object) -> Iterator[Finding]:
        release.wait()
        yield from ()

    monkeypatch.setattr("daemon.doctor.CHECKS", (hangs,))
    monkeypatch.setattr("daemon.doctor.TIMEOUT_S", 0.1)
    monkeypatch.setattr("daemon.sources.folder_checks.inspect_folders", hangs)
    try:
        found = list(inspect_config(Config()))
    finally:
        release.set()
    assert {each.name for each in found if "did not finish" in each.detail} == {"hangs", "folder"}


@pytest.mark.daemon
def test_process_ends_despite_a_hanging_check(tmp_path: Path) -> None:
    config = write_config(tmp_path / "hippod.toml", {"encoder": {"backend": "hash"}})
    done = subprocess.run(
        [sys.executable, "-c", NEVER_ENDS, str(config)],
        env=clean_environment(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=90,
    )
    found = {each["name"]: each for each in json.loads(done.stdout)["findings"]}
    assert (done.returncode, found["hangs"]["status"]) == (0, "warn")
