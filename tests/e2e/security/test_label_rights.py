"""Authors with write access to a followed folder choose labels to get their documents into answers of other clients."""

import json
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import httpx2
import pytest

from tests.daemon.access.conftest import rewrite
from tests.daemon.mcp.sdk_client import free_port
from tests.e2e.real_hippod import PATIENCE_S, Daemon, clean_environment, until

pytestmark = pytest.mark.daemon
QUESTION = "Who owns the mill of Ternby?"


@dataclass
class Ternby:
    daemon: Daemon
    board: httpx2.Client

    def seen(self) -> set[str]:
        """Returns the URIs that the board's client sees in the list and in answers."""
        listed = {each["uri"] for each in self.board.get("/v1/documents").json()["documents"]}
        found = self.board.post("/v1/query", json={"query": QUESTION, "k": 50}).json()["passages"]
        assert {each["document"] for each in found} <= listed
        return listed

    def reload(self) -> None:
        count = len(self.daemon.events("reloaded"))
        rewrite(self.daemon)
        self.daemon.signal(signal.SIGHUP)
        until(lambda: len(self.daemon.events("reloaded")) > count, "the configuration is read again")


@pytest.fixture(scope="module")
def ternby(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ternby]:
    home = tmp_path_factory.mktemp("labels")
    (home / "token").write_text("token-of-the-board")
    clients = [
        {"name": "operator", "user": "root", "labels": ["*"], "rights": ["read", "write", "admin"]},
        {"name": "board", "token_file": str(home / "token"), "labels": ["board"], "rights": ["read"]},
    ]
    daemon = Daemon(home, ["public", "own"], api={"tcp": f"127.0.0.1:{free_port()}"}, client=clients)
    public, own = daemon.sections["folder"]
    public |= {"labels": ["public"], "labels_from_documents": False}
    own |= {"labels": ["board"]}
    rewrite(daemon)
    with daemon:
        address = f"http://{daemon.sections['api']['tcp']}"
        headers = {"authorization": "Bearer token-of-the-board"}
        with httpx2.Client(base_url=address, headers=headers, timeout=PATIENCE_S, trust_env=False) as board:
            yield Ternby(daemon, board)


def test_labels_in_documents_count_only_as_configured(ternby: Ternby) -> None:
    daemon = ternby.daemon
    stated = {
        daemon.write("front.md", "---\nlabels: [board]\n---\n# Mill\n\nA stranger owns the mill of Ternby.\n"),
        daemon.write("one.json", json.dumps({"text": "Nobody owns the mill of Ternby.", "labels": ["board"]})),
        daemon.write("lines.jsonl", json.dumps({"id": "l", "text": "I own the mill.", "labels": ["board"]}) + "\n")
        + "#l",
    }
    (daemon.folders[1] / "minutes.md").write_text("# Minutes\n\nThe board owns the mill of Ternby.\n")
    own = {(daemon.folders[1] / "minutes.md").as_uri()}
    own |= set(daemon.add({"id": "a", "text": "The mill of Ternby was sold.", "labels": ["board"]}))
    daemon.wait()
    assert ternby.seen() == own

    shown = daemon.ctl_json("show", daemon.uri("one.json"))
    assert shown["metadata"]["labels"] == ["board"], "what the document states is kept"
    assert {each["name"]: each["documents"] for each in daemon.ctl_json("scopes")["labels"]} == {
        "board": 2,
        "public": 3,
    }

    daemon.sections["folder"][0]["labels_from_documents"] = True
    ternby.reload()
    assert daemon.events("reloaded")[-1]["changed"] == ["folder[0].labels_from_documents"]
    assert daemon.events("reloaded")[-1]["needs_restart"] == []
    assert ternby.seen() == own | stated
    daemon.sections["folder"][0]["labels_from_documents"] = False
    ternby.reload()
    assert ternby.seen() == own


def test_doctor_warns_of_sources_whose_documents_state_labels(ternby: Ternby) -> None:
    ran = subprocess.run(
        ternby.daemon.command("--json", "doctor"),
        env=clean_environment(ternby.daemon.home) | {"HIPPOD_CONFIG": str(ternby.daemon.config)},
        capture_output=True,
        timeout=PATIENCE_S,
    )
    [found] = [each for each in json.loads(ran.stdout)["checks"] if each["name"] == "labels"]
    assert found["status"] == "warn"
    assert str(ternby.daemon.folders[1]) in found["detail"]
    assert "labels_from_documents = false" in found["hint"]


def test_labels_in_documents_do_not_apply_after_their_folder_is_unconfigured(ternby: Ternby) -> None:
    daemon = ternby.daemon
    daemon.write("left.md", "---\nlabels: [board]\n---\n# Mill\n\nA stranger sold the mill of Ternby.\n")
    daemon.wait()
    seen = ternby.seen()
    removed = daemon.sections["folder"].pop(0)
    try:
        ternby.reload()
        assert ternby.seen() == seen
    finally:
        daemon.sections["folder"].insert(0, removed)
        ternby.reload()
