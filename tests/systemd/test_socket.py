"""What is taken from a service manager, and what is refused: one Unix stream socket that listens."""

import json
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from daemon.api import listen
from daemon.api.listen import ListenError, inherited_socket
from daemon.contract.http.routes import ProblemType
from tests.systemd.conftest import Manage
from tests.systemd.service_manager import ask_raw, read_all


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """`passed(socket)`: the environment in which this process has been given the socket, as its first descriptor."""
    copies: list[int] = []

    def give(given: socket.socket | int, **changed: str) -> dict[str, str]:
        copies.append(os.dup(given if isinstance(given, int) else given.fileno()))
        monkeypatch.setattr(listen, "FIRST_INHERITED_FD", copies[-1])
        return {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1", "LISTEN_FDNAMES": "api", "HOME": "/x"} | changed

    yield give
    for each in copies:
        with suppress(OSError):  # where the test has closed it
            os.close(each)


def unix(folder: Path, kind: socket.SocketKind = socket.SOCK_STREAM, listening: bool = True) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, kind)
    made.bind(str(folder / "s"))
    if listening:
        made.listen(8)
    return made


def test_a_listening_unix_socket_is_taken_and_hidden_from_children(passed, tmp_path):
    with unix(tmp_path) as given:
        environ = passed(given)
        taken = inherited_socket(environ)
        assert taken is not None
        assert taken.getsockname() == str(tmp_path / "s")
        assert not os.get_inheritable(taken.fileno())
        assert environ == {"HOME": "/x"}
        taken.close()


@pytest.mark.parametrize(
    "changed", [{"LISTEN_PID": "1"}, {"LISTEN_PID": ""}, {"LISTEN_FDS": "0"}, {"LISTEN_FDS": "x"}], ids=str
)
def test_sockets_passed_to_another_process_are_not_taken(passed, tmp_path, changed):
    with unix(tmp_path) as given:
        environ = passed(given, **changed)
        assert inherited_socket(environ) is None
        assert environ == {"HOME": "/x"}


def test_inherited_tcp_socket_is_refused(passed):
    with socket.create_server(("127.0.0.1", 0)) as given, pytest.raises(ListenError, match="token"):
        inherited_socket(passed(given))


def test_unsupported_inherited_sockets_are_refused_with_the_required_setting(passed, tmp_path):
    with unix(tmp_path, socket.SOCK_DGRAM, listening=False) as given, pytest.raises(ListenError, match="ListenStream="):
        inherited_socket(passed(given))
    (tmp_path / "s").unlink()
    with unix(tmp_path, listening=False) as given, pytest.raises(ListenError, match="Accept=no"):
        inherited_socket(passed(given))
    (tmp_path / "s").unlink()
    with unix(tmp_path) as given, pytest.raises(ListenError, match="passes 2 sockets"):
        inherited_socket(passed(given, LISTEN_FDS="2"))
    with (tmp_path / "file").open("w") as file, pytest.raises(ListenError, match="not a socket"):
        inherited_socket(passed(file.fileno()))


@pytest.mark.daemon
def test_socket_mode_that_differs_from_the_configuration_is_logged(manage: Manage) -> None:
    daemon = manage(activated=True, api={"mode": "0600"})
    daemon.socket.chmod(0o666)
    daemon.launch().until_ready()
    [event] = daemon.events("socket_access_differs")
    assert (event["configured"], event["listening"]) == ("mode 0600", "mode 0666")
    assert daemon.stop() == 0


@pytest.mark.daemon
def test_waiting_clients_get_503_if_hippod_cannot_start(manage: Manage) -> None:
    daemon = manage(activated=True, nonsense={"key": 1})
    waiting = [ask_raw(daemon.socket, '{"query": "x"}') for _ in range(3)]
    daemon.launch()
    assert daemon.process is not None and daemon.listening is not None
    assert daemon.process.wait(60) == 2
    for client in waiting:
        head, _, body = read_all(client).partition("\r\n\r\n")
        assert head.startswith("HTTP/1.1 503 ")
        assert json.loads(body)["type"] == ProblemType.CANNOT_START
    # Nothing is left in the socket, so systemd does not start hippod again until the next client comes.
    daemon.listening.setblocking(False)
    with pytest.raises(BlockingIOError):
        daemon.listening.accept()
