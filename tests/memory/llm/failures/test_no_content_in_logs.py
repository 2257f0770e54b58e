"""What servers say of documents reaches neither the log nor what the service manager is told."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.real_hippod import until
from tests.memory.encoder.test_openai import embedding
from tests.memory.llm.model_server import Call, Status
from tests.systemd.service_manager import Managed

pytestmark = pytest.mark.daemon

CANARY = "Zirkonvogel"
TEXT = f"{CANARY} was built by Sabine Rell."


@pytest.fixture
def manage(tmp_path: Path) -> Iterator[Callable[..., Managed]]:
    """A daemon under a service manager; its watchdog's short time makes it say often what it does."""
    made: list[Managed] = []

    def make(**sections: Any) -> Managed:
        made.append(Managed(tmp_path / "home", watchdog_s=8.0, **sections))
        return made[-1]

    yield make
    for daemon in made:
        daemon.close()
        print(f"--- told its manager:\n{daemon.manager.texts()[-40:]}\n--- and logged:\n{daemon.log_text()[-6000:]}")


def quoting(status: int, request: str) -> Status:
    """A refusal as many servers write it, with what they were asked."""
    return Status(status, json.dumps({"error": {"message": f"invalid input: {request}"}}))


@pytest.mark.parametrize(("status", "hint"), [(500, "failed (500)"), (401, "the key is missing or refused")])
def test_passage_text_in_a_model_server_error_is_not_logged(serve, manage, status, hint):
    def script(call: Call) -> Any:
        return Status(status) if call.purpose == "probe" else quoting(status, call.passage)

    llm = {"base_url": serve(script).url, "model": "m", "max_retries": 0}
    daemon = manage(llm=llm, openie={"backend": "llm"}).launch().until_ready()
    daemon.add({"id": "1", "title": CANARY, "text": TEXT})
    [down] = until(lambda: daemon.events("model_down"), "the outage is logged")
    assert hint in down["error"]
    until(lambda: f"for the model: {down['error']}" in daemon.manager.status(), "the manager is told of it")
    assert str(status) in daemon.status()["extraction"]["waiting_for"]
    assert CANARY not in daemon.log_text()
    assert CANARY not in "".join(daemon.manager.texts())


def test_text_in_an_embeddings_error_is_not_logged_and_one_document_fails(serve, manage):
    well = embedding()

    def script(call: Call) -> Any:
        poison = [text for text in call.body["input"] if CANARY in text]
        return quoting(422, poison[0]) if poison else well(call)

    encoder = {"backend": "openai", "model": "m", "base_url": serve(script).url}
    daemon = manage(encoder=encoder, openie={"backend": "rules"}).launch().until_ready()
    daemon.add(
        {"id": "1", "title": "Light", "text": "Ada Kerr built Skellan Light."},
        {"id": "2", "title": CANARY, "text": TEXT},
        {"id": "3", "title": "Mill", "text": "Orrey Mill grinds barley."},
    )
    until(lambda: "cannot commit" in daemon.manager.status(), "the manager is told of it")
    status = daemon.wait()
    assert (status["documents"], status["failed"]) == (2, 1)
    assert CANARY in daemon.documents(state="failed")["added:2"]["error"]  # who may read the memory is told all
    assert "422" in daemon.events("commit_failed")[0]["error"]
    assert CANARY not in daemon.log_text()
    assert CANARY not in "".join(daemon.manager.texts())


def test_unreachable_embedding_server_is_not_reported_as_store_trouble(serve, manage):
    server = serve(embedding())
    llm = {"base_url": server.url, "max_retries": 0}
    encoder = {"backend": "openai", "model": "m"}
    daemon = manage(llm=llm, encoder=encoder, openie={"backend": "rules"}).launch().until_ready()
    server.stop()
    daemon.add({"id": "1", "title": "Light", "text": "Ada Kerr built Skellan Light."})
    [away] = until(lambda: daemon.events("encoder_unreachable"), "it is logged that the server is away")
    assert (away["encoder"], away["dim"]) == ("openai/m", 64)
    assert "embedding server" in daemon.status()["trouble"]
    until(lambda: daemon.manager.status().startswith("cannot encode, trying again: "), "the manager is told of it")
    assert daemon.metric("hippod_commit_trouble") == 0
    server.start()
    assert daemon.wait()["documents"] == 1
    assert "trouble" not in daemon.status()
    assert not daemon.events("commit_failed")
    assert len(daemon.events("encoder_unreachable")) == 1
