"""Restarts, upgrades and the removal under load. The last tests: they change what is installed."""

import subprocess
import time

import pytest

from tests.systemd.booted.conftest import NEWER
from tests.systemd.booted.service import Service, with_the_model

pytestmark = [pytest.mark.process, pytest.mark.systemd, pytest.mark.timeout(900), with_the_model]


def was_answered(summary: dict[str, object]) -> bool:
    """Whether every query was answered, or told when to come again; most were answered."""
    outcomes = summary["outcomes"]
    assert isinstance(outcomes, dict)
    return (
        set(outcomes) <= {"200", "503"} and not summary["silent_refusals"] and outcomes["200"] > outcomes.get("503", 0)
    )


def test_restarts_under_load_reset_no_connection(service: Service) -> None:
    with service.load(20) as load:
        for _ in range(3):
            service.sh("systemctl restart hippod")
            time.sleep(3)
    assert was_answered(load.summary), load.summary


def test_upgrade_killed_while_unpacking_does_not_affect_the_running_daemon(service: Service, newer: str) -> None:
    pid = service.pid
    dpkg = subprocess.Popen(
        service.machine.command("dpkg", "--force-unsafe-io", "-i", newer), stdout=subprocess.DEVNULL
    )
    partial = service.machine.root / "opt/hippod/package/lib"
    service.until(lambda: any(partial.rglob("*.dpkg-new")), "it unpacks")
    service.sh("pkill -9 -x dpkg; pkill -9 -x dpkg-deb", None)
    dpkg.wait()
    assert (service.state, service.pid) == ("active", pid)
    service.sh("dpkg --configure -a", None)
    service.sh("systemctl restart hippod")
    assert "Analytical Engine" in service.found("Who wrote notes about the Analytical Engine?")
    assert NEWER not in service.sh("readlink /opt/hippod/current")


def test_upgrade_under_load_restarts_once_without_failed_requests(service: Service, newer: str) -> None:
    pid = service.pid
    with service.load(20) as load:
        service.sh(f"dpkg --force-unsafe-io -i {newer}")
        assert service.pid != pid
        time.sleep(3)
    assert was_answered(load.summary), load.summary
    assert service.sh("readlink /opt/hippod/current").strip() == f"versions/{NEWER}"
    assert service.sh("ls /opt/hippod/versions").split() == [NEWER]
    assert len(service.events("ready")) >= 1
    assert "Analytical Engine" in service.found("Who wrote notes about the Analytical Engine?")


def test_downgrade_restarts_the_older_version_with_the_same_memory(service: Service, newer: str) -> None:
    del newer  # it is installed
    pid = service.pid
    service.sh("dpkg --force-unsafe-io -i /root/hippod.deb")
    assert service.pid != pid
    assert service.state == "active"
    assert NEWER not in service.sh("readlink /opt/hippod/current")
    assert NEWER not in service.sh("ls /opt/hippod/versions").split()
    assert "Analytical Engine" in service.found("Who wrote notes about the Analytical Engine?")


def test_enabled_units_start_after_a_reboot_with_the_same_memory(service: Service) -> None:
    service.sh("systemctl enable hippod.socket hippod.service")
    service.machine.power_off()
    service.machine.boot()
    service.sh("hippoctl wait")
    assert service.state == "active"
    assert "Analytical Engine" in service.found("Who wrote notes about the Analytical Engine?")


def test_package_purge_removes_everything_except_the_memory(service: Service) -> None:
    said = service.sh("dpkg --purge hippod")
    assert "/var/lib/hippod" in said
    assert service.state in ("inactive", "unknown")
    assert service.sh("ls /opt/hippod 2>&1", None).strip().endswith("No such file or directory")
    service.sh("test -d /var/lib/hippod/store && test ! -e /usr/bin/hippod && test ! -e /etc/hippod/config.toml")
