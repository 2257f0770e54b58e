"""Kills a process that works on a store, again and again, and counts what does not hold afterwards.

`HIPPOD_BENCH_CRASHES` says how many times (200); `HIPPOD_BENCH_EXAMPLES` how many random histories the stateful test takes
(20,000; it is what `tests/store/test_order_independence.py` runs fewer of).
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.crash.crashing import Crashes

ROOT = Path(__file__).parents[1]


def run(results: dict[str, Any]) -> str:
    count = int(os.environ.get("HIPPOD_BENCH_CRASHES", "200"))
    failures: list[str] = []
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="hippod-crashes-") as place:
        crashes = Crashes(Path(place, "store"), seed=int(began))
        for _ in range(count):
            try:
                crashes.crash(longest_s=1.5)
            except AssertionError as error:
                failures.append(str(error)[:1000])
                break
        results["kills"] = {"kills": count, "commits": crashes.done, "failures": failures}
    took = time.perf_counter() - began
    examples = os.environ.get("HIPPOD_BENCH_EXAMPLES", "20000")
    began = time.perf_counter()
    command = [sys.executable, "-m", "pytest", "-q", "--timeout", "0", "tests/store/test_order_independence.py"]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "HIPPOD_EXAMPLES": examples}, capture_output=True, text=True, check=False
    )
    results["histories"] = {"examples": int(examples), "passed": done.returncode == 0, "output": done.stdout[-2000:]}
    return "\n".join(
        [
            "| | |",
            "| --- | --- |",
            f"| kills -9 of a working process | {count} |",
            f"| commits acknowledged and found again | {crashes.done} |",
            f"| failures | {len(failures)} {failures[0] if failures else ''} |",
            f"| seconds | {took:.0f} |",
            f"| random histories compared with the oracle | {int(examples):,} |",
            f"| all equal | {'yes' if done.returncode == 0 else 'no'} |",
            f"| seconds | {time.perf_counter() - began:.0f} |",
        ]
    )
