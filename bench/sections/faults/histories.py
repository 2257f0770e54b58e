"""Random histories of a store, with purges, starts and faults, each verified at its end (`tests.store.histories`).

`python -m bench histories --count 100000 --seed 7` runs 100,000 scripts in two processes. All scripts run even if some fail. A
failure is printed at once, with the seed of its script and the shortest script that still fails. A script is 200 histories
(`WORLDS`) interleaved in one store. Script number n of a run with seed s has the seed s + n, so `--count 1 --seed SEED` repeats
the script of a failure.
"""

import json
import logging
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any

import structlog

from bench.support.tables import figures_table
from tests.store.histories import failure, script, shortest

COUNT = 10_000
WORLDS = 200
PROCESSES = 2
SCRIPTS_PER_PROCESS = 25
"""A process is replaced after this number of scripts, which limits the effect of leaks and lingering threads."""

PROGRESS_S = 30.0


def run(results: dict[str, Any]) -> str:
    options = results.get("options", {})
    seed = options.get("seed", int(time.time()))
    scripts = -(-options.get("count", COUNT) // WORLDS)
    began, done, cpu_s, violations = time.perf_counter(), 0, 0.0, []
    shown = began
    print(f"seed {seed}, {scripts} scripts of {WORLDS} histories", flush=True)
    for each, problem, took_s in _results(range(seed, seed + scripts)):
        done += 1
        cpu_s += took_s
        if problem:
            violations.append(f"seed {each}: {problem}")
            print(violations[-1], flush=True)
        if time.perf_counter() - shown > PROGRESS_S or done == scripts:
            shown = time.perf_counter()
            print(
                f"{done * WORLDS} histories, {len(violations)} failures, {cpu_s:.0f} s of a processor, "
                f"{shown - began:.0f} s",
                flush=True,
            )
    results["violations"] = violations
    results["histories"] = {"seed": seed, "histories": done * WORLDS, "scripts": done, "cpu_s": round(cpu_s, 1)}
    return figures_table(
        "",
        {
            "seed": seed,
            "histories": done * WORLDS,
            "scripts that failed": len(violations),
            "seconds of a processor": f"{cpu_s:.0f}",
            "seconds": f"{time.perf_counter() - began:.0f}",
        },
    )


def _results(seeds: range) -> Iterator[tuple[int, str | None, float]]:
    """Yields (seed, violation or None, processor seconds) of each script as it ends."""
    left = list(seeds)
    while left:
        part, left = left[: PROCESSES * SCRIPTS_PER_PROCESS], left[PROCESSES * SCRIPTS_PER_PROCESS :]
        with ProcessPoolExecutor(PROCESSES, get_context("spawn"), initializer=_silence) as pool:
            waiting: dict[Future[tuple[str | None, float]], int] = {pool.submit(_one, seed): seed for seed in part}
            while waiting:
                ended, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in ended:
                    seed = waiting.pop(future)
                    try:
                        yield seed, *future.result()
                    except BrokenProcessPool as error:
                        # The process died with all its pending scripts. Running each script alone shows which one failed.
                        yield seed, f"the process ended: {error}", 0.0


def _silence() -> None:
    """Silences the store's log, because the faults are intended."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


def _one(seed: int) -> tuple[str | None, float]:
    began = time.process_time()
    steps = script(seed, WORLDS)
    problem = failure(steps)
    if problem:
        short = shortest(steps)
        again = failure(short)
        lines = "\n".join(f"    {json.dumps(step)}" for step in short)
        problem = f"{problem}\n  {'shortest script that fails' if again else 'did not fail again'}: {again}\n{lines}"
    return problem, time.process_time() - began
