"""A client learns nothing about the positions of a stream that it does not see completely."""

from collections.abc import Iterator

import pytest

pytest.importorskip("confluent_kafka")

from tests.consumers.kafka.cluster import Cluster
from tests.daemon.access.conftest import Memory
from tests.e2e.real_hippod import Json
from tests.e2e.security.two_clients import post, two_clients

pytestmark = [pytest.mark.daemon, pytest.mark.broker]

TOPICS = {"deals": ["board"], "news": ["public"], "mixed": []}


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    with Cluster() as cluster:
        tables = []
        for topic, labels in TOPICS.items():
            own = ["public"] if topic == "mixed" else []
            cluster.topic(1, topic)
            for number in range(3):
                cluster.send(topic, {"id": str(number), "text": f"Solveig Aas wrote {topic} {number}.", "labels": own})
            cluster.flush()
            options = {**cluster.options, "session_timeout_ms": 6000, "heartbeat_interval_ms": 500}
            tables.append(
                {"brokers": [cluster.brokers], "topics": [topic], "group": topic, "labels": labels, "options": options}
            )
        with two_clients(tmp_path_factory.mktemp("positions"), kafka=tables) as found:
            found.daemon.wait()
            yield found


def answer(memory: Memory, client: str, after: Json) -> tuple[int, list[str]]:
    """Returns the status, and the positions in the answer."""
    body = {"query": "Who wrote?", "mode": "bm25", "after": after, "after_timeout_s": 0}
    response = post(memory, client, "/v1/query", body)
    return response.status_code, [each["message"] for each in response.json().get("errors", [])]


def test_position_of_a_partly_visible_topic_is_answered_as_for_a_missing_topic(memory: Memory) -> None:
    ok: tuple[int, list[str]] = (200, [])
    assert answer(memory, "visitor", {"news/0": 2}) == ok
    assert answer(memory, "visitor", {"news/0": 3}) == (409, ["position 3 is not reached; the memory is at 2"])
    assert answer(memory, "board", {"deals/0": 2}) == ok
    for wanted in (-1, 0, 2, 3, 10**6):
        nowhere = answer(memory, "visitor", {"nowhere/0": wanted})
        assert nowhere[0] == 409
        for hidden in ("deals/0", "mixed/0", "deals/1", "deals"):
            assert answer(memory, "visitor", {hidden: wanted}) == nowhere, hidden
    documents = [answer(memory, "visitor", {f"kafka://{topic}/1": 0}) for topic in ("news", "deals", "nowhere")]
    assert documents[0][0] == 422 and documents.count(documents[0]) == 3


def test_client_can_use_only_its_own_positions_of_added_documents(memory: Memory) -> None:
    def add(client: str, number: int) -> int:
        documents = [{"id": f"{client}-{number}", "text": f"Solveig Aas wrote note {number}."}]
        added = post(memory, client, "/v1/documents", {"documents": documents})
        return int(added.json()["position"]["added"])

    mine = [add("clerk", number) for number in range(3)]
    others = [add("board", number) for number in range(3)]
    memory.daemon.wait()
    raw = int(
        memory.daemon.ask("POST", "/v1/documents", json={"documents": [{"id": "raw", "text": "A."}]})["position"][
            "added"
        ]
    )
    memory.daemon.wait()
    assert all(answer(memory, "clerk", {"added": each}) == (200, []) for each in mine)
    guesses = [*range(1, raw + 3), *others, mine[0] + 1, 2**52, 2**53]
    for client in ("clerk", "visitor"):
        for wanted in guesses if client == "clerk" else [*guesses, *mine]:
            assert answer(memory, client, {"added": wanted}) == (
                409,
                [f"position {wanted} is not reached; the memory does not contain it"],
            )
    memory.daemon.restart()
    assert all(answer(memory, "clerk", {"added": each}) == (200, []) for each in mine), "also after a restart"
    assert answer(memory, "board", {"added": mine[0]})[0] == 409


def test_status_routes_omit_hidden_streams(memory: Memory) -> None:
    with memory.client("visitor") as visitor:
        for path in ("/v1/status", "/v1/scopes", "/page/overview", "/healthz"):
            said = visitor.get(path).text
            assert "deals" not in said, path
        assert visitor.get("/healthz").json() == {"state": "ready"}
        assert {each["name"] for each in visitor.get("/v1/status").json()["sources"]} == {
            "news",
            str(memory.daemon.folders[0]),
        }
        waited = visitor.post("/v1/wait", json={"timeout_s": 60}).json()
        assert {each["kind"] for each in waited["sources"]} == {"folder", "kafka"} and len(waited["sources"]) == 2
        assert visitor.get("/metrics").status_code == 403
