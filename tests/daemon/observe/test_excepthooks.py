"""What hippod says when something fails that nobody foresaw, or when it cannot start: an event each, without content."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.real_hippod import clean_environment, write_config

ROOT = Path(__file__).parents[3]
CANARY = "Zirkonvogel"
"""Stands for a document's text in an exception's message."""

FAILING = """
import asyncio, gc, sys, threading
import daemon.main, daemon.app.lifecycle

CANARY = sys.argv.pop()

def fail():
    raise ValueError(CANARY)

class Guarded:
    def __del__(self):
        fail()

async def run(*_):
    async def work():
        fail()
    task = asyncio.create_task(work(), name="reading")
    await asyncio.sleep(0.05)
    del task
    gc.collect()
    asyncio.get_running_loop().call_soon(fail)
    thread = threading.Thread(target=fail, name="folder")
    thread.start()
    thread.join()
    Guarded()
    await asyncio.sleep(0.05)
    fail()

daemon.app.lifecycle.run = run
daemon.main.main()
"""
"""A hippod whose one life is to fail in every way that nothing waits for."""


def hippod(home: Path, *arguments: str, journal: bool = False) -> tuple[int, str]:
    """The exit code and what stood on stderr, which is the journal's, or a file."""
    with (home / "stderr").open("w+b") as stderr:
        status = os.fstat(stderr.fileno())
        also = {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"} if journal else {}
        environ = clean_environment(home) | also
        done = subprocess.run(
            [sys.executable, *arguments], env=environ, cwd=home, stdout=subprocess.DEVNULL, stderr=stderr, timeout=90
        )
    return done.returncode, (home / "stderr").read_text()


@pytest.mark.process
def test_uncaught_error_is_logged_with_type_and_place_but_no_message(tmp_path: Path) -> None:
    config = write_config(
        tmp_path / "hippod.toml", {"store": {"path": str(tmp_path / "store")}, "api": {"socket": str(tmp_path / "s")}}
    )
    code, said = hippod(tmp_path, "-c", FAILING, "--config", str(config), CANARY)
    assert code == 1
    events = [json.loads(line) for line in said.splitlines()]
    assert [(event["event"], event.get("part")) for event in events] == [
        ("uncaught_error", "task reading"),
        ("uncaught_error", "thread folder"),
        ("uncaught_error", "Guarded.__del__"),
        ("uncaught_error", "event loop"),
        ("ended_by_error", None),
    ]
    assert all("ValueError at <string>:" in event["error"] for event in events)
    assert all("in fail" in event["exception"] for event in events)
    assert CANARY not in said


@pytest.mark.daemon
def test_refused_configuration_is_one_error_line_in_the_journal(tmp_path: Path) -> None:
    config = write_config(tmp_path / "bad.toml", {"graph": {"synonym_max": 0}, "store": {"pth": "x"}})
    for journal in (True, False):
        code, said = hippod(tmp_path, "-m", "daemon.main", "--config", str(config), journal=journal)
        assert code == 2
        assert "synonym_max" in said and "pth" in said
        lines = said.splitlines()
        assert (len(lines) == 1 and lines[0].startswith("<3>configuration_refused: ")) if journal else len(lines) > 1, (
            said
        )
