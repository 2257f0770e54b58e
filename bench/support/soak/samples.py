"""What a soak observes every few seconds: the daemon's resources, the store's size, and the latencies of the clients."""

import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from bench.support.measuring import mapped_files, status_kb
from tests.e2e.real_hippod import Daemon

PERIOD_S = 5.0


@dataclass(frozen=True)
class Sample:
    """One observation. `at`: seconds since the beginning; sizes in bytes; latencies in ms, None without requests.

    `anonymous` is the part of the resident memory that the kernel cannot drop. `descriptors` does not include the descriptors
    of mapped checkpoint files. `life` is the number of starts so far.
    """

    at: float
    phase: str
    life: int
    resident: int
    anonymous: int
    descriptors: int
    threads: int
    disk: int
    documents: int
    query_p50: float | None
    query_p95: float | None
    as_of_p50: float | None


@dataclass
class Latencies:
    """Durations of requests in ms since the last sample, by kind. Thread-safe."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    taken: dict[str, list[float]] = field(default_factory=dict)

    def add(self, kind: str, ms: float) -> None:
        with self.lock:
            self.taken.setdefault(kind, []).append(ms)

    def drain(self) -> dict[str, list[float]]:
        with self.lock:
            taken, self.taken = self.taken, {}
        return {kind: sorted(times) for kind, times in taken.items()}


class Sampler:
    """Samples in a thread until `stop`. `phase` is the name of the present phase. Hold `running` while no daemon runs."""

    def __init__(self, daemon: Daemon, latencies: Latencies) -> None:
        self._daemon = daemon
        self._latencies = latencies
        self._began = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="samples")
        self.running = threading.Lock()
        """Lock held during a sample, and while the daemon is stopped."""
        self.phase = ""
        self.life = 0
        self.samples: list[Sample] = []
        self._error: Exception | None = None

    def start(self) -> None:
        self._began = time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread. Raises the error that ended it earlier."""
        self._ended.set()
        self._thread.join()
        if self._error is not None:
            raise self._error

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._began

    def _run(self) -> None:
        try:
            while not self._ended.wait(PERIOD_S):
                with self.running:
                    if self._daemon.process is not None and self.phase:
                        self.samples.append(self._sample())
        except Exception as error:  # noqa: BLE001 - raised in `stop`
            self._error = error

    def _sample(self) -> Sample:
        assert self._daemon.process is not None
        process = psutil.Process(self._daemon.process.pid)
        times = self._latencies.drain()
        query, as_of = times.get("query", []), times.get("as of", [])
        return Sample(
            at=round(self.elapsed_s, 1),
            phase=self.phase,
            life=self.life,
            resident=process.memory_info().rss,
            anonymous=1024 * status_kb("RssAnon", process.pid),
            descriptors=process.num_fds() - mapped_files(process.pid),
            threads=process.num_threads(),
            disk=disk_bytes(self._daemon.store),
            documents=self._daemon.status()["documents"],
            query_p50=_share(query, 0.5),
            query_p95=_share(query, 0.95),
            as_of_p50=_share(as_of, 0.5),
        )


def _share(ascending: list[float], share: float) -> float | None:
    return round(ascending[int(share * (len(ascending) - 1))], 2) if ascending else None


def disk_bytes(folder: Path) -> int:
    """Returns the disk space that the files below `folder` occupy."""
    total = 0
    for place, _, names in os.walk(folder):  # leaves out a folder that is removed meanwhile
        for name in names:
            with suppress(FileNotFoundError):
                total += Path(place, name).lstat().st_blocks * 512
    return total
