"""The systemd units and what goes with them: valid, hardened, and in step with the daemon and the configurations beside."""

import configparser
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from daemon.config import Config, ConfigError, load_config, model_key, unsupported
from daemon.config_types.path_validators import ABSENT, read_token

SYSTEMD = Path(__file__).parents[2] / "systemd"
SERVICES = ["hippod.service", "hippod@.service", "hippod-vllm.service", "hippod-worker.service"]
UNITS = [*SERVICES, "hippod.socket", "hippod@.socket"]
DROP_INS = sorted(path.name for path in (SYSTEMD / "drop-ins").iterdir())
ANALYZE = shutil.which("systemd-analyze")
needs_systemd = pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed")


def settings_of(name: str) -> list[tuple[str, str]]:
    lines = (SYSTEMD / name).read_text().partition("[Service]")[2].partition("[Install]")[0].splitlines()
    return [(key, value) for key, _, value in (line.partition("=") for line in lines if line and line[0] != "#")]


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    assert ANALYZE is not None
    return subprocess.run([ANALYZE, *arguments], capture_output=True, text=True, timeout=60)


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """All units in one folder, with a program that is there: what they start is installed where they are, not here."""
    for name in UNITS:
        (tmp_path / name).write_text(re.sub(r"/opt/[a-z/-]+/bin/[a-z-]+", "/bin/true", (SYSTEMD / name).read_text()))
    return tmp_path


def with_drop_in(folder: Path, name: str) -> Path:
    place = folder / "hippod.service.d"
    place.mkdir()
    shutil.copy(SYSTEMD / "drop-ins" / name, place)
    return folder / "hippod.service"


def exposure(unit: Path) -> float:
    done = analyze("security", "--offline=true", "--threshold=20", "--no-pager", unit)
    if "unrecognized option" in done.stderr:
        pytest.skip("this systemd-analyze cannot look at a unit that is not loaded")
    level = re.search(r"exposure level for [^:]+: ([0-9.]+)", done.stdout)
    assert level is not None, done.stdout[-600:] + done.stderr
    return float(level[1])


@pytest.mark.systemd
@needs_systemd
@pytest.mark.parametrize("name", UNITS)
def test_systemd_analyze_verify_reports_nothing(installed: Path, name: str) -> None:
    done = analyze("verify", "--man=no", "--recursive-errors=no", installed / name)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.systemd
@needs_systemd
@pytest.mark.parametrize("name", SERVICES)
def test_security_exposure_of_units_is_at_most_two(installed: Path, name: str) -> None:
    assert exposure(installed / name) <= 2.0


@pytest.mark.systemd
@needs_systemd
@pytest.mark.parametrize("name", DROP_INS)
def test_a_drop_in_is_valid_and_leaves_the_unit_hardened(installed: Path, name: str) -> None:
    unit = with_drop_in(installed, name)
    done = analyze("verify", "--man=no", "--recursive-errors=no", unit)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert exposure(unit) <= 2.0


@pytest.mark.parametrize("name", SERVICES)
def test_every_unit_setting_except_lists_is_written_once(name: str) -> None:
    keys = [key for key, _ in settings_of(name)]
    assert {key for key in keys if keys.count(key) > 1} <= {
        "SystemCallFilter",
        "LoadCredential",
        "SetCredential",
        "Environment",
        "ExecReload",
    }
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.read(SYSTEMD / name)
    assert parser.sections() == ["Unit", "Service", "Install"]


def test_unit_waits_for_readiness_and_does_not_restart_after_exit_2_or_3() -> None:
    unit = (SYSTEMD / "hippod.service").read_text()
    assert re.findall(r"(?m)^(?:Wants|Requires|BindsTo)=(?!network)(.*)", unit) == ["hippod.socket"]
    assert "\nBindsTo=hippod.socket\nAfter=hippod.socket\n" in unit
    settings = dict(settings_of("hippod.service"))
    assert settings["Type"] == "notify"
    assert settings["Restart"] == "on-failure"
    assert settings["RestartPreventExitStatus"].split() == ["2", "3"]
    assert settings["ExecReload"].endswith("-HUP $MAINPID")
    assert int(settings["WatchdogSec"]) > 0


def test_systemd_waits_longer_than_the_daemon_takes_to_stop() -> None:
    assert int(dict(settings_of("hippod.service"))["TimeoutStopSec"]) > Config().daemon.stop_timeout_s


def test_template_unit_equals_the_unit_with_paths_of_an_instance() -> None:
    replaced = {
        "hippod/config.toml": "hippod/%i.toml",
        "credentials/": "credentials/%i-",
        "%t/hippod/": "%t/hippod-%i/",
        "try-restart hippod.socket": "try-restart hippod@%i.socket",
    }
    for (key, one), (other, instance) in zip(
        settings_of("hippod.service"), settings_of("hippod@.service"), strict=True
    ):
        for old, new in replaced.items():
            one = one.replace(old, new) if key != "SetCredential" else one.replace(old, old + "NAME-")
        if key in ("StateDirectory", "RuntimeDirectory", "WorkingDirectory"):
            one += "-%i"
        assert (key, one) == (other, instance)
    sockets = [(SYSTEMD / name).read_text() for name in ("hippod.socket", "hippod@.socket")]
    assert (
        sockets[0].replace("%t/hippod/", "%t/hippod-%i/").replace("Socket of hippod", "Socket of hippod for %i")
        == (sockets[1])
    )


