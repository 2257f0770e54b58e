"""A daemon that gives scripted answers over a real Unix socket, and hippoctl as a real process."""

import io
import json
import socketserver
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from cli.command_line import run
from tests.e2e.preloaded_start import HIPPOCTL
from tests.e2e.real_hippod import Ran, run_preloaded


@dataclass(frozen=True)
class ReceivedRequest:
    """A request as it arrived. `path` is as it was sent, percent-encoded."""

    method: str
    path: str
    query: str
    body: Any
    headers: dict[str, str]


@dataclass(frozen=True)
class Reply:
    """`pieces` are streamed (chunked); an exception among them closes the connection there."""

    body: Any = None
    status: int = 200
    pieces: Sequence[bytes | Exception] | None = None


Answer = Reply | dict[str, Any] | Callable[[ReceivedRequest], "Reply | dict[str, Any]"]


@dataclass
class Scripted:
    """Answers by "METHOD /path"; what was asked is in `asked`."""

    socket: Path
    answers: dict[str, Answer] = field(default_factory=dict)
    asked: list[ReceivedRequest] = field(default_factory=list)

    def reply(self, asked: ReceivedRequest) -> Reply:
        self.asked.append(asked)
        answer = self.answers.get(f"{asked.method} {asked.path}")
        if answer is None:
            problem = {
                "type": "urn:hippod:problem:not-found",
                "title": "Not found",
                "status": 404,
                "detail": "No such.",
            }
            return Reply(problem, 404)
        given = answer(asked) if callable(answer) else answer
        return given if isinstance(given, Reply) else Reply(given)


def problem(kind: str, status: int, detail: str, **more: Any) -> Reply:
    body = {"type": f"urn:hippod:problem:{kind}", "title": kind, "status": status, "detail": detail} | more
    return Reply(body, status)


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 16
    scripted: Scripted

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A client that goes before it was answered is no error, and what is printed here is taken for the client's words.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def address_string(self) -> str:
        return "unix"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding") == "chunked":
            whole = b""
            while size := int(self.rfile.readline(), 16):
                whole += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return whole
        return self.rfile.read(int(self.headers.get("content-length", 0)))

    def _answer(self) -> None:
        raw = self._body()
        path, _, query = self.path.partition("?")
        headers = {key.lower(): value for key, value in self.headers.items()}
        asked = ReceivedRequest(self.command, path, query, json.loads(raw) if raw else None, headers)
        assert isinstance(self.server, _Server)
        reply = self.server.scripted.reply(asked)
        try:
            self._send(reply)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        if reply.pieces is None:
            body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            self.send_header("content-type", "application/json" if reply.status < 400 else "application/problem+json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for piece in reply.pieces:
            if isinstance(piece, Exception):
                self.close_connection = True
                return
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    do_GET = do_POST = do_DELETE = _answer


@contextmanager
def serving() -> Iterator[Scripted]:
    # Not tmp_path: a Unix socket's path has 107 bytes at most.
    with tempfile.TemporaryDirectory(prefix="hippoctl-") as directory:
        daemon = Scripted(Path(directory) / "s")
        with _Server(str(daemon.socket), _Handler) as server:
            server.scripted = daemon
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
            thread.start()
            yield daemon
            server.shutdown()
            thread.join()


@dataclass(frozen=True)
class Shell:
    """Runs hippoctl in `cwd`, with no configuration but what a test writes.

    A call forks a process that has imported hippoctl, and to which file permissions apply. `start` starts Python anew.
    """

    cwd: Path
    environ: dict[str, str]

    def __call__(self, *arguments: str, stdin: bytes | None = None, **environ: str) -> Ran:
        return run_preloaded(HIPPOCTL, self.cwd, arguments, self.environ | environ, stdin or b"", timeout_s=60)

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "cli.main", *arguments]

    def start(self, *arguments: str, **streams: Any) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(self.command(*arguments), cwd=self.cwd, env=self.environ, **streams)


class Here(Shell):
    """Runs hippoctl in this process, with streams of bytes as a process has them."""

    def __call__(self, *arguments: str, stdin: bytes | None = None, **environ: str) -> Ran:
        assert not environ
        given = sys.stdin, sys.stdout, sys.stderr
        sys.stdin = io.TextIOWrapper(io.BytesIO(stdin or b""))
        sys.stdout, sys.stderr = out, err = [io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in "12"]
        try:
            code = run(arguments)
        finally:
            sys.stdin, sys.stdout, sys.stderr = given
        written, told = (stream.detach().getvalue().decode() for stream in (out, err))
        return Ran(code, written, told)
