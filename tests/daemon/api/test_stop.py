"""Stopping: requests that can end are finished, others are cut off, within the time limit."""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from daemon.api.event_hub import EventHub
from daemon.api.server import ApiServer
from daemon.api.settings import ApiLimits, ApiSettings
from daemon.contract.base import Problem
from daemon.contract.http.routes import ProblemType, Route
from tests.daemon.api.harness import (
    PATIENCE_S,
    Memory,
    Served,
    api_server,
    loop_in_thread,
    served,
    socket_folder,
    until,
)
from tests.daemon.api.test_burst import busy, query_bytes, status_of


def query(api: Served, text: str) -> httpx2.Response:
    return api.client.post(Route.QUERY, json={"query": text})


def test_stop_answers_the_running_query_and_accepts_no_new_one() -> None:
    with served() as api, ThreadPoolExecutor(2) as pool:
        asked = pool.submit(query, api, "hold")
        until(lambda: api.memory.queries_inside == 1, "the query is under way")
        stopping = pool.submit(api.run, api.server.stop(15.0))
        until(lambda: not reachable(api), "nothing new is accepted")
        api.memory.released.set()
        assert asked.result().status_code == 200
        stopping.result()


def test_stop_answers_a_connection_that_waits_for_a_slot() -> None:
    with served(ApiLimits(connections=1)) as api, api.connect() as first, ThreadPoolExecutor(1) as pool:
        first.sendall(query_bytes("hold"))
        until(lambda: api.memory.queries_inside == 1, "the only place is taken")
        with api.connect() as second:
            second.sendall(query_bytes("x"))
            stopping = pool.submit(api.run, api.server.stop(15.0))
            assert status_of(second)[0] == 200
            api.memory.released.set()
            assert status_of(first)[0] == 200
            stopping.result()


def reachable(api: Served) -> bool:
    try:
        api.connect().close()
    except OSError:
        return False
    return True


def test_stop_ends_a_wait_with_503_not_ready() -> None:
    with served() as api, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(api.client.post, Route.WAIT)
        until(lambda: api.memory.waits_inside == 1, "the wait is under way")
        api.run(api.server.stop(5.0))
        answer = waiting.result()
        assert answer.status_code == 503
        assert Problem.model_validate_json(answer.content).type == ProblemType.NOT_READY


def test_stop_cancels_a_query_that_exceeds_the_time_limit() -> None:
    with served() as api, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(query, api, "hold")
        until(lambda: api.memory.queries_inside == 1, "the query is under way")
        api.run(api.server.stop(1.5))
        with pytest.raises(httpx2.TransportError):
            asked.result()
        until(lambda: api.memory.cancelled == 1, "the port is cancelled")
        assert not api.path.exists()


def test_stop_is_not_delayed_by_a_client_that_does_not_read() -> None:
    with served() as api, api.connect() as plain:
        api.memory.export_chunks = 10_000_000
        plain.sendall(b"GET /v1/export HTTP/1.1\r\nHost: h\r\n\r\n")
        assert plain.recv(100).startswith(b"HTTP/1.1 200 ")
        api.run(api.server.stop(1.5))
        assert not api.path.exists()


def test_stopping_twice_raises_no_error() -> None:
    with served() as api:
        api.run(api.server.stop(2.0))
        api.run(api.server.stop(2.0))


def test_stop_answers_all_connections_made_before_it() -> None:
    """The connections are in the kernel's queue, or accepted and not read yet, when the stop begins."""
    with served() as api, ThreadPoolExecutor(1) as pool:
        held = pool.submit(api.run, busy(0.4))
        until(held.running, "the loop is held up")
        waiting = []
        for number in range(30):
            plain = api.connect()
            plain.sendall(query_bytes(f"q{number}"))
            waiting.append(plain)
        api.run(api.server.stop(5.0))
        assert {status_of(plain) for plain in waiting} == {(200, False)}


def test_connections_during_the_stop_are_served_by_the_next_hippod() -> None:
    with socket_folder() as folder, loop_in_thread() as run:
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(str(folder / "s"))
        listening.listen(16)
        memory = Memory()

        async def start() -> ApiServer:
            inherited = listening.dup()
            inherited.setblocking(False)
            server = api_server(memory, EventHub(), ApiSettings(folder / "s"), inherited)
            await server.start()
            return server

        def connect() -> socket.socket:
            plain = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            plain.settimeout(PATIENCE_S)
            plain.connect(str(folder / "s"))
            return plain

        first, under_way = run(start()), connect()
        under_way.sendall(query_bytes("hold"))
        until(lambda: memory.queries_inside == 1, "a query is under way")
        with ThreadPoolExecutor(1) as pool:
            stopping = pool.submit(run, first.stop(15.0))
            run(asyncio.sleep(0.3))
            later = connect()
            later.sendall(query_bytes("later"))
            memory.released.set()
            assert status_of(under_way) == (200, False)
            stopping.result()
        second = run(start())
        assert status_of(later) == (200, False)
        run(second.stop(5.0))
        listening.close()
