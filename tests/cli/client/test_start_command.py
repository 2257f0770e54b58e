"""How to start the hippod that does not answer: by its unit, where the socket is a unit's."""

from pathlib import Path

import pytest

from cli.client import http
from cli.client.address import Address


@pytest.fixture
def units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(http, "SYSTEMD_RUNS", tmp_path)
    monkeypatch.setattr(http, "UNIT_FOLDERS", (tmp_path / "etc", tmp_path / "usr"))
    (tmp_path / "usr").mkdir()
    return tmp_path / "usr"


@pytest.mark.parametrize(
    ("socket", "unit", "command"),
    [
        ("/run/hippod/hippod.sock", "hippod", "sudo systemctl start hippod.socket hippod.service"),
        ("/run/hippod-notes/hippod.sock", "hippod@", "sudo systemctl start hippod@notes.socket hippod@notes.service"),
        ("/home/ada/var/hippod.sock", "hippod", "hippod --config /etc/hippod/config.toml"),
    ],
)
def test_start_command_uses_systemctl_for_the_socket_of_a_unit(
    units: Path, socket: str, unit: str, command: str
) -> None:
    (units / f"{unit}.service").touch()
    address = Address(Path(socket), "--socket", Path("/etc/hippod/config.toml"))
    assert http.start_command(address) == command
    (units / f"{unit}.service").unlink()
    assert http.start_command(address) == "hippod --config /etc/hippod/config.toml"
