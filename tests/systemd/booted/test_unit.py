"""What the unit promises, on a real systemd."""

import json
import time

import pytest

from tests.systemd.booted.service import CONFIGURATION, Service, free_port, with_the_model

pytestmark = [pytest.mark.process, pytest.mark.systemd, pytest.mark.timeout(900)]


@with_the_model
def test_query_starts_sandboxed_hippod_and_a_saved_file_is_found(service: Service) -> None:
    service.sh("systemctl stop hippod.service")
    assert service.state == "inactive"
    assert "Analytical Engine" in service.found("Who wrote notes about the Analytical Engine?")
    assert service.state == "active"
    service.write("/srv/notes/later.txt", "Grace Hopper wrote the first compiler.\n")
    service.until(lambda: "compiler" in service.found("Who wrote the first compiler?"), "the new file is found")
    # The encoder's engine chooses its kernels by /proc/cpuinfo.
    assert "processor" in service.inside("head -1 /proc/cpuinfo")
    assert not any("cpuinfo" in line for line in service.lines())


def test_sandbox_allows_writes_only_to_the_state_directory(service: Service) -> None:
    for place in ("/home", "/root", "/run/user", "/etc", "/opt", "/srv/notes", "/var/lib"):
        assert "cannot touch" in service.inside(f"touch {place}/x"), place
    service.inside("touch /var/lib/hippod/x && rm /var/lib/hippod/x")


REACH = """import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=3)
    print("reached")
except OSError as error:
    print("not reached:", error)
"""


def test_sandbox_allows_connections_only_to_localhost(service: Service) -> None:
    addresses = service.sh("hostname -I", None).split()
    if not addresses:
        pytest.skip("this machine has no address but its own")
    service.write("/usr/local/reach.py", REACH)
    # Reached under an address that is not localhost, by a listener that is there: the filter alone is in the way.
    port = free_port()
    service.sh(f"systemd-run --quiet --unit=listening python3 -m http.server {port}")
    reach = f"/usr/bin/python3 /usr/local/reach.py {addresses[0]} {port}"
    try:
        service.until(lambda: "not" not in service.sh(reach), "it listens")
        service.drop_in(
            f"[Service]\nExecStartPost={reach}\nExecStartPost=/usr/bin/python3 /usr/local/reach.py 127.0.0.1 {port}\n"
        )
        began = time.time()
        service.sh("systemctl restart hippod")
        said = [line for line in service.lines(since=began) if "reached" in line]
        assert [line.startswith("not") for line in said] == [True, False]
    finally:
        service.sh("systemctl stop listening", None)


def test_only_the_bind_mounted_drive_of_a_hidden_home_is_visible(service: Service) -> None:
    service.write("/home/ada/notes/hidden.txt", "The hidden drive tells of Kasparov.\n")
    service.write("/home/ada/secret.txt", "secret")
    service.sh("chmod 700 /home/ada")
    service.drop_in("[Service]\nBindReadOnlyPaths=/home/ada/notes\n")
    service.write("/etc/hippod/config.toml", CONFIGURATION + '[[folder]]\npath = "/home/ada/notes"\nsettle_ms = 100\n')
    service.sh("systemctl restart hippod; hippoctl wait")
    assert "Kasparov" in service.found("hidden drive Kasparov")
    assert service.inside("ls /home/ada").split() == ["notes"]
    service.write("/home/ada/notes/more.txt", "The hidden drive tells of Deep Blue.\n")
    service.until(lambda: "Deep Blue" in service.found("hidden drive Deep Blue"), "events come through the bind")


def test_reload_applies_live_keys_and_fails_for_a_refused_configuration(service: Service) -> None:
    pid = service.pid
    service.write("/etc/hippod/config.toml", CONFIGURATION + '[daemon]\nlog_level = "debug"\n')
    service.sh("systemctl reload hippod")
    service.until(lambda: bool(service.events("reloaded")), "the reload is logged")
    service.write("/etc/hippod/config.toml", CONFIGURATION + "nonsense = 1\n")
    said = service.sh("systemctl reload hippod", None)
    assert service.sh("systemctl reload hippod; echo code $?", None).splitlines()[-1] != "code 0", said
    assert "nonsense" in service.events("configuration_refused")[-1]["error"]
    assert (service.state, service.pid) == ("active", pid)


