"""One connection serves many requests, and every way that one can end has an error of its own."""

import json
import socket
from pathlib import Path
from threading import Thread

import pytest

from cli.client.connection import AnswerTooLate, Connection, ConnectionLost, ConnectionRefused
from tests.cli.scripted_daemon import Reply, Scripted


def connection(path: Path) -> Connection:
    return Connection(str(path), 5.0)


def test_requests_share_a_connection_until_it_ends(scripted: Scripted) -> None:
    scripted.answers |= {"GET /a": {"n": 1}, "POST /b": Reply(pieces=[b'{"n"', b": 2}"])}
    made = connection(scripted.socket)
    assert json.loads(made.request("GET", "/a", {}, None, 5.0).read()) == {"n": 1}
    first = made._socket
    assert json.loads(made.request("POST", "/b", {}, b'{"q": 1}', 5.0).read()) == {"n": 2}
    assert made._socket is first
    made.request("POST", "/b", {}, iter([b'{"q"', b": 2}"]), 5.0)  # not read to its end: the next one needs another
    assert json.loads(made.request("GET", "/a", {}, None, 5.0).read()) == {"n": 1}
    assert made._socket is not first
    made.close()
    assert [asked.body for asked in scripted.asked] == [None, {"q": 1}, {"q": 2}, None]


def test_lines_come_whole_however_they_are_cut(scripted: Scripted) -> None:
    scripted.answers["GET /lines"] = Reply(pieces=[b"data: S\xc3", b"\xb8ren\r\nsecond\n", b"\nlast"])
    made = connection(scripted.socket)
    assert list(made.request("GET", "/lines", {}, None, 5.0).lines()) == ["data: Søren", "second", "", "last"]
    made.close()


def test_an_answer_that_breaks_off_is_a_lost_connection(scripted: Scripted) -> None:
    scripted.answers["GET /cut"] = Reply(pieces=[b"half", OSError()])
    made = connection(scripted.socket)
    response = made.request("GET", "/cut", {}, None, 5.0)
    with pytest.raises(ConnectionLost):
        response.read()
    made.close()


def test_a_refusal_that_comes_before_all_was_sent_is_read(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        listening.listen()

        def refuse() -> None:
            taken, _ = listening.accept()
            with taken:
                taken.recv(1000)
                taken.sendall(b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
                taken.shutdown(socket.SHUT_RDWR)

        thread = Thread(target=refuse)
        thread.start()
        made = connection(tmp_path / "s")
        response = made.request("POST", "/v1/import", {}, (b"x" * 65_536 for _ in range(200)), 5.0)
        assert (response.status, response.read()) == (413, b"{}")
        made.close()
        thread.join()


def test_silence_and_absence_have_names(tmp_path: Path) -> None:
    with pytest.raises(ConnectionRefused, match="No such file"):
        connection(tmp_path / "absent").request("GET", "/", {}, None, 5.0)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        listening.listen()
        made = connection(tmp_path / "s")
        with pytest.raises(AnswerTooLate):
            made.request("GET", "/", {}, None, 0.05)
        made.close()
