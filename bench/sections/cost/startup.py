"""The running time of hippoctl, compared with a Python that does nothing.

Each command runs in its own process, alternating with `python -c pass`, so that other work on the machine affects all equally.
A scripted daemon answers `status` and `query` at once, so the time is hippoctl's own. The first ratio compares minimum
processor times (user and system), the second ratio median wall times.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.support.tables import table
from tests.cli.sample_answers import QUERY, STATUS
from tests.cli.scripted_daemon import serving

ROUNDS = 15
HIPPOCTL = Path(sys.executable).with_name("hippoctl")
COMPLETE = {"_HIPPOCTL_COMPLETE": "bash_complete"}
COMMANDS: dict[str, tuple[list[str], dict[str, str]]] = {
    "python -c pass": ([sys.executable, "-c", "pass"], {}),
    "python -c 'import click'": ([sys.executable, "-c", "import click"], {}),
    "hippoctl --version": ([str(HIPPOCTL), "--version"], {}),
    "hippoctl --help": ([str(HIPPOCTL), "--help"], {}),
    "a command's name, completed": ([str(HIPPOCTL)], COMPLETE | {"COMP_WORDS": "hippoctl st", "COMP_CWORD": "1"}),
    "an option, completed": ([str(HIPPOCTL)], COMPLETE | {"COMP_WORDS": "hippoctl query --m", "COMP_CWORD": "2"}),
    "hippoctl status": ([str(HIPPOCTL), "status"], {}),
    "hippoctl query": ([str(HIPPOCTL), "query", "who built the rain gauge?"], {}),
}


def _run(command: list[str], environ: dict[str, str]) -> tuple[float, float]:
    """Returns milliseconds of processor and wall time."""
    began = time.perf_counter()
    process = subprocess.Popen(command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, code, used = os.wait4(process.pid, 0)
    took = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(code)
    assert process.returncode == 0, command
    return 1000 * (used.ru_utime + used.ru_stime), 1000 * took


def run(results: dict[str, Any]) -> str:
    """Fills `results["startup"]`: by command `processor_ms`, `clock_ms` and their ratios to `python -c pass`."""
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    with serving() as daemon, tempfile.TemporaryDirectory(prefix="hippod-bench-") as compiled:
        daemon.answers |= {"GET /v1/status": STATUS, "POST /v1/query": QUERY}
        # Python may write compiled files, as for an installed program.
        own = {"HIPPOD_SOCKET": str(daemon.socket), "PYTHONPYCACHEPREFIX": compiled}
        environ = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"} | own
        for at in range(ROUNDS + 1):
            for name, (command, more) in COMMANDS.items():
                times = _run(command, environ | more)
                if at:  # the first round compiles
                    measured[name].append(times)
    minima = {name: min(processor for processor, _ in times) for name, times in measured.items()}
    clock = {name: statistics.median(took for _, took in times) for name, times in measured.items()}
    base = "python -c pass"
    results["startup"] = {
        name: {
            "processor_ms": round(minima[name], 1),
            "processor_ratio": round(minima[name] / minima[base], 2),
            "clock_ms": round(clock[name], 1),
            "clock_ratio": round(clock[name] / clock[base], 2),
        }
        for name in COMMANDS
    }
    rows = [
        (name, *(f"{value} {'ms' if key.endswith('_ms') else 'x'}" for key, value in row.items()))
        for name, row in results["startup"].items()
    ]
    return table(("command", "processor, minimum", "of Python", "clock, median", "of Python"), rows)
