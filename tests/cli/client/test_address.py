"""Which socket hippoctl connects to, and that the daemon would listen on the same."""

from pathlib import Path

import pytest

from cli.client.address import find_socket
from cli.errors import CommandError, Exit
from daemon.config import load_config
from daemon.contract import paths

SYSTEM_CONFIG = paths.SYSTEM_CONFIG
"""The place itself, which the tests replace."""


def config(path: Path, socket: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'[api]\nsocket = "{socket}"\n')
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setattr(paths, "SYSTEM_CONFIG", tmp_path / "etc" / "config.toml")
    monkeypatch.setenv("HOME", str(tmp_path))
    return {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "xdg"), "XDG_RUNTIME_DIR": str(tmp_path / "run")}


def test_socket_path_comes_from_flag_variables_then_configuration_files(tmp_path: Path, home: dict[str, str]) -> None:
    def found(flag: str | None = None, **environ: str) -> Path:
        return find_socket(flag, home | environ, tmp_path).path

    assert found() == tmp_path / "run/hippod.sock"
    config(tmp_path / "config.toml", "var/here.sock")
    assert found() == tmp_path / "var/here.sock"
    config(tmp_path / "etc/config.toml", "/run/system.sock")
    assert found() == Path("/run/system.sock")
    config(tmp_path / "xdg/hippod/config.toml", "~/own.sock")
    assert found() == tmp_path / "own.sock"
    config(tmp_path / "named.toml", "$XDG_RUNTIME_DIR/named.sock")
    assert found(HIPPOD_CONFIG="named.toml") == tmp_path / "run/named.sock"
    assert found(HIPPOD_API__SOCKET="x.sock", HIPPOD_CONFIG="named.toml") == tmp_path / "x.sock"
    assert found(HIPPOD_SOCKET="y.sock", HIPPOD_API__SOCKET="x.sock") == tmp_path / "y.sock"
    assert found("z.sock", HIPPOD_SOCKET="y.sock") == tmp_path / "z.sock"


@pytest.mark.parametrize("socket", ["/run/a", "var/a.sock", "../a", "~/a", "${HOME}/a", "$XDG_RUNTIME_DIR/a"])
def test_client_and_daemon_read_the_same_socket_path_from_a_file(
    tmp_path: Path, home: dict[str, str], socket: str
) -> None:
    file = config(tmp_path / "sub/config.toml", socket)
    environ = home | {"HIPPOD_CONFIG": str(file)}
    assert find_socket(None, environ, tmp_path).path == load_config(None, environ).api.socket


def test_client_and_daemon_have_the_same_default_socket_path(tmp_path: Path, home: dict[str, str]) -> None:
    default = find_socket(None, home, tmp_path).path
    assert default == load_config(config(tmp_path / "named.toml", str(paths.SOCKET)), home).api.socket
    assert Path("/etc/hippod/config.toml") == SYSTEM_CONFIG
    (tmp_path / "config.toml").write_text("")
    environ = home | {"HIPPOD_CONFIG": str(tmp_path / "config.toml")}
    assert find_socket(None, environ, tmp_path).path == load_config(None, environ).api.socket


def test_unreadable_configuration_is_an_error_that_names_it(tmp_path: Path, home: dict[str, str]) -> None:
    (tmp_path / "bad.toml").write_text("[api\n")
    for name, said in (("absent.toml", "does not exist"), ("bad.toml", "cannot be read")):
        with pytest.raises(CommandError, match=said) as failure:
            find_socket(None, home | {"HIPPOD_CONFIG": name}, tmp_path)
        assert "--socket" in str(failure.value.hint)


@pytest.mark.parametrize("place", ["flag", "HIPPOD_SOCKET", "HIPPOD_API__SOCKET", "HIPPOD_CONFIG"])
def test_socket_path_with_an_unknown_user_is_a_usage_error(tmp_path: Path, home: dict[str, str], place: str) -> None:
    nowhere = "~no-such-user/s"
    flag, environ = (nowhere, home) if place == "flag" else (None, home | {place: nowhere})
    with pytest.raises(CommandError, match="~no-such-user/s") as raised:
        find_socket(flag, environ, tmp_path)
    assert raised.value.code is Exit.USAGE


def test_a_path_that_is_too_long_for_a_socket_is_used_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    monkeypatch.chdir(deep)
    assert find_socket("s", {}, deep).connectable == "s"
