"""Kills a process that works on a store, again and again, and counts violations afterwards.

`HIPPOD_BENCH_CRASHES` gives the number of kills (200), `HIPPOD_BENCH_SEED` the seed of their random moments (default: from the
clock). The seed is printed, so that a run can be split. `HIPPOD_BENCH_EXAMPLES` gives the number of random histories (20,000)
of the stateful test in `tests/store/test_order_independence.py`. If a number is 0, its part is omitted. Progress is printed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.support.data import ROOT
from bench.support.tables import table
from tests.crash.crashing import Crashes

SLICE = 1_000
"""Number of histories per process. Each slice has its own seed; a failure is reported when its slice ends."""

PROGRESS_KILLS = 20
"""Number of kills between two lines of progress."""


def run(results: dict[str, Any]) -> str:
    seed = int(os.environ.get("HIPPOD_BENCH_SEED", str(int(time.time()))))
    rows = [("seed", str(seed))]
    results["violations"] = []
    if count := int(os.environ.get("HIPPOD_BENCH_CRASHES", "200")):
        rows += _kills(count, seed, results)
    if examples := int(os.environ.get("HIPPOD_BENCH_EXAMPLES", "20000")):
        rows += _histories(examples, seed, results)
    results["seed"] = seed
    return table(("", ""), rows)


def _kills(count: int, seed: int, results: dict[str, Any]) -> list[tuple[str, str]]:
    failures: list[str] = []
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="hippod-crashes-") as place:
        crashes = Crashes(Path(place, "store"), seed)
        done = 0
        for done in range(1, count + 1):
            try:
                crashes.crash(longest_s=1.5)
            except AssertionError as error:
                kept = tempfile.mkdtemp(prefix="hippod-crashed-")
                shutil.copytree(crashes.folder, Path(kept, "store"))
                failures.append(f"kill {done}, the store is kept in {kept}: {str(error)[:1000]}")
                break
            if done % PROGRESS_KILLS == 0:
                print(f"{done} kills, {crashes.done} commits, {time.perf_counter() - began:.0f} s", flush=True)
    results["violations"] += failures
    results["kills"] = {"kills": done, "commits": crashes.done, "failures": failures}
    return [
        ("kills -9 of a working process", str(done)),
        ("commits acknowledged and found again", str(crashes.done)),
        ("failures", f"{len(failures)} {failures[0] if failures else ''}"),
        ("seconds", f"{time.perf_counter() - began:.0f}"),
    ]


def _histories(examples: int, seed: int, results: dict[str, Any]) -> list[tuple[str, str]]:
    began = time.perf_counter()
    command = [sys.executable, "-m", "pytest", "-q", "--timeout", "0", "tests/store/test_order_independence.py"]
    passed, output = 0, ""
    while passed < examples:
        part = min(SLICE, examples - passed)
        done = subprocess.run(
            [*command, f"--hypothesis-seed={seed + passed}"],
            cwd=ROOT,
            env={**os.environ, "HIPPOD_EXAMPLES": str(part)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            output = done.stdout[-4000:]
            print(output, flush=True)
            results["violations"].append(f"histories from seed {seed + passed} did not pass")
            break
        passed += part
        print(f"{passed} histories, {time.perf_counter() - began:.0f} s", flush=True)
    results["histories"] = {"examples": passed, "passed": passed == examples, "output": output}
    return [
        ("random histories that equal the oracle after each step", f"{passed:,} of {examples:,}"),
        ("all equal", "yes" if passed == examples else "**no**"),
        ("seconds", f"{time.perf_counter() - began:.0f}"),
    ]
