"""Progress of long work (share, rate, remaining time) for `status` and for commands that wait."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from daemon.contract.status import Progress
from daemon.pipeline.backpressure import Burst

RATE_WINDOW_S = 60.0
"""Period over which the rate is measured; shorter if the work or its present step began later."""
SAMPLE_INTERVAL_S = 1.0


class LongTask:
    """Measures the progress of one task. `update` may be called from any thread, `progress` from one only."""

    def __init__(self, name: str, unit: str, began: float | None = None) -> None:
        self.name = name
        self.unit = unit
        self._began = time.monotonic() if began is None else began
        self._step: str | None = None
        self._done = 0
        self._total: int | None = None
        self._samples = deque([(self._began, 0)])

    def update(self, step: str | None, done: int, total: int | None) -> None:
        """Sets the progress. `total` is None if unknown. `done` begins at 0 in each step."""
        if step != self._step or done < self._done:
            self._samples = deque([(time.monotonic(), done)])
        self._step, self._done, self._total = step, done, total

    def progress(self, now: float) -> Progress:
        done, total, samples = self._done, self._total, self._samples
        since, before = samples[0]
        rate = (done - before) / (now - since) if now > since and done > before else None
        if now - samples[-1][0] >= SAMPLE_INTERVAL_S:
            samples.append((now, done))
            while len(samples) > 2 and now - samples[1][0] >= RATE_WINDOW_S:
                samples.popleft()
        return Progress(
            task=self.name,
            step=self._step,
            unit=self.unit,
            done=done,
            total=total,
            share=round(min(done / total, 1.0), 4) if total else None,
            rate=None if rate is None else round(rate, 2),
            left_s=None if rate is None or total is None else round(max(total - done, 0) / rate, 1),
            took_s=round(now - self._began, 1),
        )


class WorkQueue(Protocol):
    """Waiting work; `burst` counts the work done since the queue was last empty."""

    @property
    def burst(self) -> Burst: ...

    def __len__(self) -> int: ...


class ProgressBoard:
    """All tasks of the daemon that take long. Call `current` on the event loop."""

    def __init__(self, intake: WorkQueue, extraction_queue: WorkQueue) -> None:
        self._listed = [("index", "documents", intake), ("extract", "passages", extraction_queue)]
        self._queues: dict[str, tuple[float, LongTask]] = {}
        self._running: list[tuple[LongTask, Callable[[LongTask], None]]] = []

    def list_queue(self, name: str, unit: str, queue: WorkQueue) -> None:
        """Lists `queue` as a task whenever it is not empty."""
        self._listed.append((name, unit, queue))

    @contextmanager
    def running(
        self, name: str, unit: str, refresh: Callable[[LongTask], None] = lambda _task: None
    ) -> Iterator[LongTask]:
        """Lists a task while the `with` block runs. `refresh` updates the task before each report."""
        entry = (LongTask(name, unit), refresh)
        self._running.append(entry)
        try:
            yield entry[0]
        finally:
            self._running.remove(entry)

    def current(self) -> list[Progress]:
        now = time.monotonic()
        tasks = [self._queue(name, unit, queue.burst, len(queue)) for name, unit, queue in self._listed]
        for task, refresh in self._running:
            refresh(task)
            tasks.append(task)
        return [task.progress(now) for task in tasks if task is not None]

    def _queue(self, name: str, unit: str, burst: Burst, waiting: int) -> LongTask | None:
        """Returns the task of emptying a queue; None if the queue is empty."""
        if not waiting:
            self._queues.pop(name, None)
            return None
        if name not in self._queues or self._queues[name][0] != burst.began:
            self._queues[name] = (burst.began, LongTask(name, unit, burst.began))
        task = self._queues[name][1]
        task.update(None, burst.done, burst.done + waiting)
        return task
