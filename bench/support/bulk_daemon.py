"""A real daemon for loading a whole corpus."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from memory.encoder.packaged_model import MINILM
from tests.e2e.real_hippod import Daemon, clean_environment

BULK_S = 3_600.0
ENCODER = os.environ.get("HIPPOD_BENCH_ENCODER", MINILM.names[0])
"""Packaged encoder of the benchmarks that do not choose one."""


def bulk_daemon(home: Path, model: str = ENCODER, **sections: Any) -> Daemon:
    """Returns a daemon with a packaged encoder and a time limit of `BULK_S` for its requests."""
    daemon = Daemon(home, encoder={"backend": "sentence-transformers", "model": model}, **sections)
    daemon.http.timeout = BULK_S
    return daemon


def ctl(daemon: Daemon, *arguments: str | Path, timeout_s: float | None = BULK_S) -> dict[str, Any]:
    """Runs hippoctl and returns its output. `timeout_s` None: no limit."""
    command = daemon.command("--json", *arguments)
    done = subprocess.run(command, env=clean_environment(daemon.home), capture_output=True, timeout=timeout_s)
    if done.returncode:
        raise AssertionError(f"hippoctl {arguments[0]} exited with {done.returncode}: {done.stderr.decode()}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
