"""A socket that systemd made: where its path, mode or group is not what the configuration says, the log says what decides."""

import grp
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from daemon.config.sections import Api
from daemon.runtime.socket_activation import taken_address


@pytest.fixture
def given(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as made:
        made.bind(str(tmp_path / "s"))
        (tmp_path / "s").chmod(0o660)
        made.listen(1)
        yield made


def told(given: socket.socket, **api: Any) -> list[dict[str, Any]]:
    settings = Api(socket=given.getsockname(), **api)
    with capture_logs() as logged:
        assert taken_address(given, settings) == given.getsockname()
    return [dict(event) for event in logged]


def other_group() -> str:
    """A group that files of this process do not get."""
    return next(each.gr_name for each in grp.getgrall() if each.gr_gid != os.getegid())


def own_group() -> str:
    return grp.getgrgid(os.getegid()).gr_name


def test_a_mode_and_a_group_that_have_no_effect_are_told_with_what_decides(given: socket.socket) -> None:
    [event] = told(given, mode="0600", group=other_group())
    assert (event["event"], event["log_level"]) == ("socket_access_differs", "warning")
    assert event["configured"] == f"mode 0600, group {other_group()}"
    assert event["listening"] == f"mode 0660, group {own_group()}"
    for word in ("SocketMode=", "SocketGroup=", "systemctl edit hippod.socket"):
        assert word in event["hint"]


def test_only_what_differs_is_told(given: socket.socket) -> None:
    [event] = told(given, mode="0660", group=other_group())
    assert event["configured"] == f"group {other_group()}"
    [event] = told(given, mode="0666", group=own_group())
    assert event["configured"] == "mode 0666"


def test_nothing_is_told_of_what_agrees_or_was_not_written(given: socket.socket) -> None:
    assert told(given, mode="0660", group=own_group()) == []
    Path(given.getsockname()).chmod(0o666)
    assert told(given) == []


def test_another_path_is_told_and_a_socket_without_a_file_has_no_mode(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as made:
        made.bind(str(tmp_path / "s"))
        (tmp_path / "s").unlink()
        with capture_logs() as logged:
            assert taken_address(made, Api(socket=tmp_path / "t", mode="0600")) == str(tmp_path / "s")
    assert [event["event"] for event in logged] == ["socket_differs"]
