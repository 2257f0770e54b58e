"""Checks the API against its own description: schemathesis generates requests from `/openapi.json` of a real daemon.

Requests are valid or break one rule; each answer is compared with the description. `HIPPOD_BENCH_API` is the minimum number of
requests (5,000).
"""

import os
import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from bench.support.tables import table
from tests.daemon.api.conformance.schemathesis_run import check, served

PATIENCE_S = 3_600.0
FIRST = 60
"""Number of examples for each operation in the first round; operations with nothing to vary have fewer."""


def run(results: dict[str, Any]) -> str:
    wanted = int(os.environ.get("HIPPOD_BENCH_API", "5000"))
    home = Path(tempfile.mkdtemp(prefix="hippod-bench-"))
    answers: Counter[int] = Counter()
    failures: list[str] = []
    rounds = 0
    began = time.perf_counter()
    try:
        with served(home) as (daemon, address, known):
            while answers.total() < wanted:
                rounds += 1
                phases = "examples,coverage,fuzzing,stateful" if rounds == 1 else "fuzzing,stateful"
                options = ("--phases", phases, "--max-examples", str(FIRST * min(rounds, 8)), "--seed", str(rounds))
                report = check(daemon, address, known, *options, timeout_s=PATIENCE_S)
                answers.update(report.statuses())
                failures.extend(report.failures)
                if not report.requests:
                    raise RuntimeError(report.output)
            faults = len(daemon.events("request_failed"))
    finally:
        shutil.rmtree(home, ignore_errors=True)
    results["api"] = {
        "requests": answers.total(),
        "rounds": rounds,
        "took_s": round(time.perf_counter() - began, 1),
        "answers": {str(status): count for status, count in sorted(answers.items())},
        "not_as_documented": failures,
        "faults_logged": faults,
    }
    results["violations"] = violations(answers, failures, faults)
    counts = ", ".join(f"{count:,} × {status}" for status, count in sorted(answers.items()))
    shown = "".join(f"\n\n```text\n{failure}\n```" for failure in failures[:10])
    heads = ("requests", "not as documented", "faults in the daemon's log", "answers")
    return table(heads, [(f"{answers.total():,}", len(failures), faults, counts)]) + shown


def violations(answers: Counter[int], failures: list[str], faults: int) -> list[str]:
    """Returns violated conditions on `answers` (count by status). With a single client, the daemon must never be busy."""
    broken = [f"{count:,} answers of {status}" for status, count in sorted(answers.items()) if status >= 500]
    if failures:
        broken.append(f"{len(failures):,} answers are not as documented")
    if faults:
        broken.append(f"{faults:,} requests met a fault of the daemon's")
    return broken
