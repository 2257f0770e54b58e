"""The systemd unit: valid, hardened, and in step with the daemon and the configuration beside it."""

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from daemon.config import Config, load_config

SYSTEMD = Path(__file__).parents[2] / "systemd"
UNIT = SYSTEMD / "hippod.service"
ANALYZE = shutil.which("systemd-analyze")
needs_systemd = pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed")


def service() -> list[tuple[str, str]]:
    lines = UNIT.read_text().partition("[Service]")[2].partition("[Install]")[0].splitlines()
    return [(key, value) for key, _, value in (line.partition("=") for line in lines if line and line[0] != "#")]


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ANALYZE, *arguments], capture_output=True, text=True, timeout=60)


@needs_systemd
def test_verify_is_silent(tmp_path):
    unit = tmp_path / "hippod.service"
    # The program that the unit starts is installed where the unit is, not where it is tested.
    unit.write_text(re.sub(r"/opt/hippod/bin/hippod", "/bin/true", UNIT.read_text()))
    done = analyze("verify", "--man=no", "--recursive-errors=no", str(unit))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@needs_systemd
def test_exposure_is_at_most_two_of_ten(tmp_path):
    done = analyze("security", "--offline=yes", "--threshold=20", "--no-pager", str(UNIT))
    if "unrecognized option" in done.stderr:
        pytest.skip("this systemd-analyze cannot look at a unit that is not loaded")
    assert done.returncode == 0, done.stdout[-600:]
    level = re.search(r"exposure level for hippod.service: ([0-9.]+)", done.stdout)
    assert level is not None, done.stdout[-600:]
    assert float(level[1]) <= 2.0


def test_every_setting_is_written_once_but_lists():
    keys = [key for key, _ in service()]
    assert {key for key in keys if keys.count(key) > 1} == {"SystemCallFilter"}
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.read(UNIT)
    assert parser.sections() == ["Unit", "Service", "Install"]


def test_it_waits_for_readiness_and_gives_up_on_what_no_restart_mends():
    settings = dict(service())
    assert settings["Type"] == "notify"
    assert settings["Restart"] == "on-failure"
    assert settings["RestartPreventExitStatus"].split() == ["2", "3"]
    assert settings["ExecReload"].endswith("-HUP $MAINPID")


def test_systemd_waits_longer_than_the_daemon_takes_to_stop():
    assert int(dict(service())["TimeoutStopSec"]) > Config().daemon.stop_timeout_s


def test_its_configuration_uses_the_directories_that_it_makes(tmp_path):
    settings = dict(service())
    # The group is made when hippod is installed.
    text = (SYSTEMD / "hippod.toml").read_text().replace('group = "hippod"', "")
    (tmp_path / "config.toml").write_text(text)
    config = load_config(tmp_path / "config.toml", {"HOME": "/nowhere"})
    assert config.store.path.parent == Path("/var/lib") / settings["StateDirectory"]
    assert config.api.socket.parent == Path("/run") / settings["RuntimeDirectory"]
