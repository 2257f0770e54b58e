"""Near `[store] memory_limit` nothing that enlarges the memory is accepted, and every client gets the reason."""

import signal
from collections.abc import Iterator

import pytest

from tests.e2e.real_hippod import Daemon, until, write_config

pytestmark = pytest.mark.daemon


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Yields a daemon with a high limit at first."""
    with Daemon(tmp_path_factory.mktemp("short")) as daemon:
        yield daemon
    print(f"--- {daemon.home} logged:\n{daemon.log_text()[-6000:]}")


def limit(daemon: Daemon, size: str) -> None:
    """Sets the limit by a reload."""
    daemon.sections["store"]["memory_limit"] = size
    write_config(daemon.config, daemon.sections)
    before = len(daemon.events("reloaded"))
    daemon.signal(signal.SIGHUP)
    until(lambda: len(daemon.events("reloaded")) > before, "the reload is done")


def test_low_memory_limit_pauses_all_except_removals_until_it_is_raised(short: Daemon) -> None:
    short.write("before.txt", "Curie discovered radium in Paris.")
    short.wait()
    [added] = short.add({"id": "gone", "text": "Galvani lived in Bologna."})
    short.wait()
    held = short.status()["memory"]
    assert 0 < held["used_bytes"] < held["limit_bytes"]
    assert "paused" not in held

    limit(short, "1 MiB")
    until(lambda: short.status()["memory"].get("paused"), "the memory is short")
    short.write("during.txt", "Volta built the first battery in Como.")
    until(lambda: short.status()["pending"], "the file is seen")

    [source] = short.status()["sources"]
    assert source["state"] == "paused"
    assert "[store] memory_limit" in source["detail"]
    refused = short.http.post("/v1/documents", json={"documents": [{"id": "no", "text": "Not taken."}]})
    assert refused.status_code == 503
    assert "[store] memory_limit" in refused.json()["detail"]
    assert int(refused.headers["retry-after"]) > 1
    assert short.metric("hippod_memory_paused") == 1
    checks = short.ctl("--json", "doctor").json["checks"]
    [told] = [check for check in checks if check["name"] == "memory limit"]
    assert told["status"] == "fail"
    assert "paused" in short.ctl("status").out
    assert short.ctl("wait", "--timeout", "1").code == 5

    assert short.ctl_json("rm", added)["removed"] == 1
    (short.drive / "before.txt").unlink()
    until(lambda: set(short.documents()) == {short.uri("during.txt")}, "the removed file is forgotten")
    assert short.uri("during.txt") in short.documents(state="pending")
    assert short.query("Volta") == []

    limit(short, "off")
    short.wait()
    assert short.query("Volta")[0]["document"] == short.uri("during.txt")
    assert short.status()["sources"][0]["state"] == "watching"
    assert short.status()["memory"]["limit_bytes"] is None
    [reached] = short.events("memory_limit_reached")
    [left] = short.events("memory_limit_left")
    assert reached["used"] > reached["limit"]
    assert left["limit"] is None


def test_start_above_the_memory_limit_indexes_nothing_until_it_is_raised(short: Daemon) -> None:
    limit(short, "1 MiB")
    short.stop()
    short.write("later.txt", "Ampère taught in Lyon.")
    short.start()
    until(lambda: short.status()["pending"], "the file is seen")
    assert short.status()["memory"]["paused"]
    assert short.query("Ampère", mode="bm25") == []
    limit(short, "auto")
    short.wait()
    assert short.query("Ampère", mode="bm25")
