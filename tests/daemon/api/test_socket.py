"""The Unix socket: access is restricted, sockets of other programs stay, and no files are left behind."""

import asyncio
import grp
import os
import signal
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from structlog.testing import capture_logs

from daemon.api.event_hub import EventHub
from daemon.api.listen import ListenError, bind_unix
from daemon.api.server import ApiServer
from daemon.api.settings import ApiSettings
from tests.daemon.api.harness import Memory, api_server, loop_in_thread, socket_folder


@pytest.fixture
def folder() -> Iterator[Path]:
    with socket_folder() as found:
        yield found


@pytest.fixture
def run() -> Iterator[Callable[[Any], Any]]:
    with loop_in_thread() as found:
        yield found


async def started(settings: ApiSettings, inherited: socket.socket | None = None) -> ApiServer:
    server = api_server(Memory(), EventHub(), settings, inherited)
    await server.start()
    return server


def answers(path: Path) -> bool:
    with httpx2.Client(transport=httpx2.HTTPTransport(uds=str(path)), base_url="http://hippod") as client:
        return client.get("/healthz").status_code == 200


@pytest.mark.parametrize("mode", [0o600, 0o660, 0o666])
def test_the_socket_has_the_configured_mode_whatever_the_umask(folder: Path, run: Any, mode: int) -> None:
    before = os.umask(0o077)
    try:
        server = run(started(ApiSettings(folder / "s", mode=mode)))
    finally:
        os.umask(before)
    assert stat.S_IMODE((folder / "s").stat().st_mode) == mode
    run(server.stop(1.0))


def test_the_socket_gets_the_configured_group(folder: Path, run: Any) -> None:
    name = grp.getgrgid(os.getgroups()[-1] if os.getgroups() else os.getgid()).gr_name
    server = run(started(ApiSettings(folder / "s", group=name)))
    assert (folder / "s").stat().st_gid == grp.getgrnam(name).gr_gid
    assert stat.S_IMODE((folder / "s").stat().st_mode) == 0o660
    run(server.stop(1.0))


def test_unknown_socket_group_is_an_error_and_leaves_no_file(folder: Path) -> None:
    with pytest.raises(ListenError, match="no-such-group"):
        bind_unix(folder / "s", 0o660, "no-such-group")
    assert not (folder / "s").exists()


def test_connections_are_refused_until_socket_mode_and_group_are_set(folder: Path) -> None:
    with bind_unix(folder / "s", 0o600, None), socket.socket(socket.AF_UNIX) as early:
        with pytest.raises(ConnectionRefusedError):
            early.connect(str(folder / "s"))
        assert stat.S_IMODE((folder / "s").stat().st_mode) == 0o600


def test_the_parent_directory_is_made(folder: Path, run: Any) -> None:
    path = folder / "run" / "hippod" / "s"
    server = run(started(ApiSettings(path)))
    assert answers(path)
    run(server.stop(1.0))
    assert not path.exists()


def test_the_socket_of_a_dead_process_is_replaced(folder: Path, run: Any) -> None:
    path = folder / "s"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
        dead.listen()
    assert path.exists()
    server = run(started(ApiSettings(path)))
    assert answers(path)
    run(server.stop(1.0))


def test_socket_of_a_running_process_is_an_error_with_its_process_id(folder: Path, run: Any) -> None:
    path = folder / "s"
    server = run(started(ApiSettings(path)))
    with pytest.raises(ListenError, match=f"in use by process {os.getpid()}"):
        run(started(ApiSettings(path)))
    assert answers(path)
    run(server.stop(1.0))


def test_a_file_that_is_no_socket_is_never_removed(folder: Path, run: Any) -> None:
    (folder / "s").write_text("mine")
    with pytest.raises(ListenError, match="not a socket"):
        run(started(ApiSettings(folder / "s")))
    assert (folder / "s").read_text() == "mine"


def test_a_link_to_a_socket_is_not_followed(folder: Path) -> None:
    (folder / "s").symlink_to(folder / "elsewhere")
    with pytest.raises(ListenError, match="not a socket"):
        bind_unix(folder / "s", 0o600, None)


def test_too_long_socket_path_is_an_error_with_the_limit(folder: Path) -> None:
    with pytest.raises(ListenError, match="107 bytes"):
        bind_unix(folder / ("x" * 120), 0o600, None)


def test_a_directory_that_cannot_be_made_is_an_error(folder: Path) -> None:
    (folder / "file").write_text("")
    with pytest.raises(ListenError, match="cannot create the socket"):
        bind_unix(folder / "file" / "s", 0o600, None)


def test_stopping_keeps_the_socket_of_a_newer_server(folder: Path, run: Any) -> None:
    path = folder / "s"
    first = run(started(ApiSettings(path)))
    path.unlink()
    second = run(started(ApiSettings(path)))
    run(first.stop(1.0))
    assert answers(path)
    run(second.stop(1.0))
    assert not path.exists()


def test_inherited_socket_is_used_and_not_removed_on_stop(folder: Path, run: Any) -> None:
    path = folder / "activated"
    made = bind_unix(path, 0o600, None)
    made.listen()
    server = run(started(ApiSettings(folder / "unused"), inherited=made))
    assert answers(path)
    run(server.stop(1.0))
    assert path.exists()
    assert not (folder / "unused").exists()


def test_failed_tcp_listen_leaves_no_unix_socket(folder: Path, run: Any) -> None:
    token = folder / "token"
    token.write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = ApiSettings(folder / "s", tcp=("127.0.0.1", taken.getsockname()[1]), token_file=token)
        with pytest.raises(ListenError, match=r"cannot listen on 127\.0\.0\.1"):
            run(started(settings))
    assert not (folder / "s").exists()


def test_the_server_leaves_the_signal_handlers_alone(folder: Path) -> None:
    def handlers() -> list[Any]:
        return [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]

    async def serve() -> tuple[list[Any], list[Any]]:
        before = handlers()
        server = await started(ApiSettings(folder / "s"))
        during = handlers()
        await server.stop(1.0)
        return before, during

    before, during = asyncio.run(serve())
    assert during == before


def test_changes_are_logged_with_the_peers_process_and_user_and_no_content(folder: Path, run: Any) -> None:
    path = folder / "s"
    server = run(started(ApiSettings(path)))
    with capture_logs() as logged:
        transport = httpx2.HTTPTransport(uds=str(path))
        with httpx2.Client(transport=transport, base_url="http://hippod") as client:
            client.post("/v1/documents", json={"documents": [{"id": "1", "text": "hidden words"}]})
            client.get("/v1/documents/a%20hidden%20phrase")
            client.request("DELETE", "/v1/sessions", json={"names": ["hidden-plans"]})
            run(server.stop(5.0))
    requests = [each for each in logged if each["event"] == "request"]
    who = {"pid": os.getpid(), "uid": os.getuid(), "gid": os.getgid()}
    assert [(each["log_level"], each["method"], each["route"]) for each in requests] == [
        ("info", "POST", "/v1/documents"),
        ("debug", "GET", "/v1/documents/{uri}"),
        ("info", "DELETE", "/v1/sessions"),
    ]
    assert all({**each, **who} == each and each["took_ms"] >= 0 for each in requests)
    assert "hidden" not in str(logged)
