"""What dpkg runs around an upgrade, an upgrade that breaks off, and a removal: hippod's scripts, over stand-ins for systemd."""

import mmap
import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

SYSTEMD = Path(__file__).parents[2] / "systemd"
SCRIPTS = SYSTEMD / "package" / "scripts"
PLACES = ("/run/", "/var/lib/", "/etc/hippod", "/opt/hippod", "/usr/share/hippod")
MARKER = "run/hippod-ran-before-upgrade"
ESCAPED = r"hippod@my\x2dnotes.service"

SYSTEMCTL = r"""#!/bin/sh
printf '%s\n' "$*" >>"$STUB/calls"
verb=$1
shift
case "$verb" in
list-units)
    ls "$STUB/running" | while read -r unit; do
        for pattern in "$@"; do
            case "$unit" in $pattern) printf '%s loaded active running hippod\n' "$unit" ;; esac
        done
    done
    ;;
stop) for unit in "$@"; do rm -f "$STUB/running/$unit"; done ;;
restart)
    [ ! -e "$STUB/broken" ] || exit 1
    for unit in "$@"; do
        printf '%s\n' "$unit" >>"$STUB/restarted"
        [ ! -e "$MARKER" ] || printf '%s\n' "$unit" >>"$STUB/would-wait-for-ever"
        touch "$STUB/running/$unit"
    done
    ;;
esac
"""
"""Knows which units run, and keeps what it was told."""


