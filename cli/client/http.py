"""HTTP requests to the daemon over its Unix socket. Every failure raises a `CommandError` with a message.

If this user lacks permission for the socket, the message says how to get it.
"""

import grp
import os
import pwd
import re
import shlex
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn
from urllib.parse import quote, urlencode

from cli.client.address import Address
from cli.client.connection import (
    AnswerTooLate,
    Connection,
    ConnectionLost,
    ConnectionRefused,
    RequestsNotTaken,
    Response,
)
from cli.errors import CommandError, Exit
from cli.request_json import request_json
from daemon.contract.http.client import (
    CONNECT_TIMEOUT_S,
    RETRY_PATIENCE_S,
    Retries,
    answer_timeout_s,
    is_problem,
    parse_json,
    problem_sentence,
    problem_type,
)
from daemon.contract.http.routes import JSON, PROBLEM_JSON, ProblemType

_CODES = {
    ProblemType.NOT_CONFIGURED: Exit.NOT_CONFIGURED,
    ProblemType.TIMED_OUT: Exit.TIMED_OUT,
    ProblemType.CANNOT_START: Exit.NO_DAEMON,
}
SYSTEMD_RUNS = Path("/run/systemd/system")
UNIT_FOLDERS = tuple(Path(each) for each in ("/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"))
UNIT_SOCKET = re.compile(r"/run/hippod(?:-(?P<instance>[^/]+))?/hippod\.sock")
ASK_HIPPOD = "run this as hippod's user, or with sudo"


class RequestRefused(CommandError):
    """The daemon answered with a problem document."""

    def __init__(self, problem: Mapping[str, Any]) -> None:
        self.type = problem_type(problem)
        code = next((exit_ for type_, exit_ in _CODES.items() if type_ == self.type), Exit.FAILED)
        super().__init__(problem_sentence(problem), code, problem=problem)


class Client:
    """Sends requests to the daemon at `address`. `on_wait` is called with the reason when a request is repeated."""

    def __init__(self, address: Address, on_wait: Callable[[str], None] = lambda _: None) -> None:
        self.address = address
        self._on_wait = on_wait
        self._connection = Connection(address.connectable, CONNECT_TIMEOUT_S)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._connection.close()

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        params: Mapping[str, str | int] | None = None,
        *,
        patience_s: float | None = RETRY_PATIENCE_S,
        limit_s: float | None = None,
    ) -> dict[str, Any]:
        """Sends a request and returns the daemon's JSON object.

        `body` is JSON, bytes that already are JSON, or a function that returns their pieces. If the daemon is starting or busy,
        the request is repeated for `patience_s` seconds (`None`: without limit). `limit_s` replaces the route's time limit.
        """
        is_content = body is None or isinstance(body, bytes) or callable(body)
        content = body if is_content else request_json(body).encode()
        limit_s = limit_s or answer_timeout_s(method, path, body)
        retries = Retries(patience_s)
        while True:
            try:
                return self._once(method, path, content, params, limit_s)
            except RequestRefused as refused:
                pause_s = retries.pause_s(refused.problem or {})
                if pause_s is None:
                    raise
                self._on_wait(refused.message)
                time.sleep(pause_s)

    @contextmanager
    def stream(self, path: str, *, accept: str, body: object = None) -> Iterator[Response]:
        """Yields a response whose body is read piece by piece inside the `with`. Raises the errors of `call`."""
        headers = {"accept": accept} | ({} if body is None else {"content-type": JSON})
        content = None if body is None else request_json(body).encode()
        with self._failures():
            method = "GET" if body is None else "POST"
            limit_s = answer_timeout_s(method, path, body)
            response = self._connection.request(method, path, headers, content, limit_s)
            if not response.is_success:
                self._refuse(response.status, response.read())
            yield response

    def _once(
        self,
        method: str,
        path: str,
        content: bytes | Callable[[], Iterator[bytes]] | None,
        params: Mapping[str, str | int] | None,
        timeout_s: float | None,
    ) -> dict[str, Any]:
        headers = {"accept": f"{JSON}, {PROBLEM_JSON}"} | ({} if content is None else {"content-type": JSON})
        target = f"{path}?{urlencode(params, quote_via=quote)}" if params else path
        with self._failures():
            body = content() if callable(content) else content
            response = self._connection.request(method, target, headers, body, timeout_s)
            received = response.read()
        if not response.is_success:
            self._refuse(response.status, received)
        answer = parse_json(received)
        if not isinstance(answer, dict):
            raise self._stranger()
        return answer

    def _refuse(self, status: int, content: bytes) -> NoReturn:
        problem = parse_json(content)
        if is_problem(problem):
            raise RequestRefused(problem)
        raise self._stranger(f" (HTTP {status})")

    def _stranger(self, what: str = "") -> CommandError:
        return CommandError(f"What answers on {self.address.path} does not speak hippod's language{what}.")

    @contextmanager
    def _failures(self) -> Iterator[None]:
        path = self.address.path
        try:
            yield
        except ConnectionRefused as error:
            raise no_daemon(self.address, str(error)) from None
        except RequestsNotTaken:
            raise CommandError(f"no hippod answers on {path}: it accepts no requests.", Exit.NO_DAEMON) from None
        except AnswerTooLate:
            raise CommandError(f"hippod on {path} has not answered in time.", Exit.TIMED_OUT) from None
        except ConnectionLost as error:
            reason = f"hippod on {path} closed the connection before it had answered ({error})."
            raise CommandError(reason, Exit.NO_DAEMON, "Its log says why.") from None


