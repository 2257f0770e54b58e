"""Progress of long work (share, rate, remaining time) for `status` and for commands that wait."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from daemon.contract.status import Progress
from daemon.pipeline.extraction.queue import ExtractionQueue
from daemon.pipeline.incoming.intake import Intake

RATE_WINDOW_S = 60.0
"""The rate is measured over the last minute, or since the work or its present step began."""
SAMPLE_INTERVAL_S = 1.0


class LongTask:
    """Measures one piece of long work. `update` may be called from any thread, `progress` from one only."""

    def __init__(self, name: str, unit: str, began: float | None = None) -> None:
        self.name = name
        self.unit = unit
        self._began = time.monotonic() if began is None else began
        self._step: str | None = None
        self._done = 0
        self._total: int | None = None
        self._samples = deque([(self._began, 0)])

    def update(self, step: str | None, done: int, total: int | None) -> None:
        """Sets the progress. `total` is None if unknown. Each step counts `done` from 0."""
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


class ProgressBoard:
    """All long work of the daemon. Call `current` on the event loop."""

    def __init__(self, intake: Intake, extraction_queue: ExtractionQueue) -> None:
        self._intake = intake
        self._extraction_queue = extraction_queue
        self._queues: dict[str, tuple[float, LongTask]] = {}
        self._running: list[tuple[LongTask, Callable[[LongTask], None]]] = []

    @contextmanager
    def running(
        self, name: str, unit: str, refresh: Callable[[LongTask], None] = lambda _task: None
    ) -> Iterator[LongTask]:
        """Lists the task while the `with` block runs. `refresh` is called before each report, to update the task."""
        entry = (LongTask(name, unit), refresh)
        self._running.append(entry)
        try:
            yield entry[0]
        finally:
            self._running.remove(entry)

    def current(self) -> list[Progress]:
        now = time.monotonic()
        tasks = [
            self._queue("index", "documents", self._intake.burst.began, self._intake.burst.done, len(self._intake)),
            self._queue(
                "extract",
                "passages",
                self._extraction_queue.burst.began,
                self._extraction_queue.burst.done,
                len(self._extraction_queue),
            ),
        ]
        for task, refresh in self._running:
            refresh(task)
            tasks.append(task)
        return [task.progress(now) for task in tasks if task is not None]

    def _queue(self, name: str, unit: str, began: float, done: int, waiting: int) -> LongTask | None:
        """Returns the task of working off a queue, None if the queue is empty."""
        if not waiting:
            self._queues.pop(name, None)
            return None
        if name not in self._queues or self._queues[name][0] != began:
            self._queues[name] = (began, LongTask(name, unit, began))
        task = self._queues[name][1]
        task.update(None, done, done + waiting)
        return task
