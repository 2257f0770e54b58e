"""Drives that go, and a store's disk that is full or somebody else's."""

import pytest

from tests.systemd.booted.service import CONFIGURATION, Service

pytestmark = [pytest.mark.process, pytest.mark.systemd, pytest.mark.timeout(900)]

MOUNT = "[Mount]\nWhat=tmpfs\nWhere=/srv/drive\nType=tmpfs\nOptions=mode=0755\n"
BOUND = "[Unit]\nRequiresMountsFor=/srv/drive\nBindsTo=srv-drive.mount\nAfter=srv-drive.mount\n"


def test_umount_stops_hippod_and_the_next_mounted_drive_is_indexed(service: Service) -> None:
    service.write("/etc/systemd/system/srv-drive.mount", MOUNT)
    service.sh("mkdir -p /srv/drive; systemctl daemon-reload; systemctl start srv-drive.mount")
    service.sh("echo 'The first drive tells of Turing.' > /srv/drive/a.txt")
    service.drop_in(f"{BOUND}[Service]\nBindReadOnlyPaths=/srv/drive\n")
    service.write("/etc/hippod/config.toml", CONFIGURATION + '[[folder]]\npath = "/srv/drive"\nsettle_ms = 100\n')
    service.sh("systemctl restart hippod; hippoctl wait")
    assert "Turing" in service.found("first drive Turing")
    service.sh("umount /srv/drive")
    service.until(lambda: service.state == "inactive", "hippod ends with the mount")
    service.sh("systemctl start srv-drive.mount; echo 'The second drive tells of Church.' > /srv/drive/b.txt")
    service.sh("systemctl start hippod; hippoctl wait")
    assert "Church" in service.found("second drive Church")
    service.sh("systemctl stop hippod.socket hippod; systemctl stop srv-drive.mount")


def test_full_disk_keeps_queries_working_and_commits_pending_files_later(service: Service) -> None:
    service.sh("systemctl stop hippod.socket hippod; rm -rf /var/lib/hippod/store; mkdir -p /srv/small")
    service.sh("mount -t tmpfs -o size=24m,mode=0700,uid=hippod,gid=hippod tmpfs /srv/small")
    service.drop_in("[Service]\nReadWritePaths=/srv/small\n")
    service.write("/etc/hippod/config.toml", CONFIGURATION.replace("/var/lib/hippod/store", "/srv/small/store"))
    service.sh("systemctl start hippod.socket hippod; hippoctl wait")
    service.sh("dd if=/dev/zero of=/srv/small/filler bs=1M 2>/dev/null; true")
    service.write("/srv/notes/later.txt", "Grace Hopper wrote the first compiler.\n")
    service.until(lambda: bool(service.events("commit_failed")), "the commit fails")
    assert "Analytical Engine" in service.found("Who wrote notes about the Analytical Engine?")
    service.sh("rm /srv/small/filler; hippoctl wait")
    assert "compiler" in service.found("Who wrote the first compiler?")
    service.sh("systemctl stop hippod.socket hippod; umount /srv/small")


def test_store_files_of_root_are_not_damage_and_the_advice_names_the_owner(service: Service) -> None:
    service.sh(
        "systemctl stop hippod.socket hippod; chown -R root:root /var/lib/hippod/store; chmod -R go= /var/lib/hippod/store"
    )
    assert "failed" in service.sh("systemctl start hippod", None)
    said = service.events("store_not_opened")[-1]["error"]
    assert "chown -R" in said
    assert "backup" not in said
    service.sh("systemctl stop hippod.socket")
    assert "sudo systemctl start hippod.socket hippod.service" in service.sh("hippoctl status", None)
    service.sh("chown -R hippod:hippod /var/lib/hippod/store; systemctl reset-failed hippod; systemctl start hippod")
