"""The cleanup that still happens if a process ends without shutting down its interpreter."""

import subprocess
import sys

import pytest

SCRIPT = """
import atexit, threading, time
from daemon.runtime.signals_and_exit import QuickExit

class Last:
    def __del__(self):
        print("taken to pieces")

kept = Last()
ending = QuickExit()
atexit.register(print, "registered")
threading.Thread(target=lambda: (time.sleep(0.2), print("the thread's end"))).start()
{end}
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("end", "code", "taken_to_pieces"),
    [("ending.code = 3", 3, False), ("raise SystemExit(4)", 4, True), ("1 / 0", 1, True)],
)
def test_quick_exit_runs_threads_and_exit_handlers_and_keeps_the_exit_code(
    end: str, code: int, taken_to_pieces: bool
) -> None:
    # A pipe is written when it is flushed: the last output must arrive.
    done = subprocess.run([sys.executable, "-c", SCRIPT.format(end=end)], capture_output=True, text=True)
    said = done.stdout.splitlines()
    assert said == ["the thread's end", "registered", *(["taken to pieces"] if taken_to_pieces else [])]
    assert done.returncode == code
    assert ("ZeroDivisionError" in done.stderr) == ("1 / 0" in end)
