"""From every state that systemd can bring the two units into, they end in answers, or in "failed" with a remedy of one line."""

import pytest

from tests.systemd.booted.service import CONFIGURATION, Service, free_port

pytestmark = [pytest.mark.process, pytest.mark.systemd, pytest.mark.timeout(900)]

BROKEN = CONFIGURATION + "nonsense = 1\n"
QUESTION = "Who wrote notes about the Analytical Engine?"
REMEDY = "sudo systemctl start hippod.socket hippod.service"


def answers(service: Service) -> bool:
    return "Ada Lovelace" in service.sh(f"hippoctl --json query '{QUESTION}' -k 1", None)


def socket_state(service: Service) -> str:
    return service.sh("systemctl show -p ActiveState -p Result --value hippod.socket").replace("\n", " ").strip()


def breaks(service: Service) -> None:
    service.write("/etc/hippod/config.toml", BROKEN)
    service.sh("systemctl restart hippod", None)
    assert service.state == "failed"


def follow_the_remedy(service: Service) -> None:
    """What hippoctl prints to somebody whose hippod is down. systemd's start limit may still refuse it for ten seconds."""
    assert REMEDY in service.sh("hippoctl status", None)
    service.until(lambda: "failed" not in service.sh(REMEDY.removeprefix("sudo "), None), "systemd starts both units")
    assert answers(service)
    assert (service.state, socket_state(service)) == ("active", "success active")


def test_client_is_refused_until_the_configuration_is_repaired(service: Service) -> None:
    breaks(service)
    said = service.sh("hippoctl status 2>&1; echo code $?")
    assert "hippod cannot start" in said
    assert "journalctl -u hippod" in said
    assert said.endswith("code 3\n")
    # One start for each client: nobody waits, so nothing starts hippod again.
    assert socket_state(service) == "success active"
    service.write("/etc/hippod/config.toml", CONFIGURATION)
    service.until(lambda: answers(service), "the next client starts hippod")
    assert service.state == "active"


def test_documented_remedy_starts_both_units_after_the_start_limit(service: Service) -> None:
    # Five starts within the limit's interval, however slow the machine is. Each client causes one.
    service.drop_in("[Unit]\nStartLimitIntervalSec=600\n")
    breaks(service)
    service.sh(
        f"for _ in 1 2 3 4 5 6; do curl -s --max-time 60 --unix-socket {service.socket} http://h/healthz; done", None
    )
    service.until(lambda: "failed" in socket_state(service), "clients that come too fast reach the start limit")
    assert service.state == "failed"
    assert "start-limit" in socket_state(service)
    service.write("/etc/hippod/config.toml", CONFIGURATION)
    service.drop_in("[Service]\n")
    follow_the_remedy(service)


def test_documented_remedy_starts_both_units_after_the_trigger_limit(service: Service) -> None:
    service.sh("systemctl stop hippod.socket hippod.service")
    # Nothing starts hippod while its drive cannot be mounted: no start limit counts these attempts.
    service.write("/etc/systemd/system/srv-gone.mount", "[Mount]\nWhat=/dev/no-such-disk\nWhere=/srv/gone\n")
    service.drop_in("[Unit]\nRequiresMountsFor=/srv/gone\n")
    service.sh("systemctl start hippod.socket")
    service.sh("timeout 20 hippoctl status", None)
    service.until(lambda: "trigger-limit" in socket_state(service), "the socket gives up")
    assert service.state == "inactive"
    service.sh("rm /etc/systemd/system/srv-gone.mount")
    service.drop_in("[Service]\n")
    follow_the_remedy(service)


def test_deleted_socket_is_recreated_by_systemd(service: Service) -> None:
    pid, before = service.pid, len(service.events("socket_lost"))
    service.sh("rm /run/hippod/hippod.sock")
    service.until(lambda: answers(service), "systemd makes the socket again, and hippod answers on it")
    assert service.pid != pid
    assert len(service.events("socket_lost")) == before + 1
    service.sh("systemctl stop hippod.service")
    assert answers(service), "systemd listens on it: a query starts hippod"


def test_hippod_never_runs_without_its_socket(service: Service) -> None:
    service.sh("systemctl stop hippod.socket")
    service.until(lambda: service.state == "inactive", "hippod stops with its socket")
    service.sh("systemctl start hippod.service")
    assert answers(service)
    assert socket_state(service) == "success active"
    service.sh("systemctl restart hippod.socket")
    service.until(lambda: answers(service), "a new socket, and hippod on it")


def test_start_on_a_full_disk_fails_with_its_reason_and_succeeds_with_room(service: Service) -> None:
    service.sh("systemctl stop hippod.socket hippod; mkdir -p /srv/small")
    service.sh("mount -t tmpfs -o size=24m,mode=0700,uid=hippod,gid=hippod tmpfs /srv/small")
    service.drop_in("[Service]\nReadWritePaths=/srv/small\n")
    service.write("/etc/hippod/config.toml", CONFIGURATION.replace("/var/lib/hippod/store", "/srv/small/store"))
    service.sh("dd if=/dev/zero of=/srv/small/filler bs=1M 2>/dev/null; true")
    try:
        assert "failed" in service.sh("systemctl start hippod", None)
        assert "No space left" in service.sh("systemctl status hippod", None)
        service.sh("rm /srv/small/filler")
        service.until(lambda: answers(service), "with room, the next client starts hippod")
    finally:
        service.sh("systemctl stop hippod.socket hippod; umount /srv/small")


def test_replaced_store_folder_is_reported_and_used_after_a_restart(service: Service) -> None:
    service.sh("mv /var/lib/hippod/store /var/lib/hippod/moved; install -d -o hippod -g hippod /var/lib/hippod/store")
    try:
        service.until(lambda: "is not the folder" in service.sh("hippoctl status"), "status says so")
        assert answers(service), "from what it has in memory"
        service.sh("systemctl restart hippod; hippoctl wait")
        assert answers(service)
    finally:
        service.sh("rm -rf /var/lib/hippod/moved")


def test_reload_with_credentials_adds_a_client_and_refuses_an_invalid_file(service: Service) -> None:
    tcp = f'tcp = "127.0.0.1:{free_port()}"\ntoken_file = "$CREDENTIALS_DIRECTORY/token"\n'
    text = CONFIGURATION.replace("[[folder]]", f"{tcp}[[folder]]")
    service.write("/etc/hippod/credentials/token", "a-token-of-the-test-0123456789\n")
    service.write("/etc/hippod/config.toml", text)
    service.sh("systemctl restart hippod")
    pid = service.pid
    service.write(
        "/etc/hippod/config.toml",
        text + '[[client]]\nuser = "root"\nlabels = ["*"]\nrights = ["read"]\n',
    )
    service.sh("systemctl reload hippod")
    service.until(lambda: "client[0].user" in str(service.events("reloaded")), "the reload is logged")
    assert service.sh("hippoctl backup /var/lib/hippod/b 2>&1; echo code $?").endswith("code 1\n"), (
        "root may only read now"
    )
    service.write("/etc/hippod/config.toml", text + "nonsense = 1\n")
    assert "failed" in service.sh("systemctl reload hippod", None)
    assert (service.state, service.pid) == ("active", pid)


def test_a_backup_into_the_unit_s_own_tmp_is_refused(service: Service) -> None:
    said = service.sh("hippoctl backup /tmp/backup 2>&1; echo code $?")
    assert "PrivateTmp=yes" in said
    assert said.endswith("code 1\n")
    assert "commit" in service.sh("hippoctl backup /var/lib/hippod/backup && rm -r /var/lib/hippod/backup")
