"""A hundred thousand hostile inputs: configuration, JSON documents, JSON lines, files of all formats, OpenIE files, Kafka
values and queries, nearly valid and broken. No input may end the process or take more than a second of processor time.

`HIPPOD_BENCH_FUZZ` is the number of inputs (100,000), `HIPPOD_BENCH_FUZZ_SEED` their seed (by default the day's number, so that
each day tries other inputs). Failing inputs, and each target's slowest input, are kept under bench/results/fuzz/.
"""

import os
import shutil
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.support.data import RESULTS
from bench.support.tables import table
from tests.fuzz.running import LIMIT_S, fuzz

INPUTS = 100_000
KEPT = RESULTS / "fuzz"


def run(results: dict[str, Any]) -> str:
    inputs = int(os.environ.get("HIPPOD_BENCH_FUZZ", str(INPUTS)))
    number = int(os.environ.get("HIPPOD_BENCH_FUZZ_SEED", str(int(time.time() // 86400))))
    folder = Path(tempfile.mkdtemp(prefix="hippod-bench-"))
    began = time.perf_counter()
    try:
        found = fuzz(folder, inputs, number, patience_s=6 * 3_600.0)
        shutil.rmtree(KEPT, ignore_errors=True)
        KEPT.mkdir(parents=True)
        for kept in (*folder.glob("slowest-*"), *folder.glob("found")):
            (shutil.copytree if kept.is_dir() else shutil.copyfile)(kept, KEPT / kept.name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    results["fuzz"] = {
        "seed": number,
        "inputs": sum(each.inputs for each in found),
        "failed": sum(each.failed for each in found),
        "limit_s": LIMIT_S,
        "took_s": round(time.perf_counter() - began, 1),
        "targets": [asdict(each) for each in found],
    }
    results["violations"] = [f"{each.name}: {each.failed:,} inputs failed" for each in found if each.failed]
    rows = [(each.name, f"{each.inputs:,}", each.failed, f"{each.slowest_s * 1000:.0f}") for each in found]
    failures = [f"- {each.name}: {failure}" for each in found for failure in sorted(set(each.failures.values()))[:5]]
    return "\n\n".join(
        [
            f"seed {number}; the slowest inputs and those that failed are in `bench/results/fuzz/`",
            table(("target", "inputs", "failed", "slowest, ms of processor time"), rows),
            *failures,
        ]
    )
