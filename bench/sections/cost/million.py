"""A large memory on a small machine: queries, agreement with the exact computation, memory, starts and single changes.

Uses synthetic documents with vectors distributed like real ones (`bench.support.million.vectors`), 8.3 phrases and 24 edges a
passage. `HIPPOD_BENCH_SIZES` gives the passages (100000 by default). `HIPPOD_BENCH_FOLDER` keeps the stores, so that steps can
be run alone. `HIPPOD_BENCH_STEPS` selects steps from `STEPS`. `HIPPOD_BENCH_QUERIES` (1000) is the number of questions, and
`HIPPOD_BENCH_MODES` lists their modes. The step "scan" compares queries with ten triples a passage, without a store;
"while_adding" queries while 20 passages a second are added. Every step runs in its own process and is printed at once.
"""

import os
import tempfile
from pathlib import Path
from typing import Any

from bench.support.measuring import run_step
from bench.support.tables import figures_table

STEPS = (
    "vectors",
    "scan",
    "load",
    "query",
    "agree",
    "memory",
    "mutate",
    "while_adding",
    "as-of",
    "explain",
    "verify",
    "backup",
)
SCANNED_A_PASSAGE = 10
LEAST_AGREEMENT = 0.99
"""Minimum share of questions whose first five passages equal those of the exact computation."""
CHANGES = 100


def run(results: dict[str, Any]) -> str:
    steps = os.environ.get("HIPPOD_BENCH_STEPS", ",".join(STEPS)).split(",")
    questions = os.environ.get("HIPPOD_BENCH_QUERIES", "1000")
    violations: list[str] = []
    tables = []
    with tempfile.TemporaryDirectory(prefix="hippod-million-") as temporary:
        root = Path(os.environ.get("HIPPOD_BENCH_FOLDER", temporary))
        for size in os.environ.get("HIPPOD_BENCH_SIZES", "100000").split(","):
            folder = root / size
            folder.mkdir(parents=True, exist_ok=True)
            counts = {"scan": str(int(size) * SCANNED_A_PASSAGE), "load": size, "mutate": str(CHANGES)}
            found = {
                step: run_step("bench.support.million.steps", step, str(folder), counts.get(step, questions))
                for step in steps
            }
            results[size] = found
            violations += [
                f"{size} passages: the step {step} failed" for step in steps if f"{step}_failed" in found[step]
            ]
            for mode, each in found.get("agree", {}).items():
                if isinstance(each, dict) and each["same_five"] < LEAST_AGREEMENT * each["of"]:
                    violations.append(
                        f"{size} passages, {mode}: {each['same_five']} of {each['of']} have the same five"
                    )
            figures = {f"{step}: {name}": value for step, each in found.items() for name, value in each.items()}
            tables.append(figures_table(f"{int(size):,} passages", figures))
    results["violations"] = violations
    return "\n\n".join(tables)
