"""Fixtures of hippoctl's tests: a scripted daemon, and hippoctl connected to it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.scripted_daemon import Here, Scripted, Shell, serving

ROOT = Path(__file__).parents[2]


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    with serving() as daemon:
        yield daemon


@pytest.fixture
def hippoctl(tmp_path: Path, scripted: Scripted) -> Shell:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("HIPPOD_", "XDG_"))}
    unset = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM", "PYTHONPATH")
    environ = {key: value for key, value in kept.items() if key not in unset}
    own = {"PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "HIPPOD_SOCKET": str(scripted.socket), "LC_ALL": "C.UTF-8"}
    return Shell(tmp_path, environ | own)


@pytest.fixture
def here(hippoctl: Shell, monkeypatch: pytest.MonkeyPatch) -> Here:
    """Like `hippoctl`, but without a separate process for each command: for tests that do not concern processes."""
    monkeypatch.chdir(hippoctl.cwd)
    for key in set(os.environ) - set(hippoctl.environ):
        monkeypatch.delenv(key)
    for key, value in hippoctl.environ.items():
        monkeypatch.setenv(key, value)
    return Here(hippoctl.cwd, hippoctl.environ)
