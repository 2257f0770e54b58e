"""Keeps hippod within `[store] memory_limit`: near the limit, work that could enlarge the memory waits."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import structlog

from daemon.contract.status import MemoryUse
from daemon.observe.resource_use import MemoryForecast, anonymous_bytes, shown
from daemon.pipeline.incoming.intake import Intake
from daemon.runtime.process_tuning import trim_heap

AUTO_SHARE = 0.8
"""Share of the machine's memory that `auto` allows. The remaining memory is for parsing processes, a second index during a
rebuild, and the page cache, without which mapped files are slow."""

PAUSE_SHARE, RESUME_SHARE = 0.95, 0.9
"""Shares of the limit at which the intake pauses and resumes. At `PAUSE_SHARE`, enough memory is left to commit
parsed work. `RESUME_SHARE` is lower, so that the end of a single query does not resume the intake."""

CHECK_INTERVAL_S = 1.0
TRIM_PAUSE_S = 30.0
"""Minimum interval between attempts to return freed memory to the system, which precede a pause."""

CGROUP_FILES = {"": ("memory.max", "memory.high"), "memory": ("memory.limit_in_bytes",)}
"""Files with memory limits, by controller in /proc/self/cgroup. The controller "" is cgroup version 2."""

log = structlog.get_logger()


def machine_bytes(proc: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> int:
    """Returns the memory available to this process: the machine's, or a lower limit of a control group that contains the
    process (of a service or container)."""
    found = int(psutil.virtual_memory().total)
    try:
        lines = proc.read_text().splitlines()
    except OSError:
        return found
    for line in lines:
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            top = root / controller
            place = top / path.lstrip("/")
            for folder in (place, *place.parents):
                if folder.is_relative_to(top):
                    found = min([found, *(_limit(folder / name) for name in CGROUP_FILES.get(controller, ()))])
    return found


def _limit(file: Path) -> int:
    try:
        return int(file.read_text())
    except (OSError, ValueError):  # no limit here, or "max"
        return 1 << 62


def limit_bytes(setting: int | str) -> int | None:
    """Returns `[store] memory_limit` in bytes; None for no limit."""
    if isinstance(setting, int):
        return setting
    return int(AUTO_SHARE * machine_bytes()) if setting == "auto" else None


class MemoryWatch:
    """Measures the used memory; `check` pauses and resumes the intake. Use on the event loop only."""

    def __init__(
        self,
        setting: Callable[[], int | str],
        before: int,
        passages: Callable[[], int],
        intake: Intake,
        held: Callable[[], int] = anonymous_bytes,
    ) -> None:
        """`setting` returns the present `[store] memory_limit`. `before` is the number of bytes used before the store was
        opened. `passages` returns the number of living passages. `held` returns the number of bytes used."""
        self._setting = setting
        self._before = before
        self._passages = passages
        self._intake = intake
        self._held = held
        self._forecast = MemoryForecast()
        self._trimmed = 0.0
        self.use = MemoryUse(used_bytes=0)
        """Memory use at the last check."""

    async def run(self) -> None:
        """Checks every second until cancelled."""
        while True:
            try:
                await self.check()
            except OSError as error:  # for example, no file descriptor is free
                log.warning("memory_unmeasured", error=error)
            await asyncio.sleep(CHECK_INTERVAL_S)

    async def check(self) -> None:
        limit = limit_bytes(self._setting())
        used = self._held()
        if limit is not None and used >= PAUSE_SHARE * limit and time.monotonic() - self._trimmed > TRIM_PAUSE_S:
            await asyncio.to_thread(trim_heap)
            self._trimmed = time.monotonic()
            used = self._held()
        pause_at = None if limit is None else int(PAUSE_SHARE * limit)
        use = self._forecast.use(used, pause_at, self._passages())
        self.use = use.model_copy(update={"limit_bytes": limit})
        if limit is None or used < RESUME_SHARE * limit:
            self._resume(used, limit)
        elif used >= PAUSE_SHARE * limit:
            self._pause(used, limit)

    def _pause(self, used: int, limit: int) -> None:
        if self._intake.paused is None:
            log.warning("memory_limit_reached", used=used, limit=limit, before_store=self._before)
        how = (
            f"hippod and its encoder take {shown(self._before)} without any passage: raise the limit"
            if self._before >= RESUME_SHARE * limit
            else "raise the limit, or remove documents, whose memory is free after [store] keep_versions"
        )
        self._intake.pause(
            f"Memory is short: {shown(used)} of {shown(limit)} are in use ([store] memory_limit); {how}."
        )

    def _resume(self, used: int, limit: int | None) -> None:
        if self._intake.paused is not None:
            log.info("memory_limit_left", used=used, limit=limit)
            self._intake.resume()
