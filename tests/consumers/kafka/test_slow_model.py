"""With a model slower than the poll interval, the source continues, and the model's triples are added later."""

import time

import pytest

from tests.consumers.kafka.cluster import Cluster
from tests.consumers.kafka.following import following, positions, source
from tests.e2e.real_hippod import texts, until
from tests.memory.llm.model_server import Hang, ModelServer, obedient

pytestmark = [pytest.mark.broker, pytest.mark.daemon]

POLL_MS = 4_000


@pytest.fixture
def cluster():
    with Cluster() as cluster:
        yield cluster


def test_slow_model_keeps_group_membership_and_delays_no_message(cluster, tmp_path):
    topic = cluster.topic(2)
    limits = {"max_poll_interval_ms": POLL_MS, "session_timeout_ms": 6_000}
    with ModelServer(lambda call: Hang()) as model:
        sections = {
            "llm": {"base_url": model.url, "model": "test-model", "timeout_s": 60.0},
            "openie": {"backend": "llm", "concurrency": 2},
        }
        with following(tmp_path, cluster, topic, options=limits, sections=sections) as daemon:
            for number in range(40):
                cluster.send(
                    topic, {"title": f"Doc {number}", "text": f"Town {number} lies on a river."}, key=str(number)
                )
            cluster.flush()
            until(
                lambda: sum(at or 0 for at in positions(daemon).values()) == 40,
                "every message is taken in and its offset stored",
            )
            until(lambda: model.inside > 0, "the model has been asked")
            began = time.monotonic()
            until(lambda: time.monotonic() > began + 2.5 * POLL_MS / 1000, "much longer than polls may be apart")
            stands = source(daemon)
            assert (stands["state"], stands["rebalances"]) == ("following", 1)
            assert daemon.query("Town 7", "bm25")[0]["document"] == f"kafka://{topic}/7"
            assert texts(daemon.export(), "triple") == []
            cluster.send(topic, {"title": "Late", "text": "The ferry leaves at noon."}, key="late")
            cluster.flush()
            until(lambda: daemon.query("ferry noon", "bm25"), "a message that comes meanwhile is found")
            model.script = obedient
            model.stop()  # the hanging calls end, as after a restart of the server
            model.start()
            status = daemon.wait()
            assert (status["documents"], status["pending"], status["failed"]) == (41, 0, 0)
            assert texts(daemon.export(), "triple") != []
            assert source(daemon)["rebalances"] == 1