class Machine:
    """A folder that stands for the machine's files, and the commands that the scripts call there."""

    def __init__(self, folder: Path, systemd: bool = True) -> None:
        self.root, self.stub = folder / "root", folder / "stub"
        for place in (
            "run",
            "var/lib",
            "etc/hippod",
            "opt",
            "usr/share/hippod",
            *(["run/systemd/system"] if systemd else []),
        ):
            (self.root / place).mkdir(parents=True)
        (self.stub / "running").mkdir(parents=True)
        self.template, self.configuration = (self.root / each / "hippod/config.toml" for each in ("usr/share", "etc"))
        self.template.write_text("# 0.1.0\n")
        self.opt = self.root / "opt/hippod"
        self.unpack("0.1.0-aa")
        (self.stub / "bin").mkdir()
        self.marker = self.root / MARKER
        for name in ("systemd-sysusers", "systemd-tmpfiles", "getent", "useradd", "install"):
            self._command(name, f'#!/bin/sh\nprintf \'%s\\n\' "{name} $*" >>"$STUB/calls"\n')
        self._command("systemctl", SYSTEMCTL)

    def _command(self, name: str, text: str) -> None:
        (self.stub / "bin" / name).write_text(text)
        (self.stub / "bin" / name).chmod(0o755)

    def unpack(self, version: str) -> None:
        """What dpkg does: each file is a new one under the old name."""
        for name, text in {"version": f"{version}\n", "lib/module.py": f"of {version}"}.items():
            path = self.opt / "package" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_name("new").write_text(text)
            path.with_name("new").rename(path)

    def program(self, name: str) -> str:
        return (self.opt / name).read_text()

    def forget(self, *names: str) -> None:
        for name in names:
            (self.stub / name).unlink(missing_ok=True)

    def run(self, script: str, *arguments: str) -> str:
        """What the script says, with the machine's places in this folder."""
        text = re.sub("|".join(PLACES), lambda place: f"{self.root}{place[0]}", (SCRIPTS / script).read_text())
        there = {"PATH": f"{self.stub / 'bin'}:/usr/bin:/bin", "STUB": str(self.stub), "MARKER": str(self.marker)}
        done = subprocess.run(
            ["sh", "-s", "--", *arguments], input=text, env=there, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def start(self, *units: str) -> None:
        for unit in units:
            (self.stub / "running" / unit).touch()

    @property
    def running(self) -> set[str]:
        return {path.name for path in (self.stub / "running").iterdir()}

    def lines(self, name: str) -> list[str]:
        path = self.stub / name
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_an_upgrade_stops_nothing_before_the_new_version_is_in_place(machine: Machine) -> None:
    machine.start("hippod.service", ESCAPED, "hippod-worker.service", "hippod.socket")
    before = machine.running
    machine.unpack("0.1.0-aa")
    machine.run("postinst", "configure", "")
    machine.run("prerm", "upgrade", "0.2.0")
    machine.unpack("0.2.0-bb")
    assert machine.running == before
    # What runs has its files still, whatever dpkg does with the package's.
    assert machine.program("current/lib/module.py") == "of 0.1.0-aa"
    machine.forget("restarted", "calls")
    machine.run("postinst", "configure", "0.1.0")
    assert (machine.opt / "current").readlink() == Path("versions/0.2.0-bb")
    assert machine.program("current/lib/module.py") == "of 0.2.0-bb"
    assert sorted(machine.lines("restarted")) == ["hippod-worker.service", "hippod.service", ESCAPED]
    assert machine.running == before
    calls = [call.split()[0] for call in machine.lines("calls")]
    assert calls.index("daemon-reload") < calls.index("restart")
    assert [path.name for path in (machine.opt / "versions").iterdir()] == ["0.2.0-bb"]


def test_units_stopped_by_an_older_package_are_started(machine: Machine) -> None:
    machine.start("hippod.socket")
    machine.marker.write_text(f"hippod.service\n{ESCAPED}\n")
    machine.run("postinst", "configure", "0.1.0")
    assert machine.lines("restarted") == ["hippod.service", ESCAPED]
    assert machine.lines("would-wait-for-ever") == []
    assert not machine.marker.exists()


@pytest.mark.parametrize("how", ["abort-upgrade", "abort-deconfigure", "abort-remove"])
def test_aborted_upgrade_does_not_affect_running_units(machine: Machine, how: str) -> None:
    machine.start("hippod.service")
    machine.run("postinst", "configure", "")
    machine.forget("restarted")
    machine.run("prerm", "deconfigure" if how == "abort-deconfigure" else "upgrade", "0.2.0")
    assert machine.running == {"hippod.service"}
    said = machine.run("postinst", how, "0.2.0")
    assert machine.lines("restarted") == []
    assert machine.program("current/lib/module.py") == "of 0.1.0-aa"
    assert said == ""


def test_interrupted_postinst_is_completed_by_the_next_run(machine: Machine) -> None:
    half = machine.opt / "versions/0.1.0-aa.new/lib"
    half.mkdir(parents=True)
    (half / "module.py").write_text("half")
    machine.run("postinst", "configure", "")
    assert machine.program("current/lib/module.py") == "of 0.1.0-aa"
    assert [path.name for path in (machine.opt / "versions").iterdir()] == ["0.1.0-aa"]


def test_installing_the_same_again_replaces_damaged_files(machine: Machine) -> None:
    machine.run("postinst", "configure", "")
    (machine.opt / "current/lib/module.py").write_text("damaged")
    machine.unpack("0.1.0-aa")
    machine.run("postinst", "configure", "0.1.0")
    assert machine.program("current/lib/module.py") == "of 0.1.0-aa"
    assert [path.name for path in (machine.opt / "versions").iterdir()] == ["0.1.0-aa"]


def test_version_in_use_is_kept_until_the_next_upgrade(machine: Machine) -> None:
    machine.run("postinst", "configure", "")
    library = (machine.opt / "versions/0.1.0-aa/lib/module.py").open("rb")
    with library, mmap.mmap(library.fileno(), 0, prot=mmap.PROT_READ):
        machine.unpack("0.2.0-bb")
        machine.run("postinst", "configure", "0.1.0")
        assert {path.name for path in (machine.opt / "versions").iterdir()} == {"0.1.0-aa", "0.2.0-bb"}
    machine.run("postinst", "configure", "0.2.0")
    assert [path.name for path in (machine.opt / "versions").iterdir()] == ["0.2.0-bb"]


def test_a_hippod_that_does_not_start_fails_no_upgrade(machine: Machine) -> None:
    machine.start("hippod.service")
    machine.run("prerm", "upgrade", "0.2.0")
    (machine.stub / "broken").touch()
    assert "journalctl -u hippod" in machine.run("postinst", "configure", "0.1.0")
    assert not machine.marker.exists()


def test_first_installation_creates_user_and_folders_and_starts_nothing(machine: Machine) -> None:
    said = machine.run("postinst", "configure", "")
    assert "does not run yet" in said
    calls = machine.lines("calls")
    assert "systemd-sysusers hippod.conf" in calls
    assert f"install -d -m 0700 -o hippod -g hippod {machine.root}/var/lib/hippod" in calls
    assert machine.running == set()
    assert machine.lines("restarted") == []
    assert machine.configuration.read_text() == "# 0.1.0\n"
    assert "does not run yet" not in machine.run("postinst", "configure", "0.1.0")


def test_configuration_is_never_overwritten_and_is_kept_until_a_purge(machine: Machine) -> None:
    machine.run("postinst", "configure", "")
    machine.template.write_text("# 0.2.0\n")
    machine.configuration.write_text("[[folder]]\n")
    for again in ("", "0.1.0"):  # "": an installation that was interrupted
        machine.run("postinst", "configure", again)
        assert machine.configuration.read_text() == "[[folder]]\n"
    machine.run("postrm", "remove")
    assert machine.configuration.exists()
    machine.configuration.unlink()
    machine.run("postinst", "configure", "0.1.0")
    assert not machine.configuration.exists()
    machine.configuration.touch()
    machine.run("postrm", "purge")
    assert not machine.configuration.exists()


def test_package_removal_stops_and_disables_every_unit(machine: Machine) -> None:
    machine.start("hippod.service", "hippod.socket", ESCAPED, "hippod@my.socket", "hippod-worker.service")
    machine.run("prerm", "remove")
    assert machine.running == set()
    assert "disable hippod.socket hippod.service hippod@.socket hippod@.service" in machine.lines("calls")
    assert not machine.marker.exists()


@pytest.mark.parametrize("how", ["remove", "purge"])
def test_package_removal_keeps_memory_and_secrets_and_names_their_paths(machine: Machine, how: str) -> None:
    kept = [machine.root / "var/lib/hippod/store/x", machine.root / "etc/hippod/credentials/token"]
    kept.append(machine.root / "etc/hippod/notes.toml")
    machine.run("postinst", "configure", "")
    shutil.rmtree(machine.opt / "package")  # as dpkg does
    code = machine.root / "opt/hippod/package/lib/__pycache__/m.pyc"
    for path in (*kept, machine.root / "var/lib/hippod-notes/store/y", code):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    said = machine.run("postrm", how)
    assert all(path.exists() for path in kept)
    for place in ("var/lib/hippod", "var/lib/hippod-notes", "etc/hippod/credentials", "etc/hippod/notes.toml"):
        assert f"  {machine.root / place}\n" in said
    assert (machine.root / "opt/hippod").exists() == (how == "purge")


def test_scripts_call_no_systemd_command_on_a_machine_without_systemd(tmp_path: Path) -> None:
    machine = Machine(tmp_path, systemd=False)
    machine.run("postinst", "configure", "0.1.0")
    machine.run("prerm", "remove")
    assert not any("units" in call or "restart" in call or "reload" in call for call in machine.lines("calls"))
    assert not machine.marker.exists()
