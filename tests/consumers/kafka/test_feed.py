"""A followed topic: which documents are added, replaced and removed, and where reading continues."""

import json
from functools import partial

import pytest

pytest.importorskip("confluent_kafka")

from tests.consumers.kafka.cluster import Cluster, dead
from tests.consumers.kafka.following import article, built_at_once, error_of, following, positions, shown, source
from tests.e2e.real_hippod import Daemon, hippod, until, write_config

pytestmark = [
    pytest.mark.broker,
    pytest.mark.daemon,
    pytest.mark.may_rerun("members of a group and lost brokers are told apart by timers of seconds"),
]


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as cluster:
        yield cluster


def was_tried(daemon: Daemon, uri: str, attempts: int) -> bool:
    return bool(daemon.documents()[uri]["attempts"] == attempts)


def test_messages_become_documents_are_replaced_and_removed(cluster, tmp_path):
    topic, notes = cluster.topic(), cluster.topic(1)
    for number in range(6):
        cluster.send(topic, article(number), key=f"k{number}")
    cluster.send(topic, {**article(1), "text": "Town 1 has moved."}, key="k1")
    cluster.send(topic, {"id": "a2", "deleted": True}, key="k2")
    cluster.send(topic, {"title": "By key", "text": "The key is its id.", "triples": []}, key="only-key")
    cluster.send(topic, {"title": "Gone", "text": "For a moment.", "triples": []}, key="gone")
    cluster.send(topic, None, key="gone")
    cluster.send(topic, [article(7), article(8), {"text": "One more.", "triples": []}], key="list")
    cluster.send(notes, {"id": "a3", "text": "Another topic, another document.", "triples": []}, key="k")
    cluster.flush()
    with following(tmp_path, cluster, topic, notes) as daemon:
        daemon.wait()
        base = f"kafka://{topic}/"
        assert set(daemon.documents(state="indexed")) == {
            *(base + name for name in ("a0", "a1", "a3", "a4", "a5", "a7", "a8", "only-key", "list/2")),
            f"kafka://{notes}/a3",
        }
        assert shown(daemon, base + "a1")["passages"][0]["text"] == "Town 1 has moved."
        before = daemon.export()
        for each in source(daemon)["partitions"]:
            assert (each["position"] or 0) <= each["end"], "some brokers name an end before the last messages"

        cluster.send(topic, article(0), key="k0")  # a message that a producer sends twice changes nothing
        cluster.send(topic, None, key="never there")
        cluster.flush()
        daemon.wait()
        assert daemon.export() == before


def test_message_metadata_includes_its_headers_and_timestamp(cluster, tmp_path):
    topic = cluster.topic(1)
    when = 1_600_000_000_000
    more = {"timestamp": when} if cluster.real else {}
    cluster.send(topic, article(1, author="Ada"), key="k", headers=[("trace", b"t-1"), ("raw", b"\xff")], **more)
    cluster.send(topic, article(2, published_at="1999-12-31"), key="k")
    cluster.flush()
    with following(tmp_path, cluster, topic) as daemon:
        daemon.wait()
        metadata = shown(daemon, f"kafka://{topic}/a1")["metadata"]
        about = metadata["kafka"]
        assert metadata["author"] == "Ada"
        assert (about["topic"], about["partition"], about["offset"], about["key"]) == (topic, 0, 0, "k")
        assert about["headers"] == {"trace": "t-1", "raw": "base64:/w=="}
        assert metadata["published_at"].endswith("Z")
        if cluster.real:
            assert about["timestamp"] == when
            assert metadata["published_at"] == "2020-09-13T12:26:40.000Z"
        assert shown(daemon, f"kafka://{topic}/a2")["metadata"]["published_at"] == "1999-12-31"


def test_ids_with_special_characters_give_separate_documents(cluster, tmp_path):
    topic = cluster.topic(1)
    ids = ["a b", "a#b", "a?b", "a/b", "a%23b", "ä", "100%"]
    for id in ids:
        cluster.send(topic, {"id": id, "text": f"The document {id!r}.", "triples": []}, key="k")
    cluster.flush()
    base = f"kafka://{topic}/"
    with following(tmp_path, cluster, topic) as daemon:
        daemon.wait()
        expected = {base + name for name in ("a%20b", "a%23b", "a%3Fb", "a/b", "a%2523b", "ä", "100%25")}
        assert set(daemon.documents()) == expected
        assert daemon.ctl("rm", base + "a%23b").code == 0
        assert set(daemon.documents()) == expected - {base + "a%23b"}


def test_plain_text_is_a_document_under_its_key(cluster, tmp_path):
    topic = cluster.topic(1)
    cluster.send(topic, "Ada wrote the first program.\n", key="ada")
    cluster.send(topic, b"\xff\xfe\xff", key="broken")
    cluster.send(topic, "No key at all.")
    cluster.flush()
    with following(tmp_path, cluster, topic, format="text") as daemon:
        daemon.wait()
        assert set(daemon.documents(state="indexed")) == {f"kafka://{topic}/ada", f"kafka://{topic}/0-2"}
        assert "not UTF-8" in error_of(daemon, f"kafka://{topic}#0-1")
        assert shown(daemon, f"kafka://{topic}/ada")["passages"][0]["text"].strip() == "Ada wrote the first program."


