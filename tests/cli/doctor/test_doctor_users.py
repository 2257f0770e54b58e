"""`doctor` as it is run: by a member of hippod's group, to whom hippod's directories are shut; and one that goes on."""

import grp
import os
import socket
from pathlib import Path

import pytest

from cli.commands import doctor as doctor_command
from tests.cli.doctor.test_doctor import by_name
from tests.cli.sample_answers import STATUS
from tests.cli.scripted_daemon import Here, Scripted, Shell

WELL = STATUS | {"failed": 0, "sources": STATUS["sources"][:1]}


@pytest.fixture
def shut(tmp_path: Path) -> Path:
    """A directory that is another user's alone, as the package's /var/lib/hippod is."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory away")
    place = tmp_path / "shut"
    place.mkdir(mode=0o700)
    os.chown(place, 65534, -1)
    return place


@pytest.mark.process
def test_a_store_that_this_user_cannot_see_is_a_warning(
    hippoctl: Shell, scripted: Scripted, tmp_path: Path, shut: Path
) -> None:
    scripted.answers["GET /v1/status"] = WELL
    (tmp_path / "config.toml").write_text(
        f'[store]\npath = "{shut}/store"\n[encoder]\nbackend = "hash"\n[[folder]]\npath = "drive"\n'
    )
    (tmp_path / "drive").mkdir()
    ended = hippoctl("--json", "doctor")
    assert ended.err == ""
    checks = by_name(ended)
    found = checks["store directory"]
    assert (found["status"], found["hint"]) == ("warn", "run `sudo hippoctl doctor`")
    assert found["detail"] == f"{shut}/store is not visible to this user"
    assert {"python", "inotify", "packages", "memory", "disk", "llm", "socket", "daemon", "documents"} <= set(checks)
    assert not any("itself failed" in check["hint"] for check in checks.values())
    assert ended.code == 0, checks


@pytest.mark.process
def test_a_folder_or_token_that_this_user_may_not_read_is_a_warning(
    hippoctl: Shell, scripted: Scripted, tmp_path: Path, shut: Path
) -> None:
    scripted.answers["GET /v1/status"] = WELL
    api = f'[api]\ntcp = "127.0.0.1:7411"\ntoken_file = "{shut}/token"\n'
    (tmp_path / "config.toml").write_text(f'{api}[[folder]]\npath = "{shut}"\n')
    ended = hippoctl("--json", "doctor")
    found = by_name(ended)["configuration"]
    assert (ended.code, found["status"], "sudo hippoctl doctor" in found["hint"]) == (0, "warn", True)
    assert f"{shut}/token" in found["detail"]
    with (tmp_path / "config.toml").open("a") as file:
        file.write("[store]\npth = 1\n")
    assert hippoctl("--json", "doctor").code == 2


@pytest.mark.process
def test_socket_in_an_inaccessible_directory_exits_with_3_and_hints_at_sudo(hippoctl: Shell, shut: Path) -> None:
    ended = hippoctl("--json", "--socket", str(shut / "s"), "doctor")
    found = by_name(ended)["socket"]
    assert (ended.code, "sudo hippoctl doctor" in found["hint"]) == (3, True)


@pytest.mark.process
def test_error_about_a_socket_of_another_group_names_the_command_to_join_it(
    hippoctl: Shell, shut: Path, tmp_path: Path
) -> None:
    place = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place))
        listening.listen()
        os.chown(place, 65534, grp.getgrnam("nogroup").gr_gid)
        place.chmod(0o660)
        ended = hippoctl("--socket", str(place), "status")
        assert ended.code == 3
        assert "Join the group nogroup: `sudo usermod -aG nogroup root`, then log out and in again" in ended.err
        doctor = by_name(hippoctl("--json", "--socket", str(place), "doctor"))
        assert "sudo usermod -aG nogroup root" in doctor["socket"]["hint"]
        place.chmod(0o600)
        ended = hippoctl("--socket", str(place), "status")
        assert "usermod" not in ended.err, "the group may not use the socket"
        assert "with sudo" in ended.err


@pytest.mark.daemon
def test_folder_of_an_unknown_user_is_a_failed_configuration_check(
    here: Here, scripted: Scripted, tmp_path: Path
) -> None:
    scripted.answers["GET /v1/status"] = WELL
    (tmp_path / "config.toml").write_text('[[folder]]\npath = "~no-such-user/notes"\n')
    checks = by_name(here("--json", "doctor"))
    assert checks["configuration"]["status"] == "fail"
    assert checks["daemon"]["status"] == "ok"


@pytest.mark.daemon
@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), PermissionError(13, "Permission denied", "/x")])
def test_inspection_that_raises_becomes_a_warning_and_other_checks_run(
    here: Here, scripted: Scripted, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    def broken(*_: object) -> None:
        raise error

    scripted.answers["GET /v1/status"] = WELL
    monkeypatch.setattr(doctor_command, "inspection", broken)
    ended = here("--json", "doctor")
    checks = by_name(ended)
    assert checks["inspection"]["status"] == "warn"
    assert checks["inspection"]["hint"]
    assert (ended.code, checks["daemon"]["status"]) == (0, "ok")
