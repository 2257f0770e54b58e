"""The watchdog is fed only while all of it moves. Each part is made to stick for real, by what can happen to it, and let go."""

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.real_hippod import until
from tests.memory.llm.model_server import Call, Hang, ModelServer, obedient
from tests.systemd.conftest import Manage
from tests.systemd.service_manager import Managed

pytestmark = pytest.mark.daemon

WATCHDOG_S = 1.0
LATE_S = 10.0
"""How late a starved machine may be with what an interval of the configuration promises: far less than a test's patience."""


def goes_hungry(daemon: Managed, since: float) -> None:
    """The watchdog is not fed for longer than it waits, so that a service manager would end hippod, and was fed for the
    last time within one interval of `since`, the moment at which a part came to stand still."""
    daemon.until(lambda: daemon.manager.quiet_s() > 2 * WATCHDOG_S, "the watchdog is not fed any more")
    assert daemon.manager.fed()[-1] - since <= WATCHDOG_S + LATE_S


def stops_in_time(daemon: Managed, stop_timeout_s: float) -> None:
    """The stop takes no longer than the configuration allows, whatever hangs."""
    began = time.monotonic()
    assert daemon.stop() == 0
    assert time.monotonic() - began <= stop_timeout_s + LATE_S


def is_fed_again(daemon: Managed) -> None:
    hungry = daemon.manager.fed()[-1]
    daemon.until(lambda: daemon.manager.fed_after(hungry), "the watchdog is fed again")


def test_a_commit_thread_that_hangs_in_a_write_ends_the_watchdog_signal(
    manage: Manage,
) -> None:
    daemon = manage(watchdog_s=WATCHDOG_S).launch().until_ready()
    daemon.write("one.txt", "Hjalmar Quist owns the brig Castor.")
    daemon.wait()
    assert daemon.stop() == 0
    daemon.launch().until(lambda: daemon.manager.states().count("READY=1") == 2, "the second start is ready")
    is_fed_again(daemon)
    # The file that the first commit after a start opens becomes a pipe that nobody reads: opening it blocks, as a dead disk
    # does.
    head = daemon.store / "head"
    head.unlink()
    os.mkfifo(head)
    # The commit comes to stand still a little later, once the file is read.
    began = time.monotonic()
    daemon.write("two.txt", "Castor lies in the harbour of Aldersund.")
    goes_hungry(daemon, began)
    [stuck] = until(lambda: daemon.events("part_blocked"), "the log names the part")
    assert stuck["part"] == "commit"
    assert any("store/log/write_ahead_log.py" in place for place in stuck["at"]), stuck
    assert "blocked: commit" in daemon.manager.status()
    # Queries go on meanwhile, from the last commit.
    assert daemon.query("Who owns the brig?")[0]["text"].startswith("Hjalmar")
    with head.open("rb"):
        is_fed_again(daemon)
    head.unlink()
    daemon.wait()
    assert daemon.events("part_recovered")[-1]["part"] == "commit"
    assert daemon.stop() == 0


@pytest.mark.parametrize("activated", [False, True], ids=["own socket", "socket of the service manager"])
def test_hippod_exits_if_its_socket_is_deleted(manage: Manage, activated: bool) -> None:
    daemon = manage(watchdog_s=WATCHDOG_S, activated=activated).launch().until_ready()
    daemon.socket.unlink()
    assert daemon.process is not None
    assert daemon.process.wait(60) == 1
    [lost] = daemon.events("socket_lost")
    assert str(daemon.socket) in lost["error"]
    assert daemon.events("stopped"), "an orderly stop"


