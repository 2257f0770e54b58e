"""A producer of a records topic, and clients, try to take over documents of every other source of a real hippod."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

pytest.importorskip("confluent_kafka")

from consumers.records.messages import POSITION_HEADER, to_messages
from consumers.records.record import Record, SourcePosition
from consumers.records.writer import to_message, write_file
from consumers.types import ParsedDocument
from memory.encoder import make_encoder
from store.store import Store
from store.types import Batch
from tests.consumers.kafka.cluster import Cluster, dead, headers_of
from tests.consumers.kafka.following import QUICK, shown
from tests.daemon.pipeline.test_records import parsed
from tests.e2e.real_hippod import Daemon, Json, until

pytestmark = [pytest.mark.broker, pytest.mark.daemon]

SECRET = "zanzibarium"
"""Occurs in the name of the folder that no sender may learn."""
TEXT = "The board of Ternby met on Monday."
LATE = SourcePosition("kafka:elsewhere/0", 1 << 40, 1 << 45)
OPERATIONS = ("write", "relabel", "fail", "null", "removed")
VICTIMS = {
    "file": "a followed folder",
    "line of a file": "a followed folder",
    "file that is not there": "a followed folder",
    "another name of a file": "a followed folder",
    "article": "a followed topic",
    "unreadable article": "a followed topic",
    "partition": "a followed topic",
    "record of another topic": "another topic of records",
    "unreadable record of another topic": "another topic of records",
    "added": "the source of added documents",
    "added under labels": "the source of added documents",
    "upload's attachment": "the source of added documents",
    "imported": "the source of added documents",
    "file of no folder": "the source of added documents",
    "nobody's": "the source of added documents",
}
"""By kind of the owner, as the dead letter must state it."""


@dataclass
class Memory:
    cluster: Cluster
    daemon: Daemon
    uris: dict[str, str]
    topics: dict[str, str]
    before: dict[str, Json | None]
    export: list[str]


def record(uri: str, text: str = TEXT, label: str = "board", position: SourcePosition | None = LATE) -> Record:
    document = parsed(uri, "Minutes", text, [["board", "met on", "Monday"]], labels=[label])
    return Record(document, (None,) * len(document.passages), position)


def attacks(uri: str) -> dict[str, Record]:
    """Returns records by operation; `removed` is sent as a value, not as a null."""
    return {
        "write": record(uri, "Everything was sold."),
        "relabel": record(uri, label="public"),
        "fail": Record(ParsedDocument(uri, error="Everything is lost."), (), LATE),
        "null": Record(ParsedDocument(uri, deleted=True), (), LATE),
        "removed": Record(ParsedDocument(uri, deleted=True), (), LATE),
    }


def looked_at(daemon: Daemon, uri: str) -> Json | None:
    if uri not in daemon.documents():
        return None
    found = shown(daemon, uri)
    return {key: value for key, value in found.items() if key != "committed_at"}


def follow(home: Path, cluster: Cluster, topics: dict[str, str]) -> Daemon:
    base: Json = {"brokers": cluster.brokers.split(","), "options": {**cluster.options, **QUICK}}
    feeds: list[Json] = [
        {"topics": [topics["articles"]]},
        {"topics": [topics["texts"]], "format": "text"},
        {"topics": [topics["records"]], "format": "records", "labels": ["public"], "dead_letter": topics["letters"]},
        {"topics": [topics["others"]], "format": "records", "uris": ["kafka://notes/"]},
    ]
    for feed in feeds:
        feed |= base | {"group": f"group-{feed['topics'][0]}"}
    (home / "clerk").write_text("token-of-clerk")
    clients = [
        {"name": "operator", "user": str(os.getuid()), "labels": ["*"], "rights": ["read", "write", "admin"]},
        {"name": "clerk", "token_file": str(home / "clerk"), "labels": ["public"], "rights": ["read", "write"]},
    ]
    return Daemon(home, folders=(SECRET,), folder={"labels": ["board"]}, kafka=feeds, client=clients)


def publish(cluster: Cluster, topic: str, *records: Record) -> None:
    for message in (message for each in records for message in to_messages(each, 900_000)):
        cluster.send(topic, message.value, key=message.key, headers=list(message.headers))
    cluster.flush()


def settle(memory: Memory, marker: str) -> None:
    """Waits until everything that the attacker sent is processed: a permitted message follows in the same partition."""
    publish(memory.cluster, memory.topics["records"], record(f"kafka://free/{marker}", TEXT))
    until(lambda: f"kafka://free/{marker}" in memory.daemon.documents(state="indexed"), f"{marker} is indexed")
    memory.daemon.ctl("rm", f"kafka://free/{marker}")


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    home = tmp_path_factory.mktemp("owned")
    with Cluster() as cluster:
        topics = {name: cluster.topic(1) for name in ("articles", "texts", "records", "others", "letters")}
        daemon = follow(home, cluster, topics)
        uris = {
            "file": daemon.write("minutes.md", f"---\nlabels: [board]\n---\n{TEXT}"),
            "line of a file": daemon.write("all.jsonl", '{"id": "1", "text": "The line says so."}') + "#1",
            "file that is not there": daemon.uri("later.md"),
            "another name of a file": daemon.uri("minutes.md").replace("minutes", "%6Dinutes"),
            "article": f"kafka://{topics['articles']}/a1",
            "unreadable article": f"kafka://{topics['articles']}#0-1",
            "partition": f"kafka:{topics['articles']}/0",
            "record of another topic": "kafka://notes/1",
            "unreadable record of another topic": f"kafka://{topics['others']}#0-1",
            "added": "added:minutes",
            "added under labels": "added:[public]/minutes",
            "upload's attachment": "added:mail#1/minutes.md",
            "imported": "s3://archive/minutes",
            "file of no folder": "file:///nowhere/minutes.md",
            "nobody's": "https://example.org/minutes",
        }
        cluster.send(topics["articles"], {"id": "a1", "text": TEXT, "labels": ["board"], "triples": []})
        cluster.send(topics["articles"], "{broken")
        cluster.flush()
        publish(cluster, topics["others"], record(uris["record of another topic"]))
        cluster.send(topics["others"], "broken", key="kafka://notes/2")
        cluster.flush()
        write_file(home / "a.parquet", [record(uris["imported"], position=None)])
        with daemon:
            daemon.add({"id": "minutes", "text": TEXT, "labels": ["board"]})
            daemon.ask(
                "POST",
                "/v1/documents",
                json={"documents": [{"id": "minutes", "text": TEXT}]},
                headers={"authorization": "Bearer token-of-clerk"},
            )
            assert daemon.ctl_json("import", home / "a.parquet")["records"] == 1
            daemon.wait()
            missing = {"file that is not there", "another name of a file", "partition", "upload's attachment"}
            missing |= {"file of no folder", "nobody's"}
            assert {name for name in VICTIMS if uris[name] not in daemon.documents()} == missing
            before = {name: looked_at(daemon, uris[name]) for name in VICTIMS}
            made = Memory(cluster, daemon, uris, topics, before, daemon.export())
            for name in VICTIMS:
                for operation, attack in attacks(uris[name]).items():
                    if operation == "removed":
                        headers = [(POSITION_HEADER, b'{"stream": "x", "offset": 1, "time_ms": 99999999999999}')]
                        cluster.send(topics["records"], to_message(attack), key=attack.uri, headers=headers)
                        cluster.flush()
                    else:
                        publish(cluster, topics["records"], attack)
            cluster.send(topics["records"], None, key=uris["file"])  # without any header
            cluster.flush()
            settle(made, "1")
            yield made
        print(f"--- {daemon.home} logged:\n{daemon.log_text()[-6000:]}")


def letters(memory: Memory) -> list[tuple[str, str]]:
    """Returns the key and the reason of every dead letter."""
    found = memory.cluster.read(memory.topics["letters"])
    return [((each.key() or b"").decode(), headers_of(each)["hippod-error"].decode()) for each in found]


@pytest.mark.parametrize("victim", VICTIMS)
def test_a_record_changes_no_document_of_another_source(memory: Memory, victim: str) -> None:
    assert looked_at(memory.daemon, memory.uris[victim]) == memory.before[victim]


@pytest.mark.parametrize("victim", VICTIMS)
def test_each_refused_message_becomes_a_dead_letter_naming_the_kind_of_the_owner(memory: Memory, victim: str) -> None:
    reasons = [reason for key, reason in letters(memory) if key == memory.uris[victim]]
    assert len(reasons) == len(OPERATIONS) + (victim == "file")
    assert all(f"the document belongs to {VICTIMS[victim]}, and no other source" in reason for reason in reasons)
    assert not any(SECRET in reason or "notes" in reason for reason in reasons)


def test_refused_messages_leave_the_memory_unchanged_after_a_restart(memory: Memory) -> None:
    assert memory.daemon.export() == memory.export
    memory.daemon.restart().wait()
    assert memory.daemon.export() == memory.export
    assert {name: looked_at(memory.daemon, uri) for name, uri in memory.uris.items()} == memory.before
    assert len(dead(memory.cluster.read(memory.topics["letters"]))) == len(VICTIMS) * len(OPERATIONS) + 1, "each once"


@pytest.mark.parametrize("topic", ["articles", "texts"])
def test_message_gets_a_uri_of_its_topic_for_any_id(memory: Memory, topic: str) -> None:
    name = memory.topics[topic]
    ids = [*memory.uris.values(), "../../notes/1", "#0-1"]
    for each in ids:
        value = {"id": each, "text": "Taken over.", "labels": ["public"], "triples": []}
        memory.cluster.send(name, value if topic == "articles" else "Taken over.", key=each)
    memory.cluster.flush()
    memory.daemon.wait()
    made = {uri for uri in memory.daemon.documents() if uri.startswith(f"kafka://{name}/")} - set(memory.uris.values())
    assert len(made) == len(ids)
    memory.daemon.ctl_json("rm", *made)
    memory.daemon.wait()
    assert {victim: looked_at(memory.daemon, uri) for victim, uri in memory.uris.items()} == memory.before


def test_http_add_and_delete_cannot_name_uris_of_other_sources(memory: Memory) -> None:
    """The answer equals that for an unused URI, whether the client sees the document or not."""
    clerk = {"authorization": "Bearer token-of-clerk"}
    ids = [*memory.uris.values(), "[board]/minutes"]
    for headers in ({}, clerk):
        documents = [{"id": each, "text": "Taken over.", "labels": ["public"]} for each in ids]
        answer = memory.daemon.ask("POST", "/v1/documents", json={"documents": documents}, headers=headers)
        unused = memory.daemon.ask(
            "POST", "/v1/documents", json={"documents": [{**documents[0], "id": "unused"}]}, headers=headers
        )
        assert answer.keys() == unused.keys()
        made = [*answer["documents"], *unused["documents"]]
        assert all(uri.startswith("added:") for uri in made) and not set(made) & set(memory.uris.values())
        memory.daemon.wait()
        gone = [{"id": each, "deleted": True, "labels": ["public"]} for each in [*ids, "unused"]]
        memory.daemon.ask("POST", "/v1/documents", json={"documents": gone}, headers=headers)
    assert {victim: looked_at(memory.daemon, uri) for victim, uri in memory.uris.items()} == memory.before


def test_a_client_without_the_right_imports_nothing(memory: Memory, tmp_path: Path) -> None:
    write_file(tmp_path / "a.parquet", [record(uri, "Taken over.") for uri in memory.uris.values()])
    answer = memory.daemon.http.post(
        "/v1/import",
        content=(tmp_path / "a.parquet").read_bytes(),
        headers={"authorization": "Bearer token-of-clerk", "content-type": "application/octet-stream"},
    )
    assert answer.status_code == 403
    assert {victim: looked_at(memory.daemon, uri) for victim, uri in memory.uris.items()} == memory.before


def test_client_that_sees_everything_can_import_and_remove_any_sources_documents(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    file = daemon.write("minutes.md", TEXT)
    with daemon:
        daemon.wait()
        write_file(tmp_path / "a.parquet", [record(file, "The board met on Tuesday.")])
        assert daemon.ctl_json("import", tmp_path / "a.parquet")["records"] == 1
        assert shown(daemon, file)["source"] == str(daemon.drive), "it is the folder's, as it is after a restart"
        assert "Tuesday" in daemon.query("When did the board meet?")[0]["text"]
        daemon.restart().wait()
        assert shown(daemon, file)["source"] == str(daemon.drive)
        assert daemon.ctl_json("rm", file)["removed"] == 1
        assert daemon.documents() == {}


def test_newly_followed_folder_takes_over_documents_imported_below_it(tmp_path: Path) -> None:
    (tmp_path / "drive").mkdir()
    file = tmp_path / "drive" / "minutes.md"
    write_file(tmp_path / "a.parquet", [record(file.as_uri(), "Imported.")])
    with Daemon(tmp_path, folders=()) as before:
        assert before.ctl_json("import", tmp_path / "a.parquet")["records"] == 1
        assert shown(before, file.as_uri())["source"] == "added"
    file.write_text("The file says otherwise.")
    with Daemon(tmp_path) as daemon:
        daemon.wait()
        assert shown(daemon, file.as_uri())["source"] == str(daemon.drive)
        assert [passage["text"] for passage in daemon.query("What does the file say?")] == ["The file says otherwise."]


def test_folder_restores_files_that_a_message_changed_in_an_earlier_release(tmp_path: Path) -> None:
    with Cluster() as cluster:
        topics = {name: cluster.topic(1) for name in ("articles", "texts", "records", "others", "letters")}
        daemon = follow(tmp_path, cluster, topics)
        names = ("removed.md", "replaced.md", "forgotten.md", "kept.md")
        uris = {name: daemon.write(name, f"The file {name} is about the mill.") for name in names}
        with daemon:
            daemon.wait()
            texts = {each["text"] for each in daemon.query("What is about the mill?")}
            assert daemon.ctl_json("rm", uris["forgotten.md"])["removed"] == 1
            assert daemon.stop() == 0
            as_a_message_did(daemon, topics["records"], uris["removed.md"], uris["replaced.md"])
            daemon.start().wait()
            found = daemon.documents()
            assert set(found) == set(uris.values()) - {uris["forgotten.md"]}
            assert {each["text"] for each in daemon.query("What is about the mill?")} == {
                each for each in texts if "forgotten" not in each
            }
            assert shown(daemon, uris["replaced.md"])["source"] == str(daemon.drive)
            assert "labels" not in shown(daemon, uris["replaced.md"])["metadata"]


def as_a_message_did(daemon: Daemon, source: str, removed: str, replaced: str) -> None:
    """Commits what an earlier version committed for two messages of a records topic."""
    encoder = make_encoder("hash", "", 64, "cpu")
    with Store(daemon.store, encoder.identity) as store:
        document = store.document(replaced)
        other = store.document(removed)
        assert document is not None and other is not None
        taken = replace(document, source=source, metadata={"labels": ["public"]}, passages=other.passages)
        store.commit(Batch((taken,), (removed,), (), ()))
