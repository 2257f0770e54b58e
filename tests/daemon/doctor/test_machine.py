"""What needs no configuration: Python, the clock; and a check that fails itself, which ends no other."""

import os
import time
from pathlib import Path

import pytest

from daemon import doctor
from daemon.doctor import inspect
from daemon.doctor.machine import clock, python


def test_old_python_and_wrong_clock_are_reported() -> None:
    assert [python(version).status for version in ((3, 10), (3, 11), (3, 14))] == ["fail", "ok", "ok"]
    assert [clock(now, 1_000_000.0, "that").status for now in (0.0, 2_000_000.0)] == ["warn", "ok"]
    assert "before the last commit" in clock(0.0, time.time(), "the last commit").detail


@pytest.mark.daemon
@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), PermissionError(13, "Permission denied", "/x")])
def test_check_that_raises_becomes_a_warning_and_other_checks_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    def broken(*_: object) -> None:
        raise error

    file = tmp_path / "config.toml"
    file.write_text(f'[store]\npath = "{tmp_path}/store"\n[encoder]\nbackend = "hash"\n[[folder]]\npath = "drive"\n')
    (tmp_path / "drive").mkdir()
    monkeypatch.setenv("HOME", os.fspath(tmp_path))
    for name in ("clock", "directory_permissions"):
        monkeypatch.setattr(doctor, name, broken)
    monkeypatch.setattr("daemon.sources.folder_checks.inotify", broken)
    findings = {each.name: each for each in inspect(file)}
    names = ("clock", "configuration directory", "inotify")
    assert {findings[name].status for name in names} == {"warn"}
    assert all(findings[name].hint for name in names)
    assert {findings[name].status for name in ("python", "configuration", "store", "disk")} == {"ok"}
