"""Long work reports its share, its rate over the last minute, and the remaining time at that rate."""

import time
from types import SimpleNamespace
from typing import Any

from cli.render.status import progress_words
from daemon.pipeline.backpressure import Burst
from daemon.services.progress import LongTask, ProgressBoard


def test_rate_and_remaining_time_use_the_last_minute() -> None:
    task = LongTask("index", "documents", began=1000.0)
    assert task.progress(1000.0).rate is None
    task.update(None, 50, 1000)
    first = task.progress(1010.0)
    assert (first.share, first.rate, first.left_s, first.took_s) == (0.05, 5.0, 190.0, 10.0)
    for second in range(1, 121):
        task.update(None, 50 + 2 * second, 1000)
        now = task.progress(1010.0 + second)
    assert (now.done, now.total, now.rate) == (290, 1000, 2.0)  # the fast start is more than a minute ago
    assert now.left_s == 355.0
    assert progress_words(now) == "290 of 1,000 documents (29 %) · 2.0 a second · 5 min 55 s left"


def test_task_without_progress_has_no_remaining_time() -> None:
    task = LongTask("extract", "passages", began=1000.0)
    task.update(None, 0, 10)
    still = task.progress(1030.0)
    assert (still.share, still.rate, still.left_s) == (0.0, None, None)
    assert progress_words(still) == "0 of 10 passages (0 %) · 30 s"
    task.update(None, 3, None)
    assert task.progress(1030.0).share is None


def test_each_step_counts_from_its_own_beginning() -> None:
    task = LongTask("verify", "rows")
    task.update("reading the tables", 900, 1000)
    task.update("comparing exports", 0, 4000)
    began = time.monotonic()
    task.update("comparing exports", 400, 4000)
    step = task.progress(began + 10.0)
    assert (step.step, step.share) == ("comparing exports", 0.1)
    assert step.rate is not None and 39.0 < step.rate < 41.0


def test_a_queue_is_measured_since_it_was_last_empty() -> None:
    class Queue(SimpleNamespace):
        def __len__(self) -> int:
            return int(self.waiting)

    intake: Any = Queue(burst=Burst(time.monotonic() - 10.0, 30), waiting=70)
    unread: Any = Queue(burst=Burst(), waiting=0)
    board = ProgressBoard(intake, unread)
    [index] = board.current()
    assert (index.task, index.done, index.total, index.share) == ("index", 30, 100, 0.3)
    assert index.rate is not None and 2.5 < index.rate <= 3.0
    intake.waiting = 0
    assert board.current() == []
    with board.running("backup", "files") as task:
        task.update("copying", 1, 4)
        assert [(each.task, each.share) for each in board.current()] == [("backup", 0.25)]
    assert board.current() == []
