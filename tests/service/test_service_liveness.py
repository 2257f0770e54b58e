"""What counts as moving: a part at a time, in this process."""

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from daemon.api.errors import NotReady
from daemon.api.ports import Queries, Transfer
from daemon.contract import QueryRequest
from daemon.liveness import BUSY_S, Liveness, Probe, Thread
from daemon.services.later import Later, Opening
from daemon.services.queries import QueryService
from memory.encoder.hashing import HashEncoder
from memory.retrieval import RetrievalSettings
from store.store import Store
from tests.e2e.running import until


class Worker:
    """A thread at one step of its work, which it does until told to end."""

    def __init__(self, work: Any) -> None:
        self.step: object | None = ("write", 1)
        self.part = Thread("commit", "worker-of-the-test", lambda: self.step)
        self._thread = threading.Thread(target=work, name="worker-of-the-test", daemon=True)

    def __enter__(self) -> "Worker":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join(60)


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="the system does not tell a thread's time")
def test_a_thread_moves_while_it_rests_begins_a_step_or_computes() -> None:
    let_go, end = threading.Event(), threading.Event()

    def work() -> None:
        let_go.wait(60)
        while not end.is_set():
            pass

    with Worker(work) as worker:
        part = worker.part
        clock = iter(range(1, 1000))
        # Its start still shows; then it waits in the same step, and nothing does.
        until(lambda: (now := next(clock)) > part.moved_at(now), "it has come to rest")
        stood = part.moved_at(999.0)
        assert stood < 999.0
        assert any("work" in place for place in part.at())
        worker.step = ("write", 2)
        assert part.moved_at(1000.0) == 1000.0
        assert part.moved_at(1100.0) == 1000.0
        worker.step = None
        assert part.moved_at(1200.0) == 1200.0
        worker.step = ("compute", 3)
        assert part.moved_at(1300.0) == 1300.0
        assert part.moved_at(1400.0) == 1300.0
        let_go.set()
        until(lambda: part.moved_at(2000.0) == 2000.0, "its time on the processor shows")
        used = part._ticks()
        until(lambda: part._ticks() > used, "it goes on")
        assert part.moved_at(1300.0 + BUSY_S) == 2000.0, "in circles, by now"
        worker.step = ("compute", 4)
        assert part.moved_at(1310.0 + BUSY_S) == 1310.0 + BUSY_S
        end.set()


def test_query_threads_that_all_hang_are_found(tmp_path: Path) -> None:
    hold, inside = threading.Event(), threading.Semaphore(0)

    def settings() -> RetrievalSettings:
        """Is asked in the thread of the query."""
        inside.release()
        hold.wait(60)
        return RetrievalSettings()

    async def run() -> None:
        encoder = HashEncoder(64)
        with Store(tmp_path, encoder.identity) as store:
            service = QueryService(store, encoder, settings, lambda: "dense")
            probe = Probe("queries", service.moves, 0.01)
            liveness = Liveness([probe], 0.5)
            asking = asyncio.create_task(probe.run())
            await service.moves()
            queries = [asyncio.create_task(service.query(QueryRequest(query=f"q{n}", mode="dense"))) for n in range(2)]
            assert await asyncio.to_thread(inside.acquire, timeout=60)
            assert await asyncio.to_thread(inside.acquire, timeout=60)
            async with asyncio.timeout(60):
                while [stuck.part for stuck in liveness.stuck()] != ["queries"]:
                    await asyncio.sleep(0.05)
            hold.set()
            await asyncio.gather(*queries)
            async with asyncio.timeout(60):
                while liveness.stuck():
                    await asyncio.sleep(0.05)
            asking.cancel()
            service.close()

    asyncio.run(run())


class Real:
    async def query(self, request: str) -> str:
        return f"answer to {request}"

    async def export(self) -> Any:
        yield b"one"
        yield b"two"


def test_calls_that_come_early_wait_and_are_passed_on() -> None:
    async def run() -> None:
        opening = Opening()
        queries, transfer = Later(opening, Queries), Later(opening, Transfer)

        async def export() -> list[bytes]:
            return [chunk async for chunk in transfer.export()]

        early = [asyncio.create_task(queries.query("x")), asyncio.create_task(export())]
        await asyncio.sleep(0)
        queries.become(Real())
        transfer.become(Real())
        assert not any(task.done() for task in early)
        opening.finished()
        assert await asyncio.gather(*early) == ["answer to x", [b"one", b"two"]]
        assert await queries.query("y") == "answer to y"

    asyncio.run(run())


@pytest.mark.parametrize(("give_up", "said"), [(True, "stops before it was ready"), (False, "try again in a moment")])
def test_calls_that_wait_in_vain_are_told(give_up: bool, said: str) -> None:
    async def run() -> None:
        opening = Opening(wait_s=60.0 if give_up else 0.01)
        waiting = asyncio.create_task(Later(opening, Queries).query("x"))
        await asyncio.sleep(0)
        if give_up:
            opening.given_up()
        with pytest.raises(NotReady, match=said):
            await waiting

    asyncio.run(run())