def test_an_event_loop_that_hangs_ends_the_watchdog_signal(manage: Manage) -> None:
    daemon = manage(watchdog_s=WATCHDOG_S)
    reader, daemon.stderr = os.pipe()
    try:
        daemon.launch().until_ready()
        daemon.until(lambda: daemon.manager.fed(), "the watchdog is fed")
        # Nobody reads the log any more, and it is full: the loop hangs in its next line.
        os.set_blocking(daemon.stderr, False)
        with pytest.raises(BlockingIOError):
            while True:
                os.write(daemon.stderr, b"x" * 4096)
        os.set_blocking(daemon.stderr, True)
        told = time.monotonic()
        daemon.signal(signal.SIGHUP)
        daemon.until(lambda: daemon.manager.has("RELOADING=1"), "it begins to reload, and to say so")
        goes_hungry(daemon, told)
        drain = threading.Thread(target=_drain, args=(reader,), daemon=True)
        drain.start()
        is_fed_again(daemon)
        assert daemon.stop() == 0
    finally:
        os.close(daemon.stderr)


def _drain(reader: int) -> None:
    while os.read(reader, 65536):
        pass


def test_watchdog_abort_logs_the_stack_of_every_thread(manage: Manage) -> None:
    daemon = manage(watchdog_s=60.0).launch().until_ready()
    daemon.signal(signal.SIGABRT)
    assert daemon.process is not None
    assert daemon.process.wait(60) == -signal.SIGABRT
    assert "Fatal Python error: Aborted" in daemon.log_text()
    assert "daemon/main.py" in daemon.log_text()


class Held:
    """A model that answers until it is told to hang."""

    def __init__(self) -> None:
        self.hangs = False

    def __call__(self, call: Call) -> Any:
        return Hang() if self.hangs else obedient(call)


def test_a_stop_does_not_wait_for_a_model_that_hangs(manage: Manage) -> None:
    model = Held()
    with ModelServer(model) as server:
        llm = {"base_url": server.url, "model": "m", "timeout_s": 3600.0}
        stop_s = 20.0
        daemon = manage(llm=llm, openie={"backend": "llm"}, daemon={"stop_timeout_s": stop_s}).launch().until_ready()
        model.hangs = True
        daemon.write("one.txt", "Hjalmar Quist owns the brig Castor.")
        daemon.until(lambda: server.inside, "a call to the model is under way")
        # An hour passes before the call ends by itself.
        stops_in_time(daemon, stop_s)
        assert daemon.manager.states()[-1] == "STOPPING=1"
        assert daemon.events("stopped")


def test_a_stop_does_not_wait_for_a_thread_that_hangs_in_its_server(manage: Manage) -> None:
    hangs = threading.Event()

    def embeddings(call: Call) -> Any:
        if hangs.is_set():
            return Hang()
        vectors = [{"index": n, "embedding": [1.0, float(n), 0.5]} for n, _ in enumerate(call.body["input"])]
        return {"object": "list", "model": "m", "data": vectors, "usage": {"prompt_tokens": 1, "total_tokens": 1}}

    with ModelServer(embeddings) as server:
        encoder = {"backend": "openai", "model": "m", "base_url": server.url}
        stop_s = 5.0
        sections: dict[str, Any] = {
            "encoder": encoder,
            "llm": {"timeout_s": 3600.0},
            "daemon": {"stop_timeout_s": stop_s},
        }
        daemon = manage(watchdog_s=WATCHDOG_S, **sections).launch().until_ready()
        hangs.set()
        uri = daemon.write("one.txt", "Hjalmar Quist owns the brig Castor.")
        daemon.until(lambda: server.inside, "the commit thread waits for its vectors")
        # That is the server's fault: a new hippod would wait as well, so the watchdog is fed.
        seen = len(daemon.manager.fed())
        daemon.until(lambda: len(daemon.manager.fed()) > seen + 8, "the watchdog is fed for longer than it waits")
        assert not daemon.events("part_blocked")
        stops_in_time(daemon, stop_s)
        assert [event["threads"] for event in daemon.events("stop_cut_off")] == [["commit_0"]]
        # Nothing is lost.
        hangs.clear()
        daemon.launch()
        daemon.until(lambda: daemon.manager.states().count("READY=1") == 2, "it is back")
        daemon.wait()
        assert daemon.documents()[uri]["state"] == "indexed"
        assert Path(daemon.store).is_dir()
