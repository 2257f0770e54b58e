"""The socket API as a tool sees it: JSON in and out, and every failure a sentence that an agent can act on."""

import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import anyio
import httpx
from pydantic import TypeAdapter, ValidationError

from daemon.contract import EVENT_STREAM, JSON, PROBLEM_JSON, ProblemType

CONNECT_S = 5.0
ANSWER_S = 120.0
"""How long the daemon may be silent before a call is given up."""
PATIENCE_S = 20.0
PAUSE_S = 0.5
"""How long a daemon that is starting, or too busy, is asked again, and how often."""

Answer = TypeVar("Answer")
_AGAIN = (ProblemType.NOT_READY, ProblemType.BUSY, ProblemType.TOO_MANY_REQUESTS)


class Fault(Exception):
    """A call cannot be done; the message is for the agent. `type`: that of the daemon's problem, where it refused."""

    def __init__(self, message: str, type: str = "") -> None:
        super().__init__(message)
        self.type = type


class Door:
    """The daemon whose socket is at `socket`. No connection is kept, so one that was away is met again when it is back."""

    def __init__(self, socket: str) -> None:
        self._socket = socket
        # The daemon has a limit on connections; here there is none.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        transport = httpx.AsyncHTTPTransport(uds=socket, limits=limits)
        self._http = httpx.AsyncClient(transport=transport, base_url="http://localhost", trust_env=False)

    async def close(self) -> None:
        await self._http.aclose()

    async def call(
        self,
        answer: type[Answer],
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        params: Mapping[str, str | int] | None = None,
    ) -> Answer:
        """The daemon's answer. Raises `Fault`."""
        return read(TypeAdapter(answer), await self.fetch(method, path, body, params))

    async def fetch(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        params: Mapping[str, str | int] | None = None,
    ) -> bytes:
        """The daemon's answer as it came."""
        content = None if body is None else json.dumps(body).encode()
        headers = {"accept": f"{JSON}, {PROBLEM_JSON}"} | ({} if content is None else {"content-type": JSON})
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                return await self._once(method, path, content, params, headers)
            except Fault as fault:
                if fault.type not in _AGAIN or time.monotonic() + PAUSE_S > until:
                    raise
            await anyio.sleep(PAUSE_S)

    async def _once(
        self,
        method: str,
        path: str,
        content: bytes | None,
        params: Mapping[str, str | int] | None,
        headers: Mapping[str, str],
    ) -> bytes:
        timeout = httpx.Timeout(ANSWER_S, connect=CONNECT_S)
        with self._failures():
            response = await self._http.request(
                method, path, content=content, params=params, headers=headers, timeout=timeout
            )
        if not response.is_success:
            raise _refusal(response)
        return response.content

    async def events(
        self, path: str, body: Mapping[str, Any], timeout_s: float
    ) -> AsyncGenerator[tuple[str, Any], None]:
        """Server-sent events as they come: name and data. `timeout_s` is how long there may be none. Raises `Fault`."""
        timeout = httpx.Timeout(timeout_s, connect=CONNECT_S)
        headers = {"accept": f"{EVENT_STREAM}, {PROBLEM_JSON}"}
        until = time.monotonic() + PATIENCE_S
        with self._failures():
            while True:
                async with self._http.stream(
                    "POST", path, json=dict(body), headers=headers, timeout=timeout
                ) as response:
                    if response.is_success:
                        async for event in _events(response):
                            yield event
                        return
                    await response.aread()
                fault = _refusal(response)
                if fault.type not in _AGAIN or time.monotonic() + PAUSE_S > until:
                    raise fault
                await anyio.sleep(PAUSE_S)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except httpx.ConnectError as error:
            denied = "Permission denied" in str(error)
            hint = "this process may not open it" if denied else "start hippod, then call again"
            raise Fault(f"No hippod answers on {self._socket}: {hint}.") from None
        except httpx.ReadTimeout:
            raise Fault("hippod has not answered in time; call again, or ask for less.") from None
        except httpx.TransportError as error:
            reason = str(error) or type(error).__name__
            raise Fault(f"hippod closed the connection before it had answered ({reason}); call again.") from None


async def _events(response: httpx.Response) -> AsyncIterator[tuple[str, Any]]:
    name = ""
    async for line in response.aiter_lines():
        key, _, value = line.partition(": ")
        if key == "event":
            name = value
        elif key == "data":
            yield name, _json(value.encode())


def read(answer: TypeAdapter[Answer], content: bytes) -> Answer:
    """The daemon's JSON; Fault where it lacks what the contract promises."""
    return checked(answer, _json(content))


def checked(answer: TypeAdapter[Answer], said: Any) -> Answer:
    """As `read`, of JSON that is parsed already."""
    try:
        return answer.validate_python(said)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "all of it"
        raise Fault(f"hippod's answer is not understood ({where}: {first['msg']}); its version is another.") from None


def problem(said: Any) -> Fault:
    """A problem document (RFC 9457) as a `Fault`."""
    said = said if isinstance(said, dict) else {}
    detail = str(said.get("detail") or said.get("title") or "hippod refused without saying why")
    return Fault(detail, str(said.get("type", "")))


def _refusal(response: httpx.Response) -> Fault:
    said = _json(response.content)
    if isinstance(said, dict) and ("detail" in said or "title" in said):
        return problem(said)
    return Fault(f"What answers on the socket does not speak hippod's language (HTTP {response.status_code}).")


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None
