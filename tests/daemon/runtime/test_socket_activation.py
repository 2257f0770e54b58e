"""A socket made by systemd: if its path, mode or group differs from the configuration, the log says which applies."""

import grp
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from daemon.config.sections import Api
from daemon.runtime.service_manager import inherited_address


@pytest.fixture
def inherited(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as made:
        made.bind(str(tmp_path / "s"))
        (tmp_path / "s").chmod(0o660)
        made.listen(1)
        yield made


def logged(inherited: socket.socket, **api: Any) -> list[dict[str, Any]]:
    settings = Api(socket=inherited.getsockname(), **api)
    with capture_logs() as logged:
        assert inherited_address(inherited, settings) == inherited.getsockname()
    return [dict(event) for event in logged]


def other_group() -> str:
    """Returns a group that new files of this process do not get."""
    return next(each.gr_name for each in grp.getgrall() if each.gr_gid != os.getegid())


def own_group() -> str:
    return grp.getgrgid(os.getegid()).gr_name


def test_ineffective_socket_mode_and_group_are_logged_with_the_unit_settings(inherited: socket.socket) -> None:
    [event] = logged(inherited, mode="0600", group=other_group())
    assert (event["event"], event["log_level"]) == ("socket_access_differs", "warning")
    assert event["configured"] == f"mode 0600, group {other_group()}"
    assert event["listening"] == f"mode 0660, group {own_group()}"
    for word in ("SocketMode=", "SocketGroup=", "systemctl edit hippod.socket"):
        assert word in event["hint"]


def test_only_differing_socket_settings_are_logged(inherited: socket.socket) -> None:
    [event] = logged(inherited, mode="0660", group=other_group())
    assert event["configured"] == f"group {other_group()}"
    [event] = logged(inherited, mode="0666", group=own_group())
    assert event["configured"] == "mode 0666"


def test_equal_or_unset_socket_settings_are_not_logged(inherited: socket.socket) -> None:
    assert logged(inherited, mode="0660", group=own_group()) == []
    Path(inherited.getsockname()).chmod(0o666)
    assert logged(inherited) == []


def test_different_socket_path_is_logged_and_a_deleted_socket_has_no_mode(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as made:
        made.bind(str(tmp_path / "s"))
        (tmp_path / "s").unlink()
        with capture_logs() as logged:
            assert inherited_address(made, Api(socket=tmp_path / "t", mode="0600")) == str(tmp_path / "s")
    assert [event["event"] for event in logged] == ["socket_differs"]
