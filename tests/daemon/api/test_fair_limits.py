"""One client never takes a whole limit, and its share is free as soon as it disconnects."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.api.access.client import EVERYONE, OPERATOR, Client, ClientRule, Right, identity_of
from daemon.api.event_hub import EventHub
from daemon.api.middleware.peers import Peer
from daemon.api.middleware.request_limits import ConcurrencyLimit, FairShares
from daemon.api.request_parsing import BodyMemory
from daemon.api.server import ApiServer
from daemon.api.settings import ApiLimits, ApiSettings
from daemon.contract.http.routes import Route
from daemon.errors import Busy
from tests.daemon.api.harness import PATIENCE_S, Memory, api_server, loop_in_thread, socket_folder, until

LIMITS = st.integers(1, 40)
SHARES = st.floats(0.05, 1.0)


def fill(limit: ConcurrencyLimit, client: str, slots: contextlib.ExitStack) -> int:
    """Takes slots until one is refused; returns their number."""
    for taken in range(1000):
        try:
            slots.enter_context(limit.slot(client))
        except Busy as busy:
            assert busy.retry_after_s
            return taken
    raise AssertionError("nothing was refused")


@given(LIMITS)
def test_client_at_its_share_leaves_slots_for_other_clients(limit: int) -> None:
    slots = ConcurrencyLimit(limit, "tests", 0.5)
    with contextlib.ExitStack() as held:
        assert fill(slots, "one", held) == max(1, limit // 2)
        if limit > 1:
            assert fill(slots, "other", held) >= 1
    with slots.slot("one"):
        pass


def test_client_share_of_1_lets_one_client_take_all_slots() -> None:
    with contextlib.ExitStack() as held:
        assert fill(ConcurrencyLimit(7, "tests", 1.0), "one", held) == 7


def test_refusal_names_the_limit_of_the_client_or_of_all_clients() -> None:
    slots = ConcurrencyLimit(4, "tests", 0.5)
    with contextlib.ExitStack() as held:
        fill(slots, "one", held)
        with pytest.raises(Busy, match="client_share") as own, slots.slot("one"):
            pass
        assert own.value.reason == "tests of one client"
        while slots._shares.has_room(1):
            held.enter_context(slots.slot(f"{slots._shares.total}"))
        with pytest.raises(Busy, match="4 tests are already") as all_taken, slots.slot("last"):
            pass
        assert all_taken.value.reason == "tests"


@given(LIMITS, SHARES, st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 10), st.booleans()), max_size=60))
def test_shares_are_never_exceeded(limit: int, share: float, steps: list[tuple[str, int, bool]]) -> None:
    shares = FairShares(limit, share)
    for client, count, gives_back in steps:
        own = shares.units_of(client)
        if gives_back:
            shares.release(client, min(count, own))
        elif shares.fits(client, count, first=not own):
            shares.take(client, count)
            assert not own or shares.units_of(client) <= share * limit + 1e-9
        assert 0 <= shares.total <= limit
        assert shares.total == sum(shares.units_of(each) for each in "abc")


STEPS = st.lists(st.tuples(st.sampled_from(["ask", "leave", "cancel", "pass"]), st.integers(0, 5)), max_size=50)


@given(LIMITS, SHARES, STEPS)
def test_a_slot_is_released_wherever_its_request_is_cancelled(
    limit: int, share: float, steps: list[tuple[str, int]]
) -> None:
    """Requests wait in turn, take a slot, release it, or are cancelled between any two steps of the event loop."""

    async def scenario() -> None:
        slots = ConcurrencyLimit(limit, "tests", share)
        requests: list[tuple[asyncio.Task[None], asyncio.Event]] = []
        inside = 0

        async def request(client: str, over: asyncio.Event) -> None:
            nonlocal inside
            async with slots.slot_in_turn(client, 100.0):
                inside += 1
                try:
                    await over.wait()
                finally:
                    inside -= 1

        for step, which in steps:
            if step == "ask":
                over = asyncio.Event()
                requests.append((asyncio.create_task(request("abc"[which % 3], over)), over))
            elif step == "pass":
                await asyncio.sleep(0)
            elif requests:
                task, over = requests[which % len(requests)]
                if step == "leave":
                    over.set()
                else:
                    task.cancel()
            assert inside <= slots._shares.total <= limit
        for _, over in requests:
            over.set()
        await asyncio.gather(*(task for task, _ in requests), return_exceptions=True)
        assert slots._shares.total == 0

    asyncio.run(scenario())


def test_queued_request_of_a_client_at_its_share_does_not_block_others() -> None:
    async def scenario() -> None:
        slots = ConcurrencyLimit(4, "tests", 0.5)
        with contextlib.ExitStack() as held:
            fill(slots, "one", held)
            waiting = asyncio.create_task(_turn(slots, "one"))
            await asyncio.sleep(0)
            async with asyncio.timeout(10):
                await _turn(slots, "other")
            assert not waiting.done()
        await waiting

    asyncio.run(scenario())


async def _turn(slots: ConcurrencyLimit, client: str) -> None:
    async with slots.slot_in_turn(client, 100.0):
        pass


def test_the_bodies_of_one_client_leave_room_for_another() -> None:
    memory = BodyMemory(100, 0.5)
    with memory.reservation("one") as first, memory.reservation("one") as second, memory.reservation("other") as third:
        first.take(30)
        with pytest.raises(Busy, match="of this client"):
            second.take(30)
        second.take(20)
        third.take(50)  # its only body, so it may take all free bytes
        with pytest.raises(Busy, match="Too many large requests arrive"):
            third.take(1)


def test_single_body_of_a_client_may_use_the_whole_body_memory() -> None:
    memory = BodyMemory(100, 0.1)
    with memory.reservation("one") as body:
        body.take(100)
    with memory.reservation("one") as again:
        again.take(100)


def scope(peer: Peer, client: Client | None, token: bool = False) -> dict[str, Any]:
    headers = [(b"authorization", b"Bearer x")] if token else []
    return {"type": "http", "headers": headers, "state": {"peer": peer, "client": client}}


def test_client_identity_is_its_name_its_user_or_its_address() -> None:
    named = Client("hr", None, frozenset(Right))
    here, there, own = Peer("unix", pid=1, uid=7), Peer("tcp", address="10.0.0.1"), Peer("unix", pid=os.getpid(), uid=7)
    assert {identity_of(scope(peer, named)) for peer in (here, there, own)} == {"client hr"}
    assert identity_of(scope(here, EVERYONE)) == identity_of(scope(here, EVERYONE, token=True)) == "uid 7"
    assert identity_of(scope(there, EVERYONE, token=True)) == identity_of(scope(own, EVERYONE, token=True))
    assert identity_of(scope(there, EVERYONE, token=True)) == identity_of(scope(here, OPERATOR, token=True))
    assert identity_of(scope(there, None)) == "10.0.0.1"


@pytest.fixture
def two_agents(tmp_path: Path) -> Iterator[tuple[Memory, Callable[..., httpx2.Response]]]:
    """Yields a server whose requests come from its own process with two clients' tokens, like those of the MCP server."""
    rules = []
    for name in ("one", "other"):
        file = tmp_path / name
        file.write_text(f"the-token-of-{name}-0123456789")
        rules.append(ClientRule(Client(name, None, frozenset(Right)), token_file=file))
    memory = Memory()
    with socket_folder() as folder, loop_in_thread() as run:
        settings = ApiSettings(
            folder / "s", clients=tuple(rules), limits=ApiLimits(concurrent_queries=4, requests_per_s=30.0)
        )

        async def make() -> ApiServer:
            return api_server(memory, EventHub(), settings)

        server = run(make())
        run(server.start())
        transport = httpx2.HTTPTransport(uds=str(folder / "s"))
        with httpx2.Client(transport=transport, base_url="http://hippod", timeout=PATIENCE_S) as http:

            def ask(name: str, query: str = "lamp") -> httpx2.Response:
                headers = {"authorization": f"Bearer the-token-of-{name}-0123456789"}
                return http.post(Route.QUERY, json={"query": query}, headers=headers)

            try:
                yield memory, ask
            finally:
                memory.released.set()
                run(server.stop(5.0))


Agents = tuple[Memory, Callable[..., httpx2.Response]]


def test_mcp_agents_have_separate_shares_of_the_query_limit(two_agents: Agents) -> None:
    memory, ask = two_agents
    with ThreadPoolExecutor(2) as pool:
        held = [pool.submit(ask, "one", "hold") for _ in range(2)]
        until(lambda: memory.queries_inside == 2, "one agent holds its share")
        assert (ask("one").status_code, ask("other").status_code) == (503, 200)
        memory.released.set()
        assert {each.result().status_code for each in held} == {200}
    assert ask("one").status_code == 200


def test_mcp_agents_have_separate_request_rates(two_agents: Agents) -> None:
    _, ask = two_agents
    for _ in range(1000):
        if ask("one").status_code == 429:
            break
    else:
        raise AssertionError("nothing was refused")
    assert ask("other").status_code == 200
