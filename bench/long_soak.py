"""`make soak`: two hours of use with faults, from a seed (`SOAK=short`: 20 minutes). Plots the resources over time.

The first phase adds documents. The second phase changes them and keeps their number constant. The third phase also kills and
upgrades the daemon repeatedly. The seed determines the operations and their order; their number depends on the machine. The run
fails after an error or a lost document, and if a resource grows by more than 1 % per hour while the number of documents is
constant.
"""

import argparse
import json
import random
import re
import shutil
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.__main__ import machine
from bench.support.soak.growth import growths
from bench.support.soak.load import FAULTS, GROWING, ORDINARY, Load
from bench.support.soak.plot import svg
from bench.support.soak.samples import Latencies, Sampler
from tests.e2e.real_hippod import Daemon

RESULTS = Path(__file__).resolve().parent / "results"
FILES = (60, 240)
"""Number of files before and after the first phase."""
SHARES = {"growing": 0.2, "constant": 0.55, "faults": 0.25}
"""Share of the time for each phase."""
WEIGHTS = {"growing": GROWING, "constant": ORDINARY, "faults": FAULTS}
SETTLE_SHARE = 0.15
"""Share of the constant phase before growth is measured, during which caches and pools fill up."""
CLIENTS, CLIENT_PAUSE_S, STEP_PAUSE_S = 3, 0.2, 0.1
GRAVE = re.compile(r'"level": "(error|critical)"')
FORGOTTEN = re.compile(r'"event": "document_failed".*"reason": "gone"')
"""Matches log lines that are no errors: a file may be deleted before it is parsed."""


def soak(home: Path, seed: int, minutes: float) -> tuple[Load, Sampler]:
    daemon = Daemon(
        home,
        preloaded=False,
        store={"path": str(home / "store"), "keep_versions": "2m"},
        schedule={"rescan": "30s", "compact": "5s", "snapshot": "20s", "retry": "2s"},
        openie={"reextract": "idle"},
    )
    latencies = Latencies()
    sampler = Sampler(daemon, latencies)
    try:
        load = Load(daemon, seed, FILES[0], sampler, latencies)
        daemon.http.timeout = 900.0
        daemon.launch().wait_ready(900.0)
        load.fill()
        load.check("at the start")
        sampler.start()
        try:
            with load.clients(CLIENTS, seed, CLIENT_PAUSE_S):
                for phase, share in SHARES.items():
                    _phase(load, sampler, phase, share * minutes * 60)
        finally:
            sampler.stop()
        load.check("at the end")
        if problems := daemon.ask("POST", "/v1/verify", json={})["problems"]:
            load.errors.append(f"verify: {problems[:3]}")
        lines = daemon.log_text().splitlines()
        load.errors += [f"log: {line[-600:]}" for line in lines if GRAVE.search(line) and not FORGOTTEN.search(line)]
        if (code := daemon.stop(900.0)) != 0:
            load.errors.append(f"stop: exit code {code}")
    finally:
        daemon.close()
    return load, sampler


def _phase(load: Load, sampler: Sampler, phase: str, duration_s: float) -> None:
    load.drive.files = FILES[1]
    if phase == "constant":
        load.check("before the constant phase")  # waits until all is committed
    sampler.phase = phase
    began = reported = sampler.elapsed_s
    while (passed := sampler.elapsed_s - began) < duration_s:
        if phase == "growing":
            load.drive.files = FILES[0] + round((FILES[1] - FILES[0]) * passed / duration_s)
        load.step(WEIGHTS[phase])
        while phase == "growing" and len(load.drive) < load.drive.files - 1:
            load.drive.change()
        time.sleep(STEP_PAUSE_S)
        if sampler.elapsed_s - reported > 60:
            reported = sampler.elapsed_s
            print(f"{reported / 60:.0f} min, {phase}: {dict(load.done)}, {len(load.errors)} errors", flush=True)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.long_soak")
    parser.add_argument("--minutes", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=None, help="repeats the operations of an earlier run")
    parser.add_argument("--plot", type=Path, default=RESULTS / "long_soak.svg", help="where the drawing goes")
    given = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(1_000_000) if given.seed is None else given.seed
    print(f"seed {seed}; to repeat: make soak SEED={seed}", flush=True)
    home = Path(tempfile.mkdtemp(prefix="hippod-soak-"))
    described = machine()
    try:
        load, sampler = soak(home, seed, given.minutes)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return report(load, sampler, given.plot, {"seed": seed, "minutes": given.minutes, "machine": described})


def report(load: Load, sampler: Sampler, plot: Path, run: dict[str, Any]) -> int:
    """Writes the plot and the measurements, prints the outcome, and returns the exit code."""
    constant = [each for each in sampler.samples if each.phase == "constant"]
    constant = constant[int(SETTLE_SHARE * len(constant)) :]
    grown = growths(constant)
    broken = [f"while the documents were constant, {each}" for each in grown if each.broken]
    if not grown:
        broken.append("the constant phase was too short to measure growth")
    RESULTS.mkdir(exist_ok=True)
    title = f"{run['minutes']:g} minutes, seed {run['seed']}, {load.done.total():,} operations. Dashed: a start of the daemon"
    plot.write_text(svg(sampler.samples, title))
    results = run | {
        "operations": dict(load.done),
        "growth": [asdict(each) for each in grown],
        "errors": load.errors,
        "samples": [asdict(each) for each in sampler.samples],
    }
    (RESULTS / "long_soak.json").write_text(json.dumps(results) + "\n")
    print(f"operations: {dict(load.done)}; {sampler.life} restarts; drawn in {plot}")
    for each in grown:
        print(f"  {each}")
    for problem in [*load.errors[:20], *broken]:
        print(f"FAILED: {problem}")
    return 1 if load.errors or broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