def test_unit_restarts_after_kill_and_hang_and_logs_all_fields(service: Service) -> None:
    began, pid = time.time(), service.pid
    service.sh(f"kill -9 {pid}")
    service.until(lambda: service.pid not in (0, pid) and service.state == "active", "started again after kill -9")
    service.drop_in("[Service]\nWatchdogSec=8\n")
    service.sh("systemctl restart hippod")
    pid = service.pid
    service.sh(f"kill -STOP {pid}")
    service.until(lambda: service.pid not in (0, pid) and service.state == "active", "started again by the watchdog")
    [aborted] = service.events("aborted_before")
    assert any("Thread" in line for line in aborted["stacks"])
    ready = service.entries(since=began)[-1]
    shown = service.sh("journalctl HIPPOD_EVENT=ready -o cat -n 1 --no-pager")
    assert shown.startswith("ready (took_ms=")
    assert "{" not in "".join(service.lines(since=began))
    assert ready["_SYSTEMD_UNIT"] == "hippod.service"


def test_instances_are_separate_and_a_shared_store_names_its_owner(service: Service) -> None:
    text = CONFIGURATION.replace("/run/hippod/", "/run/hippod-notes/")
    service.write("/etc/hippod/notes.toml", text)
    notes = Service(service.machine, "hippod@notes")
    said = service.sh("systemctl start hippod@notes.service", None)
    assert "failed" in said
    [refused] = notes.events("store_not_opened")
    assert f"is open in hippod with pid {service.pid}" in refused["error"]
    service.write("/etc/hippod/notes.toml", text.replace("/var/lib/hippod/", "/var/lib/hippod-notes/"))
    service.sh("systemctl reset-failed; systemctl start hippod@notes.socket hippod@notes.service")
    service.sh(f"hippoctl --socket {notes.socket} wait")
    assert "Analytical Engine" in notes.found("Who wrote notes about the Analytical Engine?")
    service.sh("systemctl stop hippod@notes.socket hippod@notes.service")
    said = service.sh(f"hippoctl --socket {notes.socket} status", None)
    assert "sudo systemctl start hippod@notes.socket hippod@notes.service" in said


def test_credentials_reach_hippod_and_doctor_of_an_instance(service: Service) -> None:
    port, other = free_port(), free_port()
    tcp = f'tcp = "127.0.0.1:{port}"\ntoken_file = "$CREDENTIALS_DIRECTORY/token"\n'
    text = CONFIGURATION.replace("[[folder]]", f"{tcp}[[folder]]")
    service.write("/etc/hippod/credentials/token", "a-token-of-the-test-0123456789\n")
    service.write("/etc/hippod/config.toml", text)
    service.sh("systemctl restart hippod")
    asked = f"curl -s -o /dev/null -w '%{{http_code}}' http://127.0.0.1:{port}/v1/status"
    assert service.sh(f"{asked} -H 'Authorization: Bearer a-token-of-the-test-0123456789'") == "200"
    assert service.sh(asked) == "401"
    service.write("/etc/hippod/credentials/notes-token", "another-token-of-the-test-01234\n")
    service.write(
        "/etc/hippod/notes.toml", text.replace("/run/hippod/", "/run/hippod-notes/").replace(str(port), str(other))
    )
    found = json.loads(service.sh("HIPPOD_CONFIG=/etc/hippod/notes.toml hippoctl --json doctor", None))
    [finding] = [each for each in found["checks"] if "CREDENTIALS_DIRECTORY" in each["detail"]]
    command = finding["hint"].split("`")[1].replace("sudo ", "").replace("hippoctl doctor", "hippoctl --json doctor")
    again = json.loads(service.sh(command, None))
    assert not any("CREDENTIALS_DIRECTORY" in each["detail"] for each in again["checks"])
