"""`rm --source`: an operator removes the documents of a source, such as the messages of a compromised producer."""

import os
from collections.abc import Iterator

import httpx2
import pytest

from tests.consumers.kafka.cluster import Cluster
from tests.consumers.kafka.following import article, following
from tests.daemon.mcp.sdk_client import free_port
from tests.e2e.real_hippod import PATIENCE_S, Daemon, write_config

pytestmark = [pytest.mark.broker, pytest.mark.daemon]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        yield made


@pytest.fixture
def daemon(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    home = tmp_path_factory.mktemp("source")
    (home / "token").write_text("token-of-the-clerk")
    clients = [
        {"name": "operator", "user": str(os.getuid()), "labels": ["*"], "rights": ["read", "write", "admin"]},
        {"name": "clerk", "token_file": str(home / "token"), "labels": ["public"], "rights": ["read", "write"]},
    ]
    sections = {"client": clients, "api": {"tcp": f"127.0.0.1:{free_port()}"}}
    made = following(home, cluster, cluster.topic(1), sections=sections)
    (home / "drive").mkdir()
    made.sections["folder"] = [{"path": str(home / "drive")}]
    write_config(made.config, made.sections)
    with made:
        yield made
    print(f"--- logged:\n{made.log_text()[-6000:]}")


def topic_of(daemon: Daemon) -> str:
    return str(daemon.sections["kafka"][0]["topics"][0])


def source_of(daemon: Daemon) -> str:
    return next(str(each["name"]) for each in daemon.status()["sources"] if each["kind"] == "kafka")


def send(cluster: Cluster, daemon: Daemon, *numbers: int, text: str | None = None) -> None:
    for number in numbers:
        cluster.send(topic_of(daemon), article(number, text))
    cluster.flush()
    daemon.wait()


def uris(daemon: Daemon, *numbers: int) -> list[str]:
    return [f"kafka://{topic_of(daemon)}/a{number}" for number in numbers]


def test_rm_source_with_committed_since_removes_only_later_documents(cluster: Cluster, daemon: Daemon) -> None:
    (daemon.home / "drive" / "note.md").write_text("# Note\n\nTown 9 lies on river 9.\n")
    daemon.add({"id": "x", "text": "An added text."})
    send(cluster, daemon, 1, 2, 3)
    before = daemon.documents()
    send(cluster, daemon, 2, text="A stranger wrote this of town 2.")
    send(cluster, daemon, 4, 5)
    wrong = uris(daemon, 2, 4, 5)
    since = min(str(daemon.documents()[uri]["committed_at"]) for uri in wrong)
    name = source_of(daemon)

    dry = daemon.ctl_json("rm", "--source", name, "--committed-since", since)
    assert (dry["documents"], dry["removed"]) == (wrong, 0)
    assert daemon.documents().keys() >= set(wrong)
    said = daemon.ctl("rm", "--source", name, "--committed-since", since)
    assert said.code == 0 and "3 documents would be removed; add --yes" in said.out and wrong[0] in said.out

    done = daemon.ctl_json("rm", "--source", name, "--committed-since", since, "--yes")
    assert (done["documents"], done["removed"]) == (wrong, 3)
    left = before.keys() - {wrong[0]}
    assert daemon.documents().keys() == left
    daemon.restart()
    daemon.wait()
    assert daemon.documents().keys() == left, "older messages do not bring them back"
    send(cluster, daemon, 4, text="Town 4 lies on another river.")
    assert daemon.documents().keys() == left | {wrong[1]}, "a new message does"

    whole = daemon.ctl_json("rm", "--source", name, "--yes")
    assert (whole["documents"], whole["removed"]) == (uris(daemon, 1, 3, 4), 3)
    assert daemon.ctl_json("rm", "--source", "added", "--yes")["documents"] == ["added:x"]
    assert list(daemon.documents()) == [(daemon.home / "drive" / "note.md").as_uri()]


def test_rm_source_refuses_followed_folders_and_unknown_names(daemon: Daemon) -> None:
    (daemon.home / "drive" / "note.md").write_text("# Note\n\nA file.\n")
    daemon.wait()
    refused = daemon.ctl("rm", "--source", str(daemon.home / "drive"), "--yes")
    assert refused.code == 1 and "is a followed folder" in refused.err
    assert len(daemon.documents()) == 1
    assert daemon.ctl_json("rm", "--source", "added", "--yes")["documents"] == []
    unknown = daemon.ctl("rm", "--source", "nothing", "--yes")
    assert unknown.code == 1 and "No source is named 'nothing'" in unknown.err
    for wrong in (["rm"], ["rm", "added:x", "--source", "added"], ["rm", "added:x", "--yes"], ["rm", "--yes"]):
        assert daemon.ctl(*wrong).code == 2


def test_rm_source_by_a_client_removes_only_visible_documents_and_names_no_others(
    cluster: Cluster, daemon: Daemon
) -> None:
    daemon.add({"id": "open", "text": "Open.", "labels": ["public"]}, {"id": "closed", "text": "Closed."})
    send(cluster, daemon, 1)
    address = f"http://{daemon.sections['api']['tcp']}"
    headers = {"authorization": "Bearer token-of-the-clerk"}
    with httpx2.Client(base_url=address, headers=headers, timeout=PATIENCE_S, trust_env=False) as clerk:
        answers = [
            clerk.post("/v1/remove-source", json={"source": name})
            for name in (source_of(daemon), str(daemon.home / "drive"), "nothing")
        ]
        assert [each.status_code for each in answers] == [404, 404, 404]
        said = {each.json()["detail"].partition("named")[0] for each in answers}
        assert said == {"No source is "}
        gone = clerk.post("/v1/remove-source", json={"source": "added"}).json()
        assert (gone["documents"], gone["removed"]) == (["added:open"], 1)
    assert daemon.documents().keys() == {"added:closed", *uris(daemon, 1)}
