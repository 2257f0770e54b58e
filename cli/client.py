"""One HTTP request to the daemon over its Unix socket; every way it can go wrong ends in a `Failure` with a sentence."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, NoReturn, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from cli.address import Address
from cli.errors import Exit, Failure
from daemon.contract import JSON, PROBLEM_JSON, ProblemType

CONNECT_S = 5.0
ANSWER_S = 120.0
"""How long the daemon may be silent before a command gives up."""
PATIENCE_S = 30.0
"""How long a daemon that is still starting, or too busy, is asked again."""

_AGAIN = (ProblemType.NOT_READY, ProblemType.BUSY, ProblemType.TOO_MANY_REQUESTS)
_CODES = {ProblemType.NOT_CONFIGURED: Exit.NOT_CONFIGURED, ProblemType.TIMED_OUT: Exit.TIMED_OUT}

Answer = TypeVar("Answer", bound=BaseModel)


class Refused(Failure):
    """The daemon answered with a problem."""

    def __init__(self, problem: Mapping[str, Any]) -> None:
        self.type = str(problem.get("type", "about:blank"))
        code = next((exit_ for type_, exit_ in _CODES.items() if type_ == self.type), Exit.FAILED)
        super().__init__(sentence(problem), code, problem=problem)

    @property
    def retry_after_s(self) -> float:
        value = self.problem.get("retry_after_s") if self.problem else None
        return float(value) if isinstance(value, int | float) and value > 0 else 0.5


class Client:
    """Speaks to the daemon at `address`. `on_wait` is told why a request is being made again."""

    def __init__(self, address: Address, on_wait: Callable[[str], None] = lambda _: None) -> None:
        self.address = address
        self._on_wait = on_wait
        self._http = httpx.Client(
            transport=httpx.HTTPTransport(uds=address.connectable),
            base_url="http://localhost",
            timeout=httpx.Timeout(ANSWER_S, connect=CONNECT_S),
            trust_env=False,
        )

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._http.close()

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        params: Mapping[str, str | int] | None = None,
        *,
        timeout_s: float | None = ANSWER_S,
        patience_s: float | None = PATIENCE_S,
    ) -> dict[str, Any]:
        """The daemon's JSON object. `body` is JSON, bytes that are JSON already, or a function that gives their pieces.

        A daemon that is starting or busy is asked again for `patience_s` (`None`: for ever).
        """
        given = body is None or isinstance(body, bytes) or callable(body)
        content = body if given else json.dumps(body).encode()
        deadline = None if patience_s is None else time.monotonic() + patience_s
        while True:
            try:
                return self._once(method, path, content, params, timeout_s)
            except Refused as refused:
                pause = refused.retry_after_s
                if refused.type not in _AGAIN or (deadline is not None and time.monotonic() + pause > deadline):
                    raise
                self._on_wait(refused.message)
                time.sleep(pause)

    @contextmanager
    def stream(self, path: str, *, accept: str, timeout_s: float | None, body: Any = None) -> Iterator[httpx.Response]:
        """A response whose body is read piece by piece, inside the `with`, whose errors end as those of `call` do."""
        with self._failures():
            timeout = httpx.Timeout(timeout_s, connect=CONNECT_S)
            method = "GET" if body is None else "POST"
            with self._http.stream(method, path, json=body, headers={"accept": accept}, timeout=timeout) as response:
                if response.status_code != httpx.codes.OK:
                    response.read()
                    self._refuse(response)
                yield response

    def _once(
        self,
        method: str,
        path: str,
        content: bytes | Callable[[], Iterator[bytes]] | None,
        params: Mapping[str, str | int] | None,
        wait: float | None,
    ) -> dict[str, Any]:
        headers = {"accept": f"{JSON}, {PROBLEM_JSON}"} | ({} if content is None else {"content-type": JSON})
        timeout = httpx.Timeout(wait, connect=CONNECT_S)
        with self._failures():
            body = content() if callable(content) else content
            response = self._http.request(method, path, content=body, params=params, headers=headers, timeout=timeout)
        if not response.is_success:
            self._refuse(response)
        answer = _json(response)
        if not isinstance(answer, dict):
            raise self._stranger()
        return answer

    def _refuse(self, response: httpx.Response) -> NoReturn:
        problem = _json(response)
        if isinstance(problem, dict) and ("detail" in problem or "title" in problem):
            raise Refused(problem)
        raise self._stranger(f" (HTTP {response.status_code})")

    def _stranger(self, what: str = "") -> Failure:
        return Failure(f"What answers on {self.address.path} does not speak hippod's language{what}.")

    @contextmanager
    def _failures(self) -> Iterator[None]:
        path = self.address.path
        try:
            yield
        except httpx.ConnectError as error:
            raise no_daemon(self.address, str(error)) from None
        except httpx.ReadTimeout:
            raise Failure(f"hippod on {path} has not answered in time.", Exit.TIMED_OUT) from None
        except httpx.TimeoutException:
            raise Failure(f"no hippod answers on {path}: it takes no requests.", Exit.NO_DAEMON) from None
        except httpx.TransportError as error:
            reason = f"hippod on {path} closed the connection before it had answered ({error or type(error).__name__})."
            raise Failure(reason, Exit.NO_DAEMON, "Its log says why.") from None


def no_daemon(address: Address, reason: str) -> Failure:
    """Nobody listens on the socket, or this user may not connect to it."""
    if "Permission denied" in reason:
        hint = "Join the group that [api] group names (`ls -l` on the socket shows it), or run this as hippod's user."
        return Failure(f"no hippod answers on {address.path}: permission denied.", Exit.NO_DAEMON, hint)
    config = f" --config {address.config}" if address.config else ""
    hint = f"Start it with `hippod{config}`, or name another socket with --socket (this one: {address.origin})."
    why = "" if "No such file" in reason else " (a socket is there, and nobody listens)"
    why = why if "refused" in reason or not why else f" ({reason})"
    return Failure(f"no hippod answers on {address.path}{why}.", Exit.NO_DAEMON, hint)


def read(model: type[Answer], answer: Mapping[str, Any]) -> Answer:
    """The daemon's JSON as a type of the contract."""
    try:
        return model.model_validate(answer)
    except ValidationError as error:
        raise misunderstood(error) from None


def misunderstood(error: ValidationError) -> Failure:
    """The answer lacks what the contract promises."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return Failure(
        f"hippod's answer is not understood: {where}: {first['msg']}.",
        hint="hippoctl and hippod are probably of different versions; --json prints the answer as it is.",
    )


def sentence(problem: Mapping[str, Any]) -> str:
    """A problem document as something to read: its detail, and what is wrong with which field."""
    text = str(problem.get("detail") or problem.get("title") or "hippod refused without saying why").strip()
    errors = problem.get("errors")
    parts = [_field(error, text) for error in errors] if isinstance(errors, list) else []
    parts = [part for part in parts if part]
    more = f"; and {len(parts) - 5} more" if len(parts) > 5 else ""
    return f"{text.rstrip('.')}: {'; '.join(parts[:5])}{more}." if parts else text


def _field(error: Any, said: str) -> str:
    if not isinstance(error, dict):
        return ""
    message, field, allowed = (
        str(error.get("message", "")).rstrip("."),
        str(error.get("field", "")),
        error.get("allowed"),
    )
    if not message or message in said:
        return ""
    choice = f" (allowed: {', '.join(map(str, allowed))})" if isinstance(allowed, list) and allowed else ""
    return f"{field}: {message}{choice}" if field else f"{message}{choice}"


def _json(response: httpx.Response) -> Any:
    try:
        return response.json()
    except (ValueError, RecursionError):
        return None