def start_command(address: Address) -> str:
    """Returns the command that starts the daemon: that of the systemd unit of this socket, if there is one.

    hippod started by root would leave files that the unit may not read.
    """
    place = UNIT_SOCKET.fullmatch(str(address.path))
    if place and SYSTEMD_RUNS.is_dir():
        template, instance = ("hippod@", place["instance"]) if place["instance"] else ("hippod", "")
        if any((folder / f"{template}.service").exists() for folder in UNIT_FOLDERS):
            return f"sudo systemctl start {template}{instance}.socket {template}{instance}.service"
    return f"hippod --config {address.config}" if address.config else "hippod"


def no_daemon(address: Address, reason: str) -> CommandError:
    """Returns the error for a socket on which no process listens, or to which this user may not connect."""
    if "Permission denied" in reason:
        hint = permission_hint(address.path)
        message = f"this user may not connect to hippod on {address.path}: permission denied."
        return CommandError(message, Exit.NO_DAEMON, f"{hint[0].upper()}{hint[1:]}.")
    hint = (
        f"Start it with `{start_command(address)}`, or name another socket with --socket "
        f"(this path is from {address.origin})."
    )
    why = "" if "No such file" in reason else "  (the socket exists, but no process listens on it)"
    why = why if "refused" in reason or not why else f" ({reason})"
    return CommandError(f"no hippod answers on {address.path}{why}.", Exit.NO_DAEMON, hint)


def permission_hint(path: Path) -> str:
    """Returns the command that adds this user to the socket's group, or another hint, as the end of a sentence."""
    try:
        status = path.stat()
    except OSError:
        return f"the folder {path.parent} is closed to this user: {ASK_HIPPOD}"
    group = group_name(status.st_gid)
    if not status.st_mode & stat.S_IWGRP or status.st_gid == 0:
        return ASK_HIPPOD
    user = _user_name()
    if user in _members(status.st_gid):
        return f"{user} is in the group {group}, but was not at the login: log out and in again"
    return f"join the group {group}: `sudo usermod -aG {shlex.quote(group)} {shlex.quote(user)}`, then log out and in again"


def group_name(gid: int) -> str:
    """Returns the group's name, or its number if it has no name."""
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def _user_name() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _members(gid: int) -> list[str]:
    try:
        return grp.getgrgid(gid).gr_mem
    except KeyError:
        return []
