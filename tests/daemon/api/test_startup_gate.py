"""Requests before the memory is open wait for it; `status`, health and events are answered."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest

from daemon.api.event_hub import EventHub
from daemon.api.ports import StartupGate, StartupPorts
from daemon.api.server import ApiServer
from daemon.api.settings import ApiSettings
from daemon.contract.status import DaemonState
from daemon.errors import NotReady
from tests.daemon.api.harness import PATIENCE_S, Memory, loop_in_thread, memory_ports, socket_folder


@contextmanager
def starting(gate_of: Any) -> Iterator[tuple[httpx2.Client, StartupGate, Memory, Any]]:
    """Yields a server whose memory is not open."""
    memory = Memory(stage=DaemonState.STARTING)
    with socket_folder() as folder, loop_in_thread() as run:

        async def make() -> tuple[ApiServer, StartupGate]:
            gate = gate_of()
            return ApiServer(StartupPorts(memory, EventHub()), gate, ApiSettings(folder / "s")), gate

        server, gate = run(make())
        run(server.start())
        transport = httpx2.HTTPTransport(uds=str(folder / "s"))
        try:
            with httpx2.Client(transport=transport, base_url="http://hippod", timeout=PATIENCE_S) as client:
                yield client, gate, memory, run
        finally:
            run(server.stop(5.0))


async def called(action: Any, *arguments: Any) -> None:
    action(*arguments)


def test_requests_during_the_start_wait_and_status_is_answered_at_once() -> None:
    answers: list[httpx2.Response] = []
    with starting(StartupGate) as (client, gate, memory, run):

        def ask() -> None:
            answers.append(client.post("/v1/query", json={"query": "x"}))
            answers.append(client.get("/v1/export"))

        asking = threading.Thread(target=ask)
        asking.start()
        assert client.get("/v1/status").json()["state"] == "starting"
        assert client.get("/healthz").status_code == 503
        # An invalid request is refused at once.
        assert client.post("/v1/query", json={"query": "x", "k": -1}).status_code == 422
        assert not answers
        run(called(gate.open, memory_ports(memory)))
        asking.join(PATIENCE_S)
        assert [answer.status_code for answer in answers] == [200, 200]
        assert memory.exported == memory.export_chunks


def test_requests_that_wait_too_long_are_refused() -> None:
    with starting(lambda: StartupGate(wait_s=0.01)) as (client, _, _, _):
        answer = client.post("/v1/query", json={"query": "x"})
        assert answer.status_code == 503
        assert answer.json()["type"] == "urn:hippod:problem:not-ready"
        assert "try again in a moment" in answer.json()["detail"]


def test_requests_that_wait_are_refused_when_hippod_stops() -> None:
    async def run() -> None:
        gate = StartupGate()
        waiting = asyncio.create_task(gate.ports())
        await asyncio.sleep(0)
        gate.give_up()
        with pytest.raises(NotReady, match="stopped before it was ready"):
            await waiting

    asyncio.run(run())
