"""The tools' client of the HTTP API: sends and returns JSON, and reports errors as sentences that an agent can act on."""

import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from typing import Any, TypeVar

import anyio
import httpx2
from pydantic import TypeAdapter, ValidationError

from daemon.contract.http.client import (
    CONNECT_TIMEOUT_S,
    EventStream,
    Retries,
    answer_timeout_s,
    is_problem,
    parse_json,
    problem_sentence,
    problem_type,
)
from daemon.contract.http.routes import EVENT_STREAM, JSON, PROBLEM_JSON

Answer = TypeVar("Answer")


class CallError(Exception):
    """A call failed; the message is for the agent. `problem` is the daemon's problem document, if it refused the request."""

    def __init__(self, message: str, problem: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.problem = problem or {}
        self.type = problem_type(self.problem)


class DaemonClient:
    """Sends requests to the daemon at the Unix socket `socket`. Each request has its own connection, because the daemon may
    restart.

    The daemon identifies the client by the token, or else by the user of this process.
    """

    def __init__(self, socket: str, *, for_others: bool = False) -> None:
        """`for_others`: sends requests only on behalf of clients, each with the client's own token (`acting_for`)."""
        self._socket = socket
        self._for_others = for_others
        self._authorization: str | None = None
        # No limit here, because the daemon limits connections.
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
        transport = httpx2.AsyncHTTPTransport(uds=socket, limits=limits)
        self._http = httpx2.AsyncClient(transport=transport, base_url="http://localhost", trust_env=False)

    async def close(self) -> None:
        await self._http.aclose()

    def acting_for(self, request: object) -> "DaemonClient":
        """Returns this client, acting for the sender of the HTTP request `request`; None stands for a message from a pipe.

        Raises CallError if this client acts for others and the request has no token: the client must not use its own identity.
        """
        if not self._for_others:
            return self
        authorization = getattr(request, "headers", {}).get("authorization")
        if not authorization:
            raise CallError("The request has no token; send the token with each request.")
        acting = copy(self)
        acting._authorization = authorization
        return acting

    def _headers(self, accept: str) -> dict[str, str]:
        if self._for_others and self._authorization is None:
            raise CallError("The request has no client.")
        return {"accept": accept} | ({} if self._authorization is None else {"authorization": self._authorization})

    async def call(
        self,
        answer: type[Answer],
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        params: Mapping[str, str | int] | None = None,
    ) -> Answer:
        """Returns the daemon's response as a type of the contract. Raises CallError."""
        return validate_answer(TypeAdapter(answer), await self.fetch(method, path, body, params))

    async def fetch(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        params: Mapping[str, str | int] | None = None,
    ) -> Any:
        """Returns the parsed JSON of the daemon's response; None if it is invalid. Retries while the daemon is starting or
        busy. Raises CallError."""
        content = None if body is None else json.dumps(body).encode()
        headers = self._headers(f"{JSON}, {PROBLEM_JSON}") | ({} if content is None else {"content-type": JSON})
        timeout = httpx2.Timeout(answer_timeout_s(method, path, body), connect=CONNECT_TIMEOUT_S)
        retries = Retries()
        while True:
            with self._failures():
                response = await self._http.request(
                    method, path, content=content, params=params, headers=headers, timeout=timeout
                )
            if response.is_success:
                return parse_json(response.content)
            await _pause(retries, response)

    async def events(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[tuple[str, Any], None]:
        """Yields name and data of server-sent events. Raises CallError."""
        timeout = httpx2.Timeout(answer_timeout_s("POST", path, body), connect=CONNECT_TIMEOUT_S)
        headers = self._headers(f"{EVENT_STREAM}, {PROBLEM_JSON}")
        retries = Retries()
        with self._failures():
            while True:
                async with self._http.stream(
                    "POST", path, json=dict(body), headers=headers, timeout=timeout
                ) as response:
                    if response.is_success:
                        stream = EventStream()
                        async for line in response.aiter_lines():
                            event = stream.read_line(line)
                            if event is not None:
                                yield event
                        return
                    await response.aread()
                await _pause(retries, response)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except httpx2.ConnectError as error:
            denied = "Permission denied" in str(error)
            hint = "this process may not open it" if denied else "start hippod, then call again"
            raise CallError(f"No hippod answers on {self._socket}: {hint}.") from None
        except httpx2.ReadTimeout:
            raise CallError("hippod has not answered in time; call again, or request less.") from None
        except httpx2.TransportError as error:
            reason = str(error) or type(error).__name__
            raise CallError(f"hippod closed the connection before it had answered ({reason}); call again.") from None


def validate_answer(answer: TypeAdapter[Answer], body: Any) -> Answer:
    """Returns the daemon's parsed JSON as a type of the contract. Raises CallError if the JSON does not match the type."""
    try:
        return answer.validate_python(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "all of it"
        raise CallError(
            f"hippod's answer does not have the expected form ({where}: {first['msg']}); the versions may differ."
        ) from None


def refusal(problem: Any) -> CallError:
    """Returns a problem document (RFC 9457) as an exception."""
    problem = problem if isinstance(problem, dict) else {}
    return CallError(problem_sentence(problem), problem)


async def _pause(retries: Retries, response: httpx2.Response) -> None:
    """Waits until the refused request may be retried. Raises CallError if it must not be retried."""
    problem = parse_json(response.content)
    if not is_problem(problem):
        raise CallError(f"The server at the socket is not hippod (HTTP {response.status_code}).")
    pause_s = retries.pause_s(problem)
    if pause_s is None:
        raise refusal(problem)
    await anyio.sleep(pause_s)
