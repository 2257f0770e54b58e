"""The watchdog's definition of progress, one part at a time, in this process."""

import asyncio
import os
import threading
from pathlib import Path
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from daemon.contract.query import Mode, QueryRequest
from daemon.pipeline.pipeline import Pipeline
from daemon.runtime.service_manager import Notifier
from daemon.runtime.watchdog import BUSY_STEP_LIMIT_S, PipelineEnded, ProbeCheck, ThreadCheck, stalls, watch
from daemon.services.query import QueryService
from memory.encoder.hashing import HashEncoder
from memory.retrieval.settings import RetrievalSettings
from store.store import Store
from tests.e2e.real_hippod import until


class Worker:
    """A thread at one step of its work until told to end."""

    def __init__(self, work: Any) -> None:
        self.step: object | None = ("write", 1)
        self.part = ThreadCheck("commit", "worker-of-the-test", lambda: self.step)
        self._thread = threading.Thread(target=work, name="worker-of-the-test", daemon=True)

    def __enter__(self) -> "Worker":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join(60)


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="the system does not tell a thread's time")
def test_thread_progress_includes_rest_new_steps_and_limited_computation() -> None:
    let_go, end = threading.Event(), threading.Event()

    def work() -> None:
        let_go.wait(60)
        while not end.is_set():
            pass

    with Worker(work) as worker:
        part = worker.part
        clock = iter(range(1, 1000))
        # Its start is still visible; then it waits in the same step without progress.
        until(lambda: (now := next(clock)) > part.last_progress(now), "it has come to rest")
        stood = part.last_progress(999.0)
        assert stood < 999.0
        assert any("work" in place for place in part.stack())
        worker.step = ("write", 2)
        assert part.last_progress(1000.0) == 1000.0
        assert part.last_progress(1100.0) == 1000.0
        worker.step = None
        assert part.last_progress(1200.0) == 1200.0
        worker.step = ("compute", 3)
        assert part.last_progress(1300.0) == 1300.0
        assert part.last_progress(1400.0) == 1300.0
        let_go.set()
        until(lambda: part.last_progress(2000.0) == 2000.0, "its time on the processor shows")
        used = part._cpu_ticks()
        until(lambda: part._cpu_ticks() > used, "it goes on")
        assert part.last_progress(1300.0 + BUSY_STEP_LIMIT_S) == 2000.0, "in circles, by now"
        worker.step = ("compute", 4)
        assert part.last_progress(1310.0 + BUSY_STEP_LIMIT_S) == 1310.0 + BUSY_STEP_LIMIT_S
        end.set()


def test_watchdog_detects_that_all_query_threads_hang(tmp_path: Path) -> None:
    hold, inside = threading.Event(), threading.Semaphore(0)

    def settings() -> RetrievalSettings:
        """Called in the query's thread."""
        inside.release()
        hold.wait(60)
        return RetrievalSettings()

    async def run() -> None:
        encoder = HashEncoder(64)
        with Store(tmp_path, encoder.identity) as store:
            service = QueryService(store, encoder, settings, lambda: "dense")
            probe = ProbeCheck("queries", service.moves, 0.01)
            asking = asyncio.create_task(probe.run())
            await service.moves()
            queries = [
                asyncio.create_task(service.query(QueryRequest(query=f"q{n}", mode=Mode("dense")))) for n in range(2)
            ]
            assert await asyncio.to_thread(inside.acquire, timeout=60)
            assert await asyncio.to_thread(inside.acquire, timeout=60)
            async with asyncio.timeout(60):
                while [stall.part for stall in stalls([probe], 0.5)] != ["queries"]:
                    await asyncio.sleep(0.05)
            hold.set()
            await asyncio.gather(*queries)
            async with asyncio.timeout(60):
                while stalls([probe], 0.5):
                    await asyncio.sleep(0.05)
            asking.cancel()
            service.close()

    asyncio.run(run())


def test_error_that_ended_a_pipeline_task_is_logged_and_raised() -> None:
    async def faulty() -> None:
        raise KeyError("000000000001.jsonl")

    async def run() -> None:
        ended, stop = asyncio.create_task(faulty(), name="commit"), asyncio.create_task(asyncio.sleep(3600, True))
        await asyncio.wait([ended])
        try:
            await watch(stop, cast("Pipeline", None), lambda: [ended], [], Notifier(), lambda: "")
        finally:
            stop.cancel()

    with capture_logs() as logged, pytest.raises(PipelineEnded, match="commit") as raised:
        asyncio.run(run())
    assert isinstance(raised.value.__cause__, KeyError)
    assert [(line["event"], line["task"]) for line in logged] == [("pipeline_ended", "commit")]
