"""The model's key is nowhere but in the requests to its server."""

import json

import pytest

from tests.e2e.real_hippod import hippod, until
from tests.memory.llm.model_server import Status, obedient

pytestmark = pytest.mark.daemon

KEY = "sk-Wx7Qz9Lm3Tn5Vb8Rd2Kp4Hs6Jf1Gc0Ya"


def test_api_key_is_sent_to_the_server_and_written_nowhere(serve, hippo, tmp_path):
    """Not even where the server repeats it in its errors."""

    def script(call):
        if call.purpose == "answer" or "Secretive" in call.passage:
            return Status(
                401 if call.purpose == "answer" else 400, json.dumps({"error": {"message": f"bad key {KEY}"}})
            )
        return obedient(call)

    server = serve(script)
    (tmp_path / "key").write_text(f"{KEY}\n")
    daemon = hippo(
        server, llm={"api_key_file": str(tmp_path / "key"), "max_retries": 0}, daemon={"log_level": "debug"}
    ).start()
    daemon.add(
        {"id": "1", "title": "A", "text": "Alpha One links to Beta Two."},
        {"id": "2", "title": "B", "text": "Secretive."},
    )
    status = daemon.wait()
    assert status["failed"] == 1
    assert all(call.headers["authorization"] == f"Bearer {KEY}" for call in server.calls)
    ask = daemon.ctl("--json", "ask", "who?")
    assert ask.code == 1
    assert "401" in ask.json["detail"]
    said = [
        json.dumps(status), ask.out, ask.err, daemon.log_text(), daemon.http.get("/metrics").text,
        json.dumps(daemon.documents()), *daemon.export(),
    ]  # fmt: skip
    for arguments in (["doctor"], ["status"], ["ls"], ["reextract", "--yes"]):
        ran = daemon.ctl(*arguments)
        said += [ran.out, ran.err]
    checked = hippod(tmp_path, "--config", str(daemon.config), "--check")
    assert checked.code == 0
    said += [checked.out, checked.err]
    server.stop()
    daemon.add({"id": "3", "title": "C", "text": "Gamma Three waits."})
    until(lambda: "waiting_for" in daemon.status().get("extraction", {}), "an outage")
    said += [json.dumps(daemon.status()), daemon.log_text()]
    daemon.stop()
    for text in said:
        assert KEY not in text
    for file in daemon.store.rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes(), file
