"""Growth of hippod's cost with the size of the memory: loads, single changes, queries, maintenance, memory and starts.

Uses synthetic documents with triples (`bench.support.synthetic_documents`) and the `hash` encoder, so that the store and the
walk are measured. Also measures single adds with the packaged encoder to the 1,890 passages of MuSiQue
(`bench.support.live_adds`), and phrases with hostile vectors (`bench.support.hostile_vectors`). `HIPPOD_BENCH_SIZES` lists
numbers of passages (2000,20000,100000). `HIPPOD_BENCH_COMMITS` (5000) is the number of one-passage commits compared with a
single build. `HIPPOD_BENCH_PARTS` lists the parts to measure (sizes,commits,crossover,live,hostile). Every step runs in its own
process, so that memory is measured separately; its result is printed at once. Seconds per passage are given in wall and in
processor time; other work on the machine hardly affects processor time.
"""

import os
import tempfile
from typing import Any

from bench.support.growth.thresholds import judge_all, violations
from bench.support.measuring import run_step
from bench.support.tables import shown, table

STEPS = "bench.support.growth.steps"
PARTS = ("sizes", "commits", "crossover", "live", "hostile")
HOSTILE = {"anywhere": 50_000, "equal": 50_000, "cone": 50_000, "groups": 10_000, "cones": 10_000}
"""Number of phrases of each set. `groups` and `cones` have as many edges as possible, which makes their commits slow."""


def run(results: dict[str, Any]) -> str:
    parts = os.environ.get("HIPPOD_BENCH_PARTS", ",".join(PARTS)).split(",")
    results["sizes"] = rows = _sizes_measured() if "sizes" in parts else []
    count = os.environ.get("HIPPOD_BENCH_COMMITS", "5000")
    if "commits" in parts and int(count):
        results["commits"] = run_step(STEPS, "commits", count)
    if "crossover" in parts:
        results["crossover"] = run_step(STEPS, "crossover", os.environ.get("HIPPOD_BENCH_PHRASES", "131072"))
    if "live" in parts:
        results["live"] = run_step(STEPS, "live")
    if "hostile" in parts:
        results["hostile"] = {name: _hostile(name, phrases) for name, phrases in HOSTILE.items()}
    results["must_hold"] = judged = judge_all(rows, results)
    results["violations"] = violations(rows, results)
    tables = [_sizes(rows), _others(results), _hostile_table(results), _verdicts(judged)]
    return "\n\n".join(filter(None, tables))


def _sizes_measured() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for size in os.environ.get("HIPPOD_BENCH_SIZES", "2000,20000,100000").split(","):
        row: dict[str, Any] = {"passages": int(size)}
        rows.append(row)
        with tempfile.TemporaryDirectory(prefix="hippod-growth-") as folder:
            for step in ("load", "ask", "daemon", "rebuild"):
                row |= run_step(STEPS, step, folder, size)
    return rows


def _hostile(name: str, phrases: int) -> dict[str, Any]:
    """Measures one set of vectors: fills a store, opens it from the tables alone, and removes half of the documents."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="hippod-hostile-") as folder:
        for step in ("fill", "rebuild", "halve"):
            found[step] = run_step("bench.support.hostile_vectors", step, name, str(phrases), folder)
    return found


def _sizes(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return ""
    names = list(dict.fromkeys(name for row in rows for name in row if name != "passages"))
    lines = [(name.replace("_", " "), *(shown(row.get(name, "")) for row in rows)) for name in names]
    return table(("", *(f"{row['passages']:,}" for row in rows)), lines)


def _others(results: dict[str, Any]) -> str:
    rows = [
        (f"{part}: {name.replace('_', ' ')}", shown(value))
        for part in ("commits", "crossover", "live")
        for name, value in results.get(part, {}).items()
    ]
    return table(("", ""), rows)


def _hostile_table(results: dict[str, Any]) -> str:
    rows = [(name, step, found) for name, steps in results.get("hostile", {}).items() for step, found in steps.items()]
    if not rows:
        return ""
    names = list(dict.fromkeys(name for _, _, found in rows for name in found))
    heads = ("set", "step", *(name.replace("_", " ") for name in names))
    return table(heads, [(each, step, *(found.get(name, "") for name in names)) for each, step, found in rows])


def _verdicts(judged: list[dict[str, Any]]) -> str:
    words = {True: "yes", False: "**no**", None: "not measured"}
    rows = [(one["what"], one["measured"], one["bound"], words[one["holds"]]) for one in judged]
    return table(("must hold", "measured", "bound", "holds"), rows)
