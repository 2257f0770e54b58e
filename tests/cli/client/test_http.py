"""Requests over a Unix socket: each way that one can end has its own message and exit code."""

import socket
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from cli.client import http
from cli.client.address import Address
from cli.client.http import Client, RequestRefused
from cli.errors import CommandError, Exit
from tests.cli.scripted_daemon import Reply, Scripted


def client(path: Path) -> Client:
    return Client(Address(path, "the test"))


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        listening.listen()
        yield listening


def test_body_is_sent_and_answer_received_in_pieces(scripted: Scripted) -> None:
    scripted.answers["POST /b"] = Reply(pieces=[b'{"n"', b": 2}"])
    assert client(scripted.socket).call("POST", "/b", lambda: iter([b'{"q"', b"", b": 2}"])) == {"n": 2}
    assert [asked.body for asked in scripted.asked] == [{"q": 2}]


def test_lines_are_complete_however_the_answer_is_cut(scripted: Scripted) -> None:
    scripted.answers["GET /lines"] = Reply(pieces=[b"data: S\xc3", b"\xb8ren\r\nsecond\n", b"\nlast"])
    with client(scripted.socket).stream("/lines", accept="*/*") as pieces:
        assert list(http._lines(pieces)) == ["data: Søren", "second", "", "last"]


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhalf",
        b"HTTP/1.1 ",
        b"",
        b"220 mail.example.org ESMTP\r\n",
    ],
)
def test_answer_that_breaks_off_is_a_lost_connection(tmp_path: Path, listening: socket.socket, answer: bytes) -> None:
    def break_off() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(answer)

    thread = Thread(target=break_off)
    thread.start()
    with pytest.raises(CommandError, match="closed the connection before it had answered") as raised:
        client(tmp_path / "s").call("GET", "/cut")
    assert raised.value.code == Exit.NO_DAEMON
    thread.join()


def test_refusal_sent_before_the_body_is_complete_is_reported(tmp_path: Path, listening: socket.socket) -> None:
    def refuse() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(1000)
            problem = b'{"title": "Too large"}'
            connection.sendall(b"HTTP/1.1 413 Too Large\r\ncontent-length: %d\r\n\r\n%s" % (len(problem), problem))
            connection.shutdown(socket.SHUT_RDWR)

    thread = Thread(target=refuse)
    thread.start()
    with pytest.raises(RequestRefused, match="Too large"):
        client(tmp_path / "s").call("POST", "/v1/import", lambda: (b"x" * 65_536 for _ in range(200)))
    thread.join()


def test_silent_daemon_is_a_timeout(tmp_path: Path, listening: socket.socket) -> None:
    with pytest.raises(CommandError, match="has not answered in time") as raised:
        client(tmp_path / "s").call("GET", "/", limit_s=0.05)
    assert raised.value.code == Exit.TIMED_OUT


def test_daemon_that_reads_no_request_gives_exit_code_no_daemon(tmp_path: Path, listening: socket.socket) -> None:
    with pytest.raises(CommandError, match="it accepts no requests") as raised:
        client(tmp_path / "s").call("POST", "/", b"x" * 8_000_000, limit_s=0.2)
    assert raised.value.code == Exit.NO_DAEMON


def test_error_while_reading_the_body_is_raised_unchanged(scripted: Scripted) -> None:
    def unreadable() -> Iterator[bytes]:
        yield b"{"
        raise OSError("the disk fails")

    with pytest.raises(OSError, match="the disk fails"):
        client(scripted.socket).call("POST", "/v1/import", unreadable)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent", r"no hippod answers on .*absent\.$"),
        ("file", r"no hippod answers on .*file \(the socket exists, but no process listens on it\)\.$"),
        ("file/s", r"no hippod answers on .*file/s \(Not a directory\)\.$"),
        ("x" * 200, r"no hippod answers on .*x \(AF_UNIX path too long\)\.$"),
    ],
)
def test_connection_error_names_the_cause(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CommandError, match=message) as raised:
        client(tmp_path / name).call("GET", "/")
    assert raised.value.code == Exit.NO_DAEMON
