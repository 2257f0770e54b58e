"""Messages to the service manager, over a real datagram socket."""

import os
import socket
import time
import uuid

import pytest

from daemon.runtime.service_manager import Notifier


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path):
    """Returns a bound notify socket and its address as in NOTIFY_SOCKET."""
    receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    receiver.settimeout(10)
    if request.param == "path":
        address = str(tmp_path / "notify")
        receiver.bind(address)
    else:
        name = f"hippod-test-{uuid.uuid4().hex}"
        address = f"@{name}"
        receiver.bind(f"\0{name}")
    yield receiver, address
    receiver.close()


def test_each_state_is_one_datagram(manager):
    receiver, address = manager
    notifier = Notifier({"NOTIFY_SOCKET": address})
    said = [
        (notifier.ready(), b"READY=1"),
        (notifier.ready("40 documents"), b"READY=1\nSTATUS=40 documents"),
        (notifier.status("indexing"), b"STATUS=indexing"),
        (notifier.watchdog(), b"WATCHDOG=1"),
        (notifier.extend_timeout(2.5), b"EXTEND_TIMEOUT_USEC=2500000"),
        (notifier.stopping("committing"), b"STOPPING=1\nSTATUS=committing"),
    ]
    for sent, datagram in said:
        assert sent
        assert receiver.recv(4096) == datagram


def test_reload_notification_contains_the_monotonic_clock(manager):
    receiver, address = manager
    before = time.monotonic_ns() // 1000
    assert Notifier({"NOTIFY_SOCKET": address}).reloading()
    state, _, clock = receiver.recv(4096).decode().partition("\nMONOTONIC_USEC=")
    assert state == "RELOADING=1"
    assert before <= int(clock) <= time.monotonic_ns() // 1000


def test_a_status_cannot_smuggle_in_another_state(manager):
    receiver, address = manager
    Notifier({"NOTIFY_SOCKET": address}).status("reading a\nMAINPID=1\n")
    assert receiver.recv(4096) == b"STATUS=reading a MAINPID=1"


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "vsock:2:1"}])
def test_without_a_notify_socket_nothing_is_sent(environ):
    notifier = Notifier(environ)
    assert not notifier.ready()
    assert not notifier.watchdog()


@pytest.mark.slow
def test_notification_to_an_absent_or_blocked_service_manager_does_not_block(tmp_path):
    address = str(tmp_path / "notify")
    notifier = Notifier({"NOTIFY_SOCKET": address})
    assert not notifier.ready()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(address)
        assert notifier.ready()
        sent = 0
        while notifier.status("x" * 1000):
            sent += 1
            assert sent < 100_000
    assert not notifier.ready()


def test_watchdog_interval_applies_only_to_this_process():
    assert Notifier({"WATCHDOG_USEC": "30000000"}).watchdog_s == 30
    assert Notifier({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}).watchdog_s == 30
    assert Notifier({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}).watchdog_s is None
    assert Notifier({}).watchdog_s is None
    assert Notifier({"WATCHDOG_USEC": "soon"}).watchdog_s is None
    assert Notifier({"WATCHDOG_USEC": "0"}).watchdog_s is None
