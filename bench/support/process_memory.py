"""The memory of a daemon and its children over time."""

import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

SAMPLE_S = 0.5
POINTS = 12
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Sample:
    """Seconds since the beginning; resident memory of the daemon alone, and with its children, in MiB."""

    at_s: float
    daemon_mib: int
    all_mib: int


class MemoryOverTime:
    """Samples the process `pid` and its children twice a second inside the `with` block. Shared pages count for each
    process."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.samples: list[Sample] = []

    def _run(self) -> None:
        began = time.perf_counter()
        while True:
            try:
                own = self._process.memory_info().rss
                children = sum(_resident(child) for child in self._process.children(recursive=True))
            except psutil.NoSuchProcess:
                return
            self.samples.append(Sample(round(time.perf_counter() - began, 1), own // MIB, (own + children) // MIB))
            if self._done.wait(SAMPLE_S):
                return

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._done.set()
        self._thread.join()

    @property
    def points(self) -> list[Sample]:
        """Returns the highest sample of each of `POINTS` intervals of equal length."""
        stretch = -(-len(self.samples) // POINTS)
        parts = [self.samples[start : start + stretch] for start in range(0, len(self.samples), stretch or 1)]
        return [max(part, key=lambda sample: sample.all_mib) for part in parts]


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


def peak_mib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024
