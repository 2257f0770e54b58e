"""An import runs while its client is connected; a disconnect or a stopping daemon frees its place."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from daemon.api.settings import ApiLimits
from daemon.contract.base import Problem
from daemon.contract.http.routes import ProblemType, Route
from daemon.contract.transfer import ImportResponse
from tests.daemon.api.harness import Memory, Served, served, until

BODY = b'{"docs": []}'
REQUEST = b"POST /v1/import HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY


class Importing:
    """A port whose imports end only when released."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.bodies: list[bytes] = []
        self.cancelled = 0

    async def take(self, chunks: AsyncIterator[bytes]) -> ImportResponse:
        try:
            self.bodies.append(b"".join([chunk async for chunk in chunks]))
            while not self.memory.released.is_set():
                await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return ImportResponse(passages=1, triples=2, skipped=3)


@pytest.fixture
def api() -> Iterator[Served]:
    with served(ApiLimits(client_share=1.0, imports=2)) as api:
        yield api


@pytest.fixture
def importing(api: Served, monkeypatch: pytest.MonkeyPatch) -> Importing:
    importing = Importing(api.memory)
    monkeypatch.setattr(api.memory, "import_openie", importing.take, raising=False)
    return importing


def test_disconnect_during_an_import_cancels_it_and_frees_its_slot(api: Served, importing: Importing) -> None:
    with api.connect() as one, api.connect() as other:
        one.sendall(REQUEST)
        other.sendall(REQUEST)
        until(lambda: len(importing.bodies) == 2, "both bodies were read")
    until(lambda: importing.cancelled == 2, "both imports were cancelled")
    assert importing.bodies == [BODY, BODY]
    api.memory.released.set()
    answer = api.client.post(Route.IMPORT, content=BODY)
    assert ImportResponse.model_validate_json(answer.content).triples == 2


def test_import_in_progress_is_cancelled_with_503_when_the_daemon_stops(api: Served, importing: Importing) -> None:
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(api.client.post, Route.IMPORT, content=BODY)
        until(lambda: importing.bodies == [BODY], "the body was read")
        api.run(api.server.stop(5.0))
        answer = asked.result()
    assert answer.status_code == 503
    assert Problem.model_validate_json(answer.content).type == ProblemType.NOT_READY
    assert importing.cancelled == 1
