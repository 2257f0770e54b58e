"""Many clients at once, as after a restart: early ones are answered, others are refused properly, no connection is reset."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from daemon.api.event_hub import EventHub
from daemon.api.middleware.request_limits import ConcurrencyLimit
from daemon.api.ports import StartupGate, StartupPorts
from daemon.api.server import ApiServer
from daemon.api.settings import ApiLimits, ApiSettings
from daemon.contract.status import DaemonState
from daemon.errors import Busy
from tests.daemon.api.harness import (
    PATIENCE_S,
    Memory,
    Served,
    loop_in_thread,
    memory_ports,
    read_one,
    served,
    socket_folder,
    until,
)

CONNECTIONS = 8


def query_bytes(text: str) -> bytes:
    body = b'{"query": "%s"}' % text.encode()
    head = b"POST /v1/query HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return head % len(body) + body


def status_of(plain: socket.socket) -> tuple[int, bool]:
    """Returns the answer's status, and whether it has Retry-After. Fails if the connection ends without an answer."""
    answer = read_one(plain)
    return int(answer.split()[1]), b"\r\nretry-after:" in answer.lower()


async def busy(seconds: float) -> None:
    """Blocks the event loop, as loading a model does occasionally."""
    time.sleep(seconds)


def connect_while_busy(
    run: Callable[[Any], Any], connect: Callable[[], socket.socket], count: int, text: str = "q{}"
) -> list[socket.socket]:
    """Opens connections that each send a query before any is accepted: the blocked loop receives them in one burst."""
    held = threading.Thread(target=run, args=(busy(0.5),))
    held.start()
    time.sleep(0.1)
    found = []
    for number in range(count):
        plain = connect()
        plain.sendall(query_bytes(text.format(number)))
        found.append(plain)
    held.join(PATIENCE_S)
    return found


def test_burst_of_long_requests_beyond_the_limit_gets_503_with_retry_after() -> None:
    with served(ApiLimits(client_share=1.0, connections=CONNECTIONS)) as api:
        waited = connect_while_busy(api.run, api.connect, 5 * CONNECTIONS, "hold")
        assert [status_of(plain) for plain in waited[CONNECTIONS:]] == [(503, True)] * 4 * CONNECTIONS
        api.memory.released.set()
        assert [status_of(plain) for plain in waited[:CONNECTIONS]] == [(200, False)] * CONNECTIONS


def test_burst_of_short_requests_resets_no_connection() -> None:
    with served(ApiLimits(client_share=1.0, connections=CONNECTIONS)) as api:
        waited = connect_while_busy(api.run, api.connect, 5 * CONNECTIONS)
        assert [status_of(plain)[0] for plain in waited[:CONNECTIONS]] == [200] * CONNECTIONS
        assert {status_of(plain) for plain in waited[CONNECTIONS:]} <= {(200, False), (503, True)}


def test_silent_connection_gets_503_when_closed_for_a_new_one() -> None:
    with served(ApiLimits(client_share=1.0, connections=2)) as api:
        silent = [api.connect() for _ in range(2)]
        until(lambda: len(api_connections(api)) == 2, "both are accepted")
        with api.connect() as plain:
            plain.sendall(query_bytes("x"))
            assert status_of(plain) == (200, False)
        assert status_of(silent[0]) == (503, True)
        for each in silent:
            each.close()


def api_connections(api: Served) -> Any:
    return api.server._listeners[0].server_state.connections


def test_requests_queued_during_the_start_are_answered_before_later_ones() -> None:
    memory, order = Memory(stage=DaemonState.STARTING), []
    with socket_folder() as folder, loop_in_thread() as run:

        class Queries(Memory):
            async def query(self, request: Any) -> Any:
                order.append(request.query)
                await asyncio.sleep(0.01)
                return await memory.query(request)

        async def make() -> tuple[ApiServer, StartupGate]:
            gate = StartupGate()
            settings = ApiSettings(folder / "s", limits=ApiLimits(client_share=1.0, concurrent_queries=2))
            return ApiServer(StartupPorts(memory, EventHub()), gate, settings), gate

        async def opened() -> None:
            gate.open(memory_ports(Queries()))

        server, gate = run(make())
        run(server.start())
        waiting = []
        for number in range(20):
            plain = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            plain.settimeout(PATIENCE_S)
            plain.connect(str(folder / "s"))
            plain.sendall(query_bytes(f"q{number}"))
            waiting.append(plain)
        run(asyncio.sleep(0.2))
        assert not order
        run(opened())
        assert [status_of(plain) for plain in waiting] == [(200, False)] * 20
        assert order == [f"q{number}" for number in range(20)]
        run(server.stop(5.0))


def test_queued_slot_is_not_granted_to_a_cancelled_request() -> None:
    async def scenario() -> None:
        limit = ConcurrencyLimit(1, "queries")
        first = limit.slot("one")
        first.__enter__()

        async def waits(patience_s: float) -> str:
            try:
                async with limit.slot_in_turn("one", patience_s):
                    return "in"
            except Busy:
                return "refused"

        gone, late, last = (asyncio.create_task(waits(each)) for each in (60.0, 0.01, 60.0))
        await asyncio.sleep(0.05)
        assert late.done() and late.result() == "refused"
        gone.cancel()
        await asyncio.sleep(0)
        first.__exit__(None, None, None)
        assert await last == "in"
        with limit.slot("one"):
            pass

    asyncio.run(scenario())
