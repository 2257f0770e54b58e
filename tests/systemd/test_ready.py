"""What the service manager is told from start to stop, and what becomes of queries that come before readiness."""

import json
import signal
import threading
from typing import Any

import pytest

from tests.e2e.real_hippod import until, write_config
from tests.memory.llm.model_server import Call, ModelServer
from tests.systemd.conftest import Manage
from tests.systemd.service_manager import ask_raw, read_all

QUERY = json.dumps({"query": "Who owns the brig?", "mode": "bm25", "k": 1})


@pytest.mark.daemon
def test_ready_is_sent_when_queries_are_answered_and_stopping_is_announced(manage: Manage) -> None:
    daemon = manage(watchdog_s=60.0).launch().until_ready()
    # At the very moment of READY, without another try.
    assert daemon.http.post("/v1/query", content=QUERY, headers={"Content-Type": "application/json"}).status_code == 200
    daemon.until(daemon.manager.fed, "the watchdog is fed")
    texts = daemon.manager.texts()
    ready = next(n for n, text in enumerate(texts) if text.startswith("READY=1"))
    starting = [text for text in texts[:ready] if text.startswith("STATUS=starting: ")]
    assert any("encoder" in text for text in starting)
    assert any(str(daemon.store) in text for text in starting)
    daemon.write("brig.txt", "Hjalmar Quist owns the brig Castor.")
    daemon.until(
        lambda: "up to date at commit 3: 1 passage, following 1 source" in daemon.manager.status(),
        "it says so",
    )

    # What follows is told in the manual's order, with the clock that systemd compares.
    write_config(daemon.config, daemon.sections | {"retrieval": {"top_triples": 4}})
    daemon.signal(signal.SIGHUP)
    daemon.until(lambda: daemon.manager.states() == ["READY=1", "RELOADING=1", "READY=1"], "the reload is told")
    [reloading] = [text for text in daemon.manager.texts() if text.startswith("RELOADING=1")]
    assert int(reloading.partition("\nMONOTONIC_USEC=")[2]) > 0
    assert daemon.events("reloaded")[0]["changed"] == ["retrieval.top_triples"]

    assert daemon.stop() == 0
    assert daemon.manager.states()[-1] == "STOPPING=1"
    assert any(text.startswith("EXTEND_TIMEOUT_USEC=") for text in daemon.manager.texts()[-3:])
    assert not daemon.socket.exists()


@pytest.mark.daemon
def test_query_before_the_start_is_answered_and_the_socket_is_kept(manage: Manage) -> None:
    daemon = manage(activated=True)
    daemon.socket.chmod(0o666)
    before = daemon.socket.stat()
    # The process is not even started: systemd has made the socket, and that is all there is.
    early = ask_raw(daemon.socket, QUERY)
    daemon.launch()
    assert read_all(early).startswith("HTTP/1.1 200 ")
    daemon.until_ready()
    assert daemon.stop() == 0
    # Nothing of it was changed or unlinked, and the next one takes it over with what waits in it.
    now = daemon.socket.stat()
    assert (now.st_ino, now.st_mode, now.st_uid, now.st_gid) == (
        before.st_ino,
        before.st_mode,
        before.st_uid,
        before.st_gid,
    )
    late = ask_raw(daemon.socket, QUERY)
    daemon.launch()
    assert read_all(late).startswith("HTTP/1.1 200 ")
    # Its children have not inherited the socket.
    held = [str(c.laddr) for child in daemon.children() for c in child.net_connections("unix")]
    assert str(daemon.socket) not in held
    # As in the unit's sandbox, a backup is written by the daemon, where that may write.
    closed = daemon.home / "closed"
    closed.mkdir(mode=0o500)
    refused = daemon.ctl("backup", closed / "copy")
    assert refused.code == 1
    assert "the daemon writes it" in refused.err
    # A client finds it where the configuration says, and the configured mode has not been put on it.
    assert daemon.ctl("status").code == 0
    assert daemon.socket.stat().st_mode == before.st_mode


@pytest.mark.daemon
def test_early_stop_is_clean_and_refused_configuration_is_reported(manage: Manage) -> None:
    daemon = manage().launch(preloaded=False)
    # The lock is taken before the libraries are loaded.
    daemon.until(lambda: (daemon.store / "lock").exists(), "it has begun")
    assert daemon.stop() == 0
    assert "Traceback" not in daemon.log_text()
    write_config(daemon.config, daemon.sections | {"graph": {"synonym_max": 0}})
    daemon.launch()
    assert daemon.process is not None
    assert daemon.process.wait(90) == 2
    daemon.process = None
    until(lambda: "graph.synonym_max = 0" in daemon.manager.status(), "the manager is told why")
    assert daemon.manager.status().startswith("not started: ")


@pytest.mark.daemon
def test_ready_and_answers_wait_until_the_encoder_is_loaded(manage: Manage) -> None:
    release = threading.Event()

    def embeddings(call: Call) -> dict[str, Any]:
        release.wait(90)
        vectors = [{"index": n, "embedding": [1.0, float(n), 0.5]} for n, _ in enumerate(call.body["input"])]
        return {"object": "list", "model": "m", "data": vectors, "usage": {"prompt_tokens": 1, "total_tokens": 1}}

    with ModelServer(embeddings) as server:
        daemon = manage(encoder={"backend": "openai", "model": "m", "base_url": server.url}).launch()
        daemon.until(lambda: server.calls, "the encoder asks its server")
        early = ask_raw(daemon.socket, QUERY)
        export = ask_raw(daemon.socket, "", "GET /v1/export")
        daemon.signal(signal.SIGHUP)  # must not end it
        daemon.until(lambda: daemon.http.get("/healthz").json()["state"] == "starting", "it says that it starts")
        assert daemon.manager.states() == []
        release.set()
        assert read_all(early).startswith("HTTP/1.1 200 ")
        assert read_all(export).startswith("HTTP/1.1 200 ")
        # What was asked for during the start is done after it.
        daemon.until(lambda: daemon.manager.states() == ["READY=1", "RELOADING=1", "READY=1"], "ready, and reloaded")
