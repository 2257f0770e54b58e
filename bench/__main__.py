"""`make bench`, or `python -m bench [SECTION …]`: measures, prints Markdown tables, and writes JSON to bench/results/.

A section is a module in a folder of `bench.sections` (`quality`, `cost`, `faults`) with `run(results: dict) -> str`, which
fills `results` with its measurements and returns Markdown. Figures are ratios and distributions of one run; the output names
the machine. `results["violations"]` has a sentence for each violated condition that must hold on every machine (no times).
Violations are printed below the section, and the exit code is 1. `--page` also writes the tables to
docs/explanation/benchmarks.md.
"""

import argparse
import importlib
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

from bench.support.results_page import write_section

SECTIONS = {
    "startup": "cost",
    "path": "cost",
    "folder": "cost",
    "beside_bulk": "cost",
    "retrieval": "quality",
    "continual": "quality",
    "extractor_eval": "quality",
    "growth": "cost",
    "crashes": "faults",
    "histories": "faults",
    "kafka": "cost",
    "fleet": "faults",
    "hubs": "cost",
    "scopes": "cost",
    "as_of": "cost",
    "million": "cost",
    "manuals": "quality",
    "languages": "quality",
    "html_content": "quality",
    "readers": "quality",
    "weak_matches": "quality",
    "poison": "quality",
    "models": "cost",
    "fewer_calls": "quality",
    "answers": "quality",
    "gpu": "cost",
    "api": "faults",
    "fuzz": "faults",
    "soak": "faults",
    "drives": "faults",
    "working_memory": "cost",
    "ask": "cost",
    "page": "cost",
}
"""The folder of each section, in running order."""

HERE = Path(__file__).resolve().parent


def machine() -> dict[str, Any]:
    """Returns a description of the machine that was measured."""
    return {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "load_at_start": os.getloadavg()[0],
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measures.")
    parser.add_argument("names", nargs="*", metavar="SECTION", help="one of the sections; all where none is named")
    parser.add_argument("--count", type=int, help="histories: how many")
    parser.add_argument("--seed", type=int, help="histories: of the first script")
    parser.add_argument(
        "--simulate", action="store_true", default=None, help="fleet: 100 million articles, by this rate"
    )
    parser.add_argument("--page", action="store_true", help="write the tables into docs/explanation/benchmarks.md")
    given = parser.parse_args(arguments)
    names: list[str] = given.names
    owners = {"count": "histories", "seed": "histories", "simulate": "fleet"}
    options = {name: getattr(given, name) for name in owners if getattr(given, name) is not None}
    for name in options:
        if names != [owners[name]]:
            parser.error(f"--{name} is an option of the section {owners[name]} alone")
    present = [name for name, group in SECTIONS.items() if (HERE / "sections" / group / f"{name}.py").exists()]
    unknown = [name for name in names if name not in present]
    if unknown:
        print(f"no section {', '.join(unknown)}; there are: {', '.join(present)}", file=sys.stderr)
        return 2
    folder = HERE / "results"
    folder.mkdir(exist_ok=True)
    code = 0
    for name in names or present:
        results: dict[str, Any] = {"section": name, "machine": machine(), "options": options}
        began = time.perf_counter()
        print(f"## {name}\n", flush=True)
        tables = importlib.import_module(f"bench.sections.{SECTIONS[name]}.{name}").run(results)
        print(tables, flush=True)
        if given.page:
            write_section(name, tables, results["machine"]["time"][:10])
        if violations := results.setdefault("violations", []):
            code = 1
            print("\n**Does not hold:**\n\n" + "\n".join(f"- {each}" for each in violations), flush=True)
        results["took_s"] = round(time.perf_counter() - began, 1)
        path = folder / f"{name}.json"
        path.write_text(json.dumps(results, indent=2) + "\n")
        print(f"\n{path.relative_to(HERE.parent)}, {results['took_s']} s\n", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
