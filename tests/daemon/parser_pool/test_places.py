"""The places of the pool alternate between sources, and a slow run gives up its place."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.parser_pool.places import ParsePlaces, PlaceKind, Run


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Parsers:
    """Runs that keep their place until they end or are killed. A killed run waits again as a slow one."""

    def __init__(self, size: int) -> None:
        self.clock = Clock()
        self.places = ParsePlaces(size, 400.0, 0.02, self.clock)  # a waiting run checks again after 20 ms
        self.killed: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}
        self.runs: dict[str, Run] = {}
        self.tasks: list[asyncio.Task[None]] = []

    def start(self, name: str, *, fresh: bool = False, slow: bool = False) -> None:
        """`name`: the source, and a number."""
        self._ends[name] = asyncio.Event()
        self.tasks.append(asyncio.create_task(self._run(name, fresh, slow)))

    async def _run(self, name: str, fresh: bool, slow: bool) -> None:
        source = name.rstrip("0123456789")
        async with self.places.place(source, fresh=fresh, slow=slow) as run:
            self.runs[name] = run
            run.kill = self._ends[name].set
            self.places.await_message(run)
            await self._ends[name].wait()
            del self.runs[name]
        if run.evicted:
            self.killed.append(name)
            self._ends[name] = asyncio.Event()
            await self._run(name, fresh, True)

    def end(self, name: str) -> None:
        self._ends[name].set()

    async def settle(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)

    async def reaches(self, *names: str) -> None:
        """Returns once exactly these runs have a place."""
        async with asyncio.timeout(30):
            while set(self.runs) != set(names):
                await asyncio.sleep(0.005)

    def kind(self, name: str) -> PlaceKind | None:
        return self.runs[name].kind

    async def close(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        assert self.places.running == []


def test_one_source_may_use_all_places() -> None:
    async def scenario() -> None:
        parsers = Parsers(2)
        for number in range(3):
            parsers.start(f"a{number}")
        await parsers.reaches("a0", "a1")
        parsers.end("a0")
        await parsers.reaches("a1", "a2")
        assert parsers.killed == []
        await parsers.close()

    asyncio.run(scenario())


def test_next_free_place_goes_to_a_source_without_one() -> None:
    async def scenario() -> None:
        parsers = Parsers(2)
        for name in ("a0", "a1", "a2", "b0"):
            parsers.start(name)
        await parsers.reaches("a0", "a1")
        parsers.end("a0")
        await parsers.reaches("a1", "b0")
        await parsers.close()

    asyncio.run(scenario())


def test_long_run_yields_its_place_and_each_source_has_one_slow_run() -> None:
    async def scenario() -> None:
        parsers = Parsers(2)
        for name in ("a0", "a1", "a2"):
            parsers.start(name)
        await parsers.reaches("a0", "a1")
        parsers.clock.now += 0.021
        parsers.start("b0")
        await parsers.reaches("a0", "b0")
        assert parsers.killed == ["a1"]
        assert parsers.kind("a0") is PlaceKind.SLOW  # it continues
        parsers.end("b0")
        await parsers.reaches("a0", "a2")  # a1 waits for a0
        parsers.end("a2")
        await parsers.settle()
        assert set(parsers.runs) == {"a0"}
        parsers.end("a0")
        await parsers.reaches("a1")
        assert parsers.kind("a1") is PlaceKind.SLOW
        await parsers.close()

    asyncio.run(scenario())


def test_slow_documents_leave_a_place_to_all_others() -> None:
    async def scenario() -> None:
        parsers = Parsers(2)
        for name in ("a0", "b0", "c0"):
            parsers.start(name, slow=True)
        await parsers.reaches("a0")
        parsers.start("d0")
        await parsers.reaches("a0", "d0")
        parsers.clock.now += 1000
        parsers.start("e0")
        await parsers.reaches("a0", "e0")
        assert parsers.killed == ["d0"]
        await parsers.close()

    asyncio.run(scenario())


def test_single_place_pool_runs_a_slow_document_in_an_extra_place() -> None:
    async def scenario() -> None:
        parsers = Parsers(1)
        parsers.start("a0")
        await parsers.reaches("a0")
        parsers.clock.now += 0.021
        parsers.start("b0")
        await parsers.reaches("a0", "b0")
        assert (parsers.killed, parsers.kind("a0")) == ([], PlaceKind.SLOW)
        await parsers.close()

    asyncio.run(scenario())


def test_fresh_document_gets_an_extra_place_if_bulk_uses_all() -> None:
    async def scenario() -> None:
        parsers = Parsers(1)
        for name in ("a0", "a1"):
            parsers.start(name)
        parsers.start("a2", fresh=True)
        parsers.start("a3", fresh=True)
        await parsers.reaches("a0", "a2")
        assert parsers.kind("a2") is PlaceKind.FRESH
        await parsers.close()

    asyncio.run(scenario())


def test_long_run_of_messages_gives_way_between_two_messages() -> None:
    async def scenario() -> None:
        clock = Clock()
        places = ParsePlaces(1, 60.0, clock=clock)
        order: list[str] = []
        async with AsyncExitStack() as stack:
            long = await stack.enter_async_context(places.place("a"))

            async def other() -> None:
                async with places.place("b"):
                    order.append("b")

            waiting = asyncio.create_task(other())
            await asyncio.sleep(0)
            await places.give_way(long)
            assert order == []  # it has only begun
            clock.now += 60.0
            await places.give_way(long)
            order.append("a")
            await waiting
        assert order == ["b", "a"]

    asyncio.run(scenario())


STEPS = st.lists(
    st.tuples(st.sampled_from(["start", "fresh", "slow", "end", "cancel", "later"]), st.integers(0, 3)), max_size=40
)


@pytest.mark.parametrize("size", [1, 2, 4])
@given(steps=STEPS)
def test_random_runs_never_exceed_the_places_or_one_slow_run_per_source(
    size: int, steps: list[tuple[str, int]]
) -> None:
    async def scenario() -> None:
        parsers = Parsers(size)
        for number, (step, which) in enumerate(steps):
            if step in ("start", "fresh", "slow"):
                parsers.start(f"{'abcd'[which]}{number}", fresh=step == "fresh", slow=step == "slow")
            elif step == "later":
                parsers.clock.now += 0.021
            elif step == "end" and parsers.runs:
                parsers.end(sorted(parsers.runs)[which % len(parsers.runs)])
            elif step == "cancel" and parsers.tasks:
                parsers.tasks[which % len(parsers.tasks)].cancel()
            await parsers.settle()
            running = parsers.places.running
            slow = [run.source for run in running if run.kind is PlaceKind.SLOW]
            ordinary = sum(run.kind is PlaceKind.ORDINARY for run in running)
            assert len(slow) == len(set(slow)) <= max(1, size - 1)
            assert ordinary + len(slow) <= max(size, 2 if slow else 1)
            assert sum(run.kind is PlaceKind.FRESH for run in running) <= 1
            if steps and not running:
                assert all(task.done() for task in parsers.tasks)  # nothing waits while places are free
        await parsers.close()

    asyncio.run(scenario())
