"""HTTP requests to the daemon over its Unix socket. Every failure raises a `CommandError` with a message.

If this user lacks permission for the socket, the message says how to get it.
"""

import errno
import grp
import os
import pwd
import re
import shlex
import socket
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote, urlencode

from cli.client.address import Address
from cli.document_names import request_json
from cli.errors import CommandError, Exit
from daemon.contract.http.client import (
    CONNECT_TIMEOUT_S,
    RETRY_PATIENCE_S,
    EventStream,
    Retries,
    answer_timeout_s,
    is_problem,
    parse_json,
    problem_sentence,
    problem_type,
)
from daemon.contract.http.routes import EVENT_STREAM, JSON, PROBLEM_JSON, ProblemType

READ_BYTES = 65_536
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


class UnixConnection(HTTPConnection):
    """A connection to the Unix socket `path`. `timeout_s` limits each wait for data, but not the connection attempt."""

    def __init__(self, path: str, timeout_s: float | None) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(CONNECT_TIMEOUT_S)
        self.sock.connect(self._path)
        self.sock.settimeout(self.timeout)

    def send(self, data: Any) -> None:
        """Raises SendingFailed if the connection fails, so that an OSError means a failure to produce the content."""
        try:
            super().send(data)
        except OSError as error:
            raise SendingFailed from error


class SendingFailed(Exception):
    """The daemon does not read the request, or has closed the connection. Its answer may have arrived already."""


class Client:
    """Sends requests to the daemon at `address`. `on_wait` is called with the reason when a request is repeated."""

    def __init__(self, address: Address, on_wait: Callable[[str], None] = lambda _: None) -> None:
        self.address = address
        self._on_wait = on_wait

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
        target = f"{path}?{urlencode(params, quote_via=quote)}" if params else path
        retries = Retries(patience_s)
        while True:
            sent = content() if callable(content) else content
            try:
                with self._request(method, target, f"{JSON}, {PROBLEM_JSON}", sent, limit_s) as pieces:
                    answer = parse_json(b"".join(pieces))
            except RequestRefused as refused:
                pause_s = retries.pause_s(refused.problem or {})
                if pause_s is None:
                    raise
                self._on_wait(refused.message)
                time.sleep(pause_s)
            else:
                if not isinstance(answer, dict):
                    raise self._stranger()
                return answer

    @contextmanager
    def stream(self, path: str, *, accept: str, body: object = None) -> Iterator[Iterator[bytes]]:
        """Yields the pieces of an answer as they arrive. Raises the errors of `call`."""
        method, content = ("GET", None) if body is None else ("POST", request_json(body).encode())
        with self._request(method, path, accept, content, answer_timeout_s(method, path, body)) as pieces:
            yield pieces

    @contextmanager
    def events(self, path: str, body: object = None) -> Iterator[Iterator[tuple[str, Any]]]:
        """Yields the names and data of server-sent events as they arrive."""
        events = EventStream()
        with self.stream(path, accept=EVENT_STREAM, body=body) as pieces:
            yield filter(None, map(events.read_line, _lines(pieces)))

    @contextmanager
    def _request(
        self, method: str, target: str, accept: str, content: bytes | Iterable[bytes] | None, timeout_s: float | None
    ) -> Iterator[Iterator[bytes]]:
        """Sends a request on a new connection, and yields the pieces of its answer. Raises RequestRefused.

        An iterable `content` is sent in chunks while it is produced.
        """
        headers = {"accept": accept, "user-agent": "hippoctl"} | ({} if content is None else {"content-type": JSON})
        with closing(UnixConnection(self.address.connectable, timeout_s)) as connection:
            try:
                connection.connect()
            except OSError as error:
                raise no_daemon(self.address, error) from None
            try:
                connection.request(method, target, content, headers)
            except SendingFailed as failed:
                if isinstance(failed.__cause__, TimeoutError):
                    raise no_daemon(self.address, failed.__cause__) from None
            with self._reading():
                response = connection.getresponse()
            pieces = self._pieces(response)
            if not 200 <= response.status < 300:
                self._refuse(response.status, b"".join(pieces))
            yield pieces

    def _pieces(self, response: HTTPResponse) -> Iterator[bytes]:
        with self._reading():
            while piece := response.read1(READ_BYTES):
                yield piece
            if response.length:
                raise HTTPException("the answer is cut off")

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Converts the errors of reading an answer."""
        hippod = f"hippod on {self.address.path}"
        try:
            yield
        except TimeoutError:
            raise CommandError(f"{hippod} has not answered in time.", Exit.TIMED_OUT) from None
        except (OSError, HTTPException) as error:
            reason = f"{hippod} closed the connection before it had answered ({error or type(error).__name__})."
            raise CommandError(reason, Exit.NO_DAEMON, "Its log says why.") from None

    def _refuse(self, status: int, content: bytes) -> NoReturn:
        problem = parse_json(content)
        if is_problem(problem):
            raise RequestRefused(problem)
        raise self._stranger(f" (HTTP {status})")

    def _stranger(self, what: str = "") -> CommandError:
        return CommandError(f"{self.address.path} belongs to a program that does not answer like hippod{what}.")


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """Yields the lines of an answer without their ends, each as soon as it has arrived."""
    left = b""
    for piece in pieces:
        *whole, left = (left + piece).split(b"\n")
        yield from (line.decode(errors="replace").removesuffix("\r") for line in whole)
    if left:
        yield left.decode(errors="replace")


def start_command(address: Address) -> str:
    """Returns the command that starts the daemon: `systemctl start` if this socket has a systemd unit, otherwise `hippod`.

    Running `hippod` as root would leave files that the unit's user cannot read.
    """
    place = UNIT_SOCKET.fullmatch(str(address.path))
    if place and SYSTEMD_RUNS.is_dir():
        template, instance = ("hippod@", place["instance"]) if place["instance"] else ("hippod", "")
        if any((folder / f"{template}.service").exists() for folder in UNIT_FOLDERS):
            return f"sudo systemctl start {template}{instance}.socket {template}{instance}.service"
    return f"hippod --config {address.config}" if address.config else "hippod"


def no_daemon(address: Address, error: OSError) -> CommandError:
    """Returns the error for a socket on which no process listens, or to which this user may not connect."""
    if isinstance(error, TimeoutError):
        return CommandError(f"no hippod answers on {address.path}: it accepts no requests.", Exit.NO_DAEMON)
    if error.errno == errno.EACCES:
        hint = permission_hint(address.path)
        message = f"this user may not connect to hippod on {address.path}: permission denied."
        return CommandError(message, Exit.NO_DAEMON, f"{hint[0].upper()}{hint[1:]}.")
    hint = (
        f"Start it with `{start_command(address)}`, or name another socket with --socket "
        f"(this path is from {address.origin})."
    )
    reason = {errno.ENOENT: "", errno.ECONNREFUSED: " (the socket exists, but no process listens on it)"}
    why = reason.get(error.errno or 0, f" ({error.strerror or error})")
    return CommandError(f"no hippod answers on {address.path}{why}.", Exit.NO_DAEMON, hint)


def permission_hint(path: Path) -> str:
    """Returns how to get permission for the socket, as the end of a sentence: usually the command that joins its group."""
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