def test_a_message_of_megabytes_is_read(cluster, tmp_path):
    topic = cluster.topic(1)
    text = "\n\n".join(f"Paragraph {n} tells of the number {n} and of nothing else." for n in range(60_000))
    cluster.send(topic, {"id": "large", "text": text, "triples": [["a", "b", "c"]]})
    cluster.send(topic, article(1))
    cluster.flush()
    with following(tmp_path, cluster, topic) as daemon:
        daemon.wait()
        documents = daemon.documents()
        assert documents[f"kafka://{topic}/large"]["state"] == "indexed"
        assert documents[f"kafka://{topic}/large"]["passages"] > 1000
        assert documents[f"kafka://{topic}/a1"]["state"] == "indexed"


POISON = (
    "{broken",
    "null",
    "[]",
    '"text"',
    b"\xff\xff",
    {"id": "a1"},
    {"id": "a1", "text": 5},
    {"id": {}, "text": "An id that is none."},
    {"deleted": True},
)


def test_unparsable_message_goes_to_dead_letters_with_its_coordinates(cluster, tmp_path):
    topic, letters = cluster.topic(1), cluster.topic(2)
    cluster.send(topic, article(1))
    for value in POISON:
        cluster.send(topic, value, headers=[("trace", b"t")])
    cluster.send(topic, [article(2), {"text": None}, article(3)], key="mixed")
    cluster.send(topic, article(4))
    cluster.flush()
    with following(tmp_path, cluster, topic, dead_letter=letters) as daemon:
        daemon.wait()
        assert {uri.rpartition("/")[2] for uri in daemon.documents()} == {"a1", "a2", "a3", "a4"}
        assert daemon.status()["failed"] == 0
        buried = cluster.read(letters)
        assert dead(buried) == [(topic, 0, offset) for offset in range(1, len(POISON) + 2)]
        for letter in buried:
            headers = dict(letter.headers())
            assert headers["hippod-error"].decode().startswith("partition 0, offset")
            if letter.key() is None:
                assert headers["trace"] == b"t"
        assert {b"{broken", b"null", b"\xff\xff"} <= {letter.value() for letter in buried}


def test_unparsable_message_without_dead_letters_fails_and_can_be_retried(cluster, tmp_path):
    topic = cluster.topic(1)
    cluster.send(topic, article(1))
    cluster.send(topic, {"id": "a1", "text": 5})
    cluster.send(topic, article(2))
    cluster.flush()
    uri = f"kafka://{topic}#0-1"
    with following(tmp_path, cluster, topic) as daemon:
        daemon.wait()
        assert set(daemon.documents(state="indexed")) == {f"kafka://{topic}/a1", f"kafka://{topic}/a2"}
        assert "partition 0, offset 1" in error_of(daemon, uri)
        daemon.restart()
        assert daemon.ctl_json("retry")["requeued"] == 1
        until(lambda: daemon.documents()[uri]["attempts"] == 2, "the message was tried again")
        daemon.wait()  # it counts as in progress for a moment
        assert daemon.documents()[uri]["state"] == "failed"


def test_retry_of_a_message_does_not_restore_removed_documents(cluster, tmp_path):
    topic = cluster.topic(1)
    cluster.send(topic, [article(1), article(2), article(3), {"text": 5}], key="m")
    cluster.flush()
    base, uri = f"kafka://{topic}/", f"kafka://{topic}#0-0"
    with following(tmp_path, cluster, topic) as daemon:
        daemon.wait()
        cluster.send(topic, None, key="a1")
        cluster.flush()
        daemon.wait()
        assert daemon.ctl("rm", base + "a2").code == 0
        for attempts in (2, 3):
            daemon.restart()
            assert daemon.ctl_json("retry")["requeued"] == 1
            until(partial(was_tried, daemon, uri, attempts), "it was tried again")
            daemon.wait()
            assert set(daemon.documents()) == {base + "a3", uri}


def test_retry_after_a_format_change_gives_the_document(cluster, tmp_path):
    topic = cluster.topic(1)
    cluster.send(topic, "{broken", key="k")
    cluster.flush()
    with following(tmp_path, cluster, topic) as daemon:
        daemon.wait()
        assert set(daemon.documents(state="failed")) == {f"kafka://{topic}#0-0"}
    with following(tmp_path, cluster, topic, format="text") as daemon:
        assert daemon.ctl_json("retry")["requeued"] == 1
        until(lambda: set(daemon.documents(state="indexed")) == {f"kafka://{topic}/k"}, "it is read")
        daemon.wait()
        assert set(daemon.documents()) == {f"kafka://{topic}/k"}


