"""Under systemd each event is one entry of the journal: a refused configuration, what libraries print, an abort's stacks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process
ROOT = Path(__file__).parents[3]

NO_JOURNAL = """
from pathlib import Path
from daemon.observe import journal
journal.SOCKET = Path("/no/journal")
"""
PRINTS = f"""{NO_JOURNAL}
import sys
from daemon.observe.logs import log_library_output
from daemon.observe.logs import setup
setup("debug")
log_library_output()
print("a library", end="")
print(" says this")
print("and this", file=sys.stderr)
"""
ABORTS = f"""{NO_JOURNAL}
import os, sys, time, threading
from pathlib import Path
from daemon.observe.crashes import keep_crash_stacks
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


def journal_of(folder: Path, *command: str, code: int = 0) -> list[str]:
    """The messages of a process whose stderr is the journal's, as far as it can tell, and to whom no journal listens."""
    path = folder / "journal"
    with path.open("wb") as journal:
        status = os.fstat(journal.fileno())
        environ = os.environ | {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}
        done = subprocess.run([sys.executable, *command], cwd=ROOT, env=environ, stdout=journal, stderr=journal)
    assert done.returncode == code, path.read_text()
    lines = path.read_text().splitlines()
    assert all(line[0] == "<" and line[2] == ">" for line in lines), lines
    return [line[3:] for line in lines]


@pytest.mark.daemon
def test_a_refused_configuration_is_one_event(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[api]\nnonsense = 1\n[store]\nmore = 2\n")
    [line] = journal_of(tmp_path, "-m", "daemon.main", "--config", str(tmp_path / "config.toml"), code=2)
    assert line.startswith("configuration_refused: ")
    assert "api.nonsense" in line
    assert "store.more" in line


def test_each_line_that_a_library_prints_is_one_event(tmp_path: Path) -> None:
    assert journal_of(tmp_path, "-c", PRINTS) == [
        'library_output (line="a library says this")',
        'library_output (line="and this")',
    ]


def test_next_start_logs_the_stacks_of_an_abort_once(tmp_path: Path) -> None:
    assert journal_of(tmp_path, "-c", ABORTS, str(tmp_path), "abort", code=-6) == []
    [line] = journal_of(tmp_path, "-c", ABORTS, str(tmp_path), "")
    assert line.startswith("aborted_before (stacks=")
    assert "where_it_hung" in line
    assert journal_of(tmp_path, "-c", ABORTS, str(tmp_path), "") == []
