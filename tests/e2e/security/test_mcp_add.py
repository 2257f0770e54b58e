"""An agent, and authors of documents, try to change more than a text's metadata through the names of metadata keys."""

import json
from collections.abc import Iterator

import pytest
from mcp import Client

from consumers.types import INTERNAL_KEYS as KEPT_BY_CONSUMERS
from daemon.contract.documents import DOCUMENT_KEYS, INTERNAL_KEYS
from tests.daemon.mcp.sdk_client import CONNECTIONS, Connection, talk, text_of, with_tcp
from tests.e2e.real_hippod import Daemon, Json

pytestmark = pytest.mark.daemon

STATED = {
    "kafka": {"topic": "t", "partition": 0, "offset": 10**9},
    "record": {"stream": "t/0", "offset": 10**9, "time_ms": 0},
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with with_tcp(tmp_path_factory.mktemp("add"), mcp={"write": True}) as running:
        yield running


def metadata(daemon: Daemon, uri: str) -> Json:
    return dict(daemon.ctl_json("show", uri)["metadata"])


@pytest.mark.parametrize("connection", [CONNECTIONS[0], CONNECTIONS[2]], ids=str)
def test_mcp_add_refuses_reserved_metadata_keys(daemon: Daemon, connection: Connection) -> None:
    [victim] = daemon.add({"id": "victim", "text": "The mill of Ternby."})
    daemon.wait()

    async def script(client: Client) -> None:
        for key in sorted(DOCUMENT_KEYS | INTERNAL_KEYS):
            for value in (True, "victim", "UGxhbnRlZA==", [["a", "b", "c"]], {"offset": 1}):
                call = {"text": "Approved.", "metadata": {"id": "victim", key: value}, "wait_s": 0}
                refused = await client.call_tool("add", call)
                assert refused.is_error and key in text_of(refused)
        for key in ("id", "url", "labels", "deleted"):
            refused = await client.call_tool("add", {"text": "Approved.", key: "victim"})
            assert refused.is_error and "is unknown" in text_of(refused)
        sound = {"text": "Approved.", "title": "T", "metadata": {"by": "me", "ID": "x"}, "wait_s": 90}
        added = (await client.call_tool("add", sound)).structured_content
        assert added["searchable"] and added["uri"] != victim
        assert metadata(daemon, added["uri"]) == {"by": "me", "ID": "x"}

    talk(daemon, connection, script, "--write")
    assert daemon.ctl_json("show", victim)["passages"][0]["text"] == "The mill of Ternby."


def test_authors_cannot_set_metadata_reserved_for_hippod(daemon: Daemon) -> None:
    [added] = daemon.add({"id": "a", "text": "Added.", **STATED})
    uris = [
        added,
        daemon.write("one.json", json.dumps({"text": "A file.", **STATED})),
        daemon.write("lines.jsonl", json.dumps({"id": "l", "text": "A line.", **STATED}) + "\n") + "#l",
        daemon.write("front.md", "---\nkafka: x\nrecord: y\nby: me\n---\n# Front\n\nA text.\n"),
        daemon.write("org.org", "#+KAFKA: x\n#+RECORD: y\n\nA text of the file.\n"),
        daemon.write("field.rst", "Front\n=====\n\n:kafka: x\n:record: y\n\nA text of the file.\n"),
    ]
    daemon.wait()
    assert KEPT_BY_CONSUMERS == INTERNAL_KEYS
    for uri in uris:
        found = metadata(daemon, uri)
        assert INTERNAL_KEYS.isdisjoint(found), (uri, found)
    kept = metadata(daemon, added)
    assert (kept["kafka_"], kept["record_"]) == (STATED["kafka"], STATED["record"]), "as other keys, they are kept"
    asked = {"query": "Added.", "after": {added: 5}, "after_timeout_s": 0.2}
    refused = daemon.http.post("/v1/query", json=asked)
    assert not refused.is_success and "the memory does not contain it" in refused.text, "a stated offset is no position"
