"""hippoctl and hippod together: a document from `add` to `query`, and out again."""

import json
import signal
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from tests.cli.scripted_daemon import Shell
from tests.e2e.preloaded_start import HIPPOD, Preloaded
from tests.e2e.real_hippod import NO_PRIVILEGE, until

pytestmark = pytest.mark.daemon

CONFIG = """
[store]
path = "store"
[api]
socket = "{socket}"
[encoder]
backend = "hash"
[[folder]]
path = "drive"
"""
LINES = [
    {"id": "gauge", "title": "Rain gauge", "text": "Emil Strand built the rain gauge in 1974."},
    {"id": "strand", "title": "Emil Strand", "text": "Emil Strand lives in Tollmin."},
]


@pytest.fixture
def real(hippoctl: Shell, tmp_path: Path) -> Iterator[Shell]:
    """A hippod of its own, and hippoctl that finds it through ./config.toml, as in a checkout."""
    socket = Path(hippoctl.environ["HIPPOD_SOCKET"]).with_name("real")
    (tmp_path / "config.toml").write_text(CONFIG.format(socket=socket))
    (tmp_path / "drive").mkdir()
    (tmp_path / "drive/tollmin.md").write_text("# Tollmin\n\nTollmin lies on the river Sorrel.\n")
    environ = {key: value for key, value in hippoctl.environ.items() if key != "HIPPOD_SOCKET"}
    shell = replace(hippoctl, environ=environ)
    log = tmp_path / "log"
    daemon = Preloaded(HIPPOD, ["--config", "config.toml"], environ, tmp_path, log, NO_PRIVILEGE)
    try:
        until(lambda: socket.exists() or daemon.poll() is not None, "hippod has a socket")
        assert socket.exists(), log.read_text()
        yield shell
    finally:
        daemon.terminate()
        daemon.wait(60)


def test_documents_can_be_added_queried_and_removed(real: Shell, tmp_path: Path) -> None:
    lines = "\n".join(json.dumps(line) for line in LINES).encode()
    assert real("--json", "add", "-", stdin=lines).json == {"accepted": 2, "documents": ["added:gauge", "added:strand"]}
    again = {"accepted": 1, "documents": ["added:gauge"], "replaced": 1}
    assert real("--json", "add", "-", stdin=json.dumps(LINES[0]).encode()).json == again
    corpora = {"one": ["Alpha", "Beta"], "two": ["Gamma", "Delta"]}
    for name, titles in corpora.items():
        documents = [{"idx": at, "title": title, "text": f"About {title}."} for at, title in enumerate(titles)]
        (tmp_path / f"{name}.json").write_text(json.dumps(documents))
    assert real("add", "one.json").code == 0
    refused = real("add", "two.json")
    assert (refused.code, 'added:0 is "Alpha", and here it is "Gamma"' in refused.err) == (1, True)
    assert real("--json", "add", "two.json", "--id-prefix", "two").json["documents"] == ["added:two/0", "added:two/1"]
    assert real("rm", "added:0", "added:1", "added:two/0", "added:two/1").code == 0
    (tmp_path / "page.html").write_text("<h1>Sorrel</h1><p>The Sorrel is a river.</p>")
    uploaded = real("--json", "add", "page.html").json["documents"][0]
    waited = real("--json", "wait", "--timeout", "60")
    assert (waited.code, waited.json["pending"], waited.json["failed"], waited.json["documents"]) == (0, 0, 0, 4)

    found = real("--json", "query", "Who built the rain gauge?", "-k", "2", "--mode", "bm25").json
    assert found["passages"][0]["document"] == "added:gauge"
    assert "Emil Strand built the rain gauge" in real("query", "Who built the rain gauge?").out
    shown = real("--json", "show", found["passages"][0]["id"]).json
    assert (shown["kind"], shown["documents"][0]["document"]) == ("passage", "added:gauge")
    assert real("show", "./drive/tollmin.md").out == real("show", "drive/tollmin.md").out
    assert [each["title"] for each in real("--json", "ls", "--prefix", "drive").json["documents"]] == ["Tollmin"]
    assert real("retry", "nosuch").code == 1
    for name in ("/tmp/\udcff.md", "absent \udcff"):
        assert real("show", name).err.startswith("hippoctl: Nothing in the memory is named ")
        assert real("rm", name).err.startswith("hippoctl: document ")
    read_again = real("--json", "reextract")
    assert read_again.code == 0 and "no model extracts" in read_again.json["note"]
    refused = real("backfill")
    assert refused.code == 4 and "No model can be loaded" in refused.err
    assert "drive is not a complete backup" in real("restore", "drive").err  # the configuration beside us was found
    assert real("--json", "show", uploaded).json["document"]["title"] == "Sorrel"
    states = {each["uri"]: each["state"] for each in real("--json", "ls").json["documents"]}
    assert states["added:gauge"] == "indexed" and len(states) == 4

    assert real("ask", "Who?").code == 4
    assert real("wait", "--timeout", "0").code in (0, 5)
    assert real("--json", "rm", "added:gauge", "added:absent").json["missing"] == 1
    real("wait", "--timeout", "60")
    assert real("--json", "export", "memory.jsonl").json["lines"] > 0
    texts = [json.loads(line).get("text", "") for line in (tmp_path / "memory.jsonl").read_text().splitlines()]
    assert not [text for text in texts if "rain gauge" in text.lower()]
    assert "Emil Strand lives in Tollmin." in texts
    (tmp_path / "q.json").write_text('[{"question": "Where does Emil Strand live?", "documents": ["added:strand"]}]')
    assert real("--json", "eval", "q.json", "--k", "5", "--mode", "bm25").json["recall"] == {"5": 1.0}
    failing = [check for check in real("--json", "doctor").json["checks"] if check["status"] == "fail"]
    assert failing == []


def test_watch_prints_an_event_for_an_added_document(real: Shell, tmp_path: Path) -> None:
    real("wait", "--timeout", "60")
    printed, numbers = tmp_path / "events", count()

    def indexed() -> list[dict[str, str]]:
        # A note that is added before the stream is open is not in it; a later one is.
        number = next(numbers)
        real("add", "-", stdin=json.dumps({"id": f"n{number}", "text": f"Note {number} on the river."}).encode())
        real("wait", "--timeout", "30")
        events = [json.loads(line) for line in printed.read_text().split("\n")[:-1]]
        return [event for event in events if event["event"] == "indexed"]

    with printed.open("wb") as stream, real.start("watch", "--json", stdout=stream) as watch:
        try:
            event = until(indexed, "an event of an added note is printed", 60)[0]
        finally:
            watch.send_signal(signal.SIGINT)
    assert event["uri"].startswith("added:n") and event["time"]
    assert watch.returncode == 130
