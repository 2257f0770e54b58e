"""Growth of hippod's cost with the size of the memory: loads, single changes, queries, maintenance, memory and starts.

Uses synthetic documents with triples (`bench.support.synthetic_documents`) and the `hash` encoder, so that the store and the
walk are measured. Also measures single adds with the packaged encoder to the 1,890 passages of MuSiQue
(`bench.support.live_adds`), and phrases with hostile vectors (`bench.support.hostile_vectors`). `HIPPOD_BENCH_SIZES` lists
numbers of passages (2000,20000,100000). `HIPPOD_BENCH_COMMITS` (5000) is the number of one-passage commits that are compared
with a single build. `HIPPOD_BENCH_PARTS` lists the parts to measure (sizes,commits,crossover,live,hostile). Every step runs in
its own process, so that memory is measured separately; its result is printed at once. Seconds per passage are given in wall and
in processor time; other work on the machine hardly affects processor time.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

from bench.support.growth.thresholds import judge_all, violations

PARTS = ("sizes", "commits", "crossover", "live", "hostile")
HOSTILE = {"anywhere": 50_000, "equal": 50_000, "cone": 50_000, "groups": 10_000, "cones": 10_000}
"""Number of phrases of each set. `groups` and `cones` have as many edges as possible, which makes their commits slow."""


def run(results: dict[str, Any]) -> str:
    parts = os.environ.get("HIPPOD_BENCH_PARTS", ",".join(PARTS)).split(",")
    results["sizes"] = rows = _sizes_measured() if "sizes" in parts else []
    count = os.environ.get("HIPPOD_BENCH_COMMITS", "5000")
    if "commits" in parts and int(count):
        results["commits"] = _step("commits", count)
    if "crossover" in parts:
        results["crossover"] = _step("crossover", os.environ.get("HIPPOD_BENCH_PHRASES", "131072"))
    if "live" in parts:
        results["live"] = _step("live")
    if "hostile" in parts:
        results["hostile"] = {name: _hostile(name, phrases) for name, phrases in HOSTILE.items()}
    results["must_hold"] = judged = judge_all(rows, results)
    results["violations"] = violations(rows, results)
    tables = [_sizes(rows), _others(results), _hostile_table(results), _verdicts(judged)]
    return "\n\n".join(table for table in tables if table)


def _sizes_measured() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for size in os.environ.get("HIPPOD_BENCH_SIZES", "2000,20000,100000").split(","):
        row: dict[str, Any] = {"passages": int(size)}
        rows.append(row)
        with tempfile.TemporaryDirectory(prefix="hippod-growth-") as folder:
            for step in ("load", "ask", "daemon", "rebuild"):
                row |= _step(step, folder, size)
    return rows


def _hostile(name: str, phrases: int) -> dict[str, Any]:
    """Measures one set of vectors: fills a store, opens it from the tables alone, and removes half of the documents."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="hippod-hostile-") as folder:
        for step in ("fill", "rebuild", "halve"):
            found[step] = _step(step, name, str(phrases), folder, program="bench.support.hostile_vectors")
    return found


def _step(name: str, *arguments: str, program: str = "bench.support.growth.steps") -> dict[str, Any]:
    """Runs one step in a separate process and prints its result. A failing step returns its error."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", program, name, *arguments], stdout=subprocess.PIPE, text=True, check=False
    )
    found = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {f"{name}_failed": done.returncode}
    shown = " ".join(argument for argument in arguments if not argument.startswith("/"))
    print(f"{name} {shown} ({time.perf_counter() - began:.0f} s): {json.dumps(found)}", flush=True)
    return found


def _sizes(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return ""
    names = list(dict.fromkeys(name for row in rows for name in row if name != "passages"))
    lines = ["| | " + " | ".join(f"{row['passages']:,}" for row in rows) + " |", "| --- |" + " --- |" * len(rows)]
    lines += [
        f"| {name.replace('_', ' ')} | " + " | ".join(_shown(row.get(name, "")) for row in rows) + " |"
        for name in names
    ]
    return "\n".join(lines)


def _others(results: dict[str, Any]) -> str:
    lines = ["| | |", "| --- | --- |"]
    for part in ("commits", "crossover", "live"):
        lines += [
            f"| {part}: {name.replace('_', ' ')} | {_shown(value)} |" for name, value in results.get(part, {}).items()
        ]
    return "\n".join(lines)


def _hostile_table(results: dict[str, Any]) -> str:
    rows = [(name, step, found) for name, steps in results.get("hostile", {}).items() for step, found in steps.items()]
    if not rows:
        return ""
    names = list(dict.fromkeys(name for _, _, found in rows for name in found))
    lines = ["| set | step | " + " | ".join(name.replace("_", " ") for name in names) + " |"]
    lines.append("| --- | --- |" + " ---: |" * len(names))
    for each, step, found in rows:
        lines.append(f"| {each} | {step} | " + " | ".join(str(found.get(name, "")) for name in names) + " |")
    return "\n".join(lines)


def _verdicts(judged: list[dict[str, Any]]) -> str:
    words = {True: "yes", False: "**no**", None: "not measured"}
    lines = ["| must hold | measured | bound | holds |", "| --- | ---: | --- | --- |"]
    lines += [f"| {one['what']} | {one['measured']} | {one['bound']} | {words[one['holds']]} |" for one in judged]
    return "\n".join(lines)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {inner}" for name, inner in value.items())
    return " / ".join(map(str, value)) if isinstance(value, list) else str(value)