def test_a_restart_continues_at_the_stored_offsets_and_commits_them_to_the_group(cluster, tmp_path):
    topic = cluster.topic(4)
    for number in range(40):
        cluster.send(topic, article(number), key=str(number))
    cluster.flush()
    with following(tmp_path, cluster, topic) as daemon:
        daemon.wait()
        assert daemon.stop() == 0
        for number in range(20, 60):
            cluster.send(topic, article(number), key=str(number))
        cluster.flush()
        daemon.start()
        assert daemon.wait()["documents"] == 60
        fetched = sum(positions(daemon).values())
        assert fetched == 80
        assert daemon.metric("hippod_documents_total", outcome="indexed") == 40  # no earlier message was read again
        until(
            lambda: cluster.committed(f"group-{topic}", topic) == positions(daemon),
            "the group's offsets are the store's",
        )
        assert source(daemon)["lag"] == 0
        assert daemon.export() == built_at_once([article(n) for n in range(60)])


def test_start_latest_skips_existing_messages_and_reads_later_ones(cluster, tmp_path):
    topic = cluster.topic(2)
    for number in range(10):
        cluster.send(topic, article(number), key=str(number))
    cluster.flush()
    with following(tmp_path, cluster, topic, start="latest") as daemon:
        daemon.wait()
        until(lambda: None not in positions(daemon).values() and positions(daemon), "its beginning is committed")
        assert daemon.documents() == {}
        daemon.kill()  # before any message arrived
        for number in range(10, 20):
            cluster.send(topic, article(number), key=str(number))
        cluster.flush()
        daemon.start()
        assert daemon.wait()["documents"] == 10


def test_two_daemons_of_a_group_share_partitions_and_keep_their_documents(cluster, tmp_path):
    topic = cluster.topic(4)
    one = following(tmp_path / "one", cluster, topic)
    two = following(tmp_path / "two", cluster, topic)
    with one, two:
        until(
            lambda: len(source(one)["partitions"]) == len(source(two)["partitions"]) == 2,
            "each has its share",
        )
        for number in range(40):
            cluster.send(topic, article(number), key=str(number))
        cluster.flush()
        one.wait()
        two.wait()
        first, second = set(one.documents()), set(two.documents())
        assert first | second == {f"kafka://{topic}/a{n}" for n in range(40)}
        assert not first & second
        assert two.stop() == 0
        until(lambda: len(source(one)["partitions"]) == 4, "the one that is left has them all")
        cluster.send(topic, None, key="a0")
        cluster.flush()
        one.wait()
        # It reads its newly assigned partitions from the positions in its own store, which has none: from the beginning.
        assert set(one.documents()) == {f"kafka://{topic}/a{n}" for n in range(1, 40)}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("options = { bogus = 1 }", "kafka[0].options.bogus"),
        ('options = { session_timeout_ms = "x" }', "kafka[0].options.session_timeout_ms"),
        ("options = { heartbeat_interval_ms = 60000 }", "kafka[0].options.heartbeat_interval_ms"),
        ("options = { request_timeout_ms = 100 }", "kafka[0].options.request_timeout_ms"),
        ('options = { isolation_level = "x" }', "kafka[0].options.isolation_level"),
        ('options = { client_dns_lookup = "x" }', "kafka[0].options.client_dns_lookup"),
        ('options = { group_id = "x" }', "kafka[0].options.group_id"),
        ('options = { security_protocol = "TLS" }', "kafka[0].options.security_protocol"),
        ('options = { security_protocol = "SASL_SSL", sasl_mechanism = "X" }', "kafka[0].options.sasl_mechanism"),
        ('options = { security_protocol = "SSL", ssl_cafile = "/nowhere" }', "kafka[0].options.ssl_cafile"),
        ('dead_letter = "d"\noptions = { compression_type = "x" }', "kafka[0].options.compression_type"),
        ('dead_letter = "t"', "kafka[0].dead_letter"),
        ('brokers = ["h:1"]\n[[kafka]]\ntopics = ["t"]', "kafka[1].topics"),
    ],
)
def test_options_that_the_client_refuses_are_configuration_errors(tmp_path, text, named):
    file = tmp_path / "hippod.toml"
    file.write_text(f'[[kafka]]\ntopics = ["t"]\n{text}\n')
    ran = hippod(tmp_path, "--config", str(file), "--check")
    assert ran.code == 2, ran
    assert named in ran.err


def test_options_that_the_client_takes_pass_the_check_without_a_broker(tmp_path):
    table = {
        "brokers": ["nowhere.invalid:9092"],
        "topics": ["t"],
        "options": {
            "api_version": [2, 3],
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": "ada",
            "sasl_plain_password": "secret-word",
        },
    }
    file = write_config(tmp_path / "hippod.toml", {"kafka": [table]})
    ran = hippod(tmp_path, "--config", str(file), "--check")
    assert ran.code == 0, ran
    assert "secret-word" not in ran.out + ran.err
    assert json.dumps("SCRAM-SHA-512") in ran.out
