"""Under systemd each line is one JSON object: a refused configuration, what libraries print, an abort's stacks."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.process
ROOT = Path(__file__).parents[3]

PRINTS = """
import sys
from daemon.observe.library_output import log_library_output
from daemon.observe.logs import setup
setup("debug")
log_library_output()
print("a library", end="")
print(" says this")
print("and this", file=sys.stderr)
"""
ABORTS = """
import os, sys, time, threading
from pathlib import Path
from daemon.observe.crash_stacks import keep_crash_stacks
from daemon.observe.logs import setup
setup("info")
keep_crash_stacks(Path(sys.argv[1]))
def where_it_hung():
    time.sleep(60)
if sys.argv[2] == "abort":
    threading.Thread(target=where_it_hung, daemon=True).start()
    time.sleep(0.2)
    os.abort()
"""


def journal_of(folder: Path, *command: str, code: int = 0) -> list[dict[str, Any]]:
    """The events of a process whose stderr is the journal's, as far as it can tell. Fails where a line is none."""
    path = folder / "journal"
    with path.open("wb") as journal:
        status = os.fstat(journal.fileno())
        environ = os.environ | {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}
        done = subprocess.run([sys.executable, *command], cwd=ROOT, env=environ, stdout=journal, stderr=journal)
    assert done.returncode == code, path.read_text()
    lines = path.read_text().splitlines()
    assert all(line[0] == "<" and line[2] == ">" for line in lines), lines
    return [json.loads(line[3:]) for line in lines]


@pytest.mark.daemon
def test_a_refused_configuration_is_one_event(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[api]\nnonsense = 1\n[store]\nmore = 2\n")
    [event] = journal_of(tmp_path, "-m", "daemon.main", "--config", str(tmp_path / "config.toml"), code=2)
    assert (event["event"], event["level"]) == ("configuration_refused", "error")
    assert "api.nonsense" in event["error"]
    assert "store.more" in event["error"]


def test_what_a_library_prints_is_an_event_a_line(tmp_path: Path) -> None:
    events = journal_of(tmp_path, "-c", PRINTS)
    assert [(event["event"], event["line"]) for event in events] == [
        ("library_output", "a library says this"),
        ("library_output", "and this"),
    ]


def test_the_stacks_of_an_abort_are_an_event_of_the_next_start(tmp_path: Path) -> None:
    assert journal_of(tmp_path, "-c", ABORTS, str(tmp_path), "abort", code=-6) == []
    [event] = journal_of(tmp_path, "-c", ABORTS, str(tmp_path), "")
    assert event["event"] == "aborted_before"
    assert any("where_it_hung" in line for line in event["stacks"])
    assert journal_of(tmp_path, "-c", ABORTS, str(tmp_path), "") == []
