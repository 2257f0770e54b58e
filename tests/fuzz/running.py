"""Runs inputs through targets in a separate process, and records the results.

Time is processor time, so a busy machine causes no false alarms. Each input is written to a file before it is tried, which
identifies an input that ends the process or blocks it for `STUCK_S`.
"""

import json
import os
import subprocess
import sys
import time
import traceback
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import psutil
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.e2e.real_hippod import ROOT, clean_environment
from tests.fuzz.inputs import broken

LIMIT_S = 1.0
"""Processor seconds that one input may take."""
STUCK_S = 60.0
BROKEN = 6
"""Number of broken versions that are tried in addition to each input from hypothesis."""
KEPT = 10
"""Inputs that are kept for each kind of failure."""


@dataclass
class Fuzzed:
    """The results of one target: number of inputs, processor time of the slowest, and the files of failing inputs."""

    name: str
    inputs: int = 0
    slowest_s: float = 0.0
    slowest: str = ""
    failed: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    """By input file: the failure."""


def fuzz(
    folder: Path, inputs: int, number: int, names: list[str] | None = None, patience_s: float = 3_600.0
) -> list[Fuzzed]:
    """Runs `inputs` in total, by shares, made from the seed `number`, in a child process; `names`: only these targets."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "tests.fuzz.running", str(folder), str(inputs), str(number), *(names or [])]
    with (folder / "log").open("wb") as log:
        child = subprocess.Popen(
            command, cwd=ROOT, env=clean_environment(folder), stdout=subprocess.PIPE, stderr=log, start_new_session=True
        )
        deadline = time.monotonic() + patience_s
        trying = folder / "trying"
        while True:
            try:
                out, _ = child.communicate(timeout=2.0)
                break
            except subprocess.TimeoutExpired:
                if (trying.exists() and time.time() - trying.stat().st_mtime > STUCK_S) or time.monotonic() > deadline:
                    child.kill()
    found = [Fuzzed(**json.loads(line)) for line in out.decode().splitlines() if line.startswith("{")]
    if child.returncode:
        lost = Fuzzed("process", inputs=1, failed=1)
        why = (folder / "log").read_text("utf-8", "replace")[-3000:]
        lost.failures[_keep(folder, "process", trying.read_bytes() if trying.exists() else b"")] = (
            f"the process ended with {child.returncode}: {why}"
        )
        found.append(lost)
    return found


def _keep(folder: Path, name: str, data: bytes) -> str:
    kept = folder / "found" / name
    kept.mkdir(parents=True, exist_ok=True)
    file = kept / f"{len(list(kept.iterdir())):03}"
    file.write_bytes(data)
    return str(file)


def _clock(pid: int | None) -> float:
    """Returns processor seconds of this process or another (the latter in hundredths)."""
    if pid is None:
        return time.process_time()
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def _run(folder: Path, name: str, target: Any, wanted: int, number: int) -> Fuzzed:
    found = Fuzzed(name)
    seen: Counter[str] = Counter()
    trying = os.open(folder / "trying", os.O_RDWR | os.O_CREAT)

    def several(whole: bytes) -> None:
        one(whole)
        chosen = Random(whole)
        for _ in range(BROKEN):
            one(broken(whole, chosen))

    def one(data: bytes) -> None:
        if found.inputs >= wanted:
            return
        found.inputs += 1
        os.ftruncate(trying, 0)
        os.pwrite(trying, data, 0)
        began = _clock(target.elsewhere)
        try:
            target.run(data)
            told = ""
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            told = f"{type(error).__name__} at {frames[-1].filename}:{frames[-1].lineno}: {str(error)[:300]}"
            key = told.partition(": ")[0]
        took = _clock(target.elsewhere) - began
        if took > found.slowest_s:
            found.slowest_s = took
            (folder / f"slowest-{name}").write_bytes(data)
            found.slowest = str(folder / f"slowest-{name}")
        if took > LIMIT_S and not told:
            told = key = f"took {took:.2f} s of processor time"
            key = "slow"
        if told:
            seen[key] += 1
            found.failed += 1
            if seen[key] <= KEPT:
                found.failures[_keep(folder, name, data)] = told

    again = 0
    while found.inputs < wanted:
        tried = settings(
            max_examples=(wanted - found.inputs) // (1 + BROKEN) + 1,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        before = found.inputs
        seed(number + again)(tried(given(target.strategy)(several)))()
        again += 1
        assert found.inputs > before, f"no more inputs for {name}"
    os.close(trying)
    return found


def main(folder: Path, inputs: int, number: int, names: list[str]) -> None:
    from tests.fuzz.targets import targets

    with targets(folder / "targets") as known:
        for name in names or known:
            found = _run(folder, name, known[name], max(int(inputs * known[name].share), 1), number)
            print(json.dumps(asdict(found)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