@pytest.mark.parametrize(
    ("configuration", "service", "socket", "instance"),
    [
        ("hippod.toml", "hippod.service", "hippod.socket", ""),
        ("instance.toml", "hippod@.service", "hippod@.socket", "notes"),
    ],
)
def test_shipped_configuration_uses_the_directories_of_its_unit(
    tmp_path: Path, configuration: str, service: str, socket: str, instance: str
) -> None:
    settings = dict(settings_of(service))
    # The group is made when hippod is installed, the drive is the reader's.
    text = (SYSTEMD / configuration).read_text().replace('group = "hippod"', "").replace("/srv/notes", str(tmp_path))
    (tmp_path / "config.toml").write_text(text)
    config = load_config(tmp_path / "config.toml", {"HOME": "/nowhere"})
    assert config.store.path.parent == Path("/var/lib") / settings["StateDirectory"].replace("%i", instance)
    assert config.api.socket.parent == Path("/run") / settings["RuntimeDirectory"].replace("%i", instance)
    listens = re.search(r"ListenStream=%t(\S+)", (SYSTEMD / socket).read_text())
    assert listens is not None
    assert Path(f"/run{listens[1].replace('%i', instance)}") == config.api.socket


@pytest.mark.parametrize("name", ["hippod.service", "hippod@.service"])
def test_credential_is_read_from_systemd_and_a_missing_one_names_the_remedy(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = [value.partition(":")[0] for key, value in settings_of(name) if key == "LoadCredential"]
    stand_ins = dict(value.split(":", 1) for key, value in settings_of(name) if key == "SetCredential")
    assert loaded == list(stand_ins) == ["token", "llm-key"]
    for credential, text in stand_ins.items():
        assert "%" not in text, "systemd does not expand it there"
        assert text.startswith(ABSENT)
        (tmp_path / credential).write_text(text)
    file = tmp_path / "hippod.toml"
    file.write_text(
        '[api]\ntcp = "127.0.0.1:7411"\ntoken_file = "$CREDENTIALS_DIRECTORY/token"\n'
        '[llm]\nbase_url = "http://127.0.0.1:8000/v1"\nmodel = "m"\napi_key_file = "$CREDENTIALS_DIRECTORY/llm-key"\n'
    )
    environ = {"HOME": str(tmp_path), "CREDENTIALS_DIRECTORY": str(tmp_path)}
    with pytest.raises(ConfigError, match=r"systemd provides none: put it into credentials/\S*token"):
        load_config(file, environ)
    (tmp_path / "token").write_text("a-token\n")
    [problem] = unsupported(load_config(file, environ))
    assert re.search(r"systemd provides no key: put it into credentials/\S*llm-key", problem)
    (tmp_path / "llm-key").write_text("a-key\n")
    config = load_config(file, environ)
    assert config.api.token_file is not None
    assert (read_token(config.api.token_file), model_key(config.llm)) == ("a-token", "a-key")


def test_sysusers_and_tmpfiles_match_the_units() -> None:
    users = (SYSTEMD / "sysusers.d/hippod.conf").read_text() + (SYSTEMD / "sysusers.d/hippod-vllm.conf").read_text()
    made = set(re.findall(r"(?m)^u (\S+) ", users))
    assert made == {dict(settings_of(name))["User"] for name in SERVICES}
    directories = dict(re.findall(r"(?m)^d (\S+) (\d+ \S+ \S+) -$", (SYSTEMD / "tmpfiles.d/hippod.conf").read_text()))
    settings = dict(settings_of("hippod.service"))
    assert directories == {
        f"/var/lib/{settings['StateDirectory']}": f"{settings['StateDirectoryMode']} hippod hippod",
        f"/run/{settings['RuntimeDirectory']}": f"{settings['RuntimeDirectoryMode']} hippod hippod",
        "/etc/hippod/credentials": "0700 root root",
    }


def test_units_name_only_shipped_drop_ins() -> None:
    for name in UNITS:
        for drop_in in re.findall(r"drop-ins/([a-z]+\.conf)", (SYSTEMD / name).read_text()):
            assert drop_in in DROP_INS
        assert os.access(SYSTEMD / name, os.R_OK)


@pytest.mark.parametrize("name", ["hippod.service", "hippod@.service"])
def test_reload_fails_for_a_refused_configuration_and_homes_are_read_only(name: str) -> None:
    settings = settings_of(name)
    start = next(value for key, value in settings if key == "ExecStart")
    [after_stop] = [value for key, value in settings if key == "ExecStopPost"]
    assert after_stop.startswith("+"), "only root may have systemd make the socket again"
    check, hang_up = [value for key, value in settings if key == "ExecReload"]
    assert check == f"/bin/sh -c '{start.replace('--config', '--check --no-secrets --config')} >/dev/null'"
    assert hang_up == "/bin/kill -HUP $MAINPID"
    assert dict(settings)["TemporaryFileSystem"].split() == ["/home:ro", "/root:ro", "/run/user:ro"]
    assert "ProcSubset" not in dict(settings), "the encoder's engine reads /proc/cpuinfo"
