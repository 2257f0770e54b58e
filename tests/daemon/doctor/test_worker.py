"""What doctor says of [worker]."""

import pytest

pytest.importorskip("confluent_kafka")

from daemon.config import load_config
from daemon.doctor.configuration import worker
from tests.consumers.kafka.cluster import Cluster


def found(tmp_path, text):
    file = tmp_path / "worker.toml"
    file.write_text(text)
    return list(worker(load_config(file, {"HOME": str(tmp_path)})))


def test_no_worker_section_gives_no_finding(tmp_path):
    assert found(tmp_path, "") == []


def test_invalid_worker_section_is_a_failure(tmp_path):
    [finding] = found(tmp_path, '[worker]\ntopics = ["a"]\n')
    assert finding.status == "fail" and "worker.output is not set" in finding.detail


@pytest.mark.broker
def test_missing_kafka_topics_are_named(tmp_path):
    with Cluster() as cluster:
        there = cluster.topic(1)
        options = "[worker.options]\napi_version = [2, 3]\n" if cluster.options else ""
        brokers = str(cluster.brokers.split(",")).replace("'", '"')
        text = f'[worker]\nbrokers = {brokers}\ntopics = ["{there}"]\noutput = "%s"\n{options}'
        [finding] = found(tmp_path, text % "no-such-topic")
        assert finding.status == "fail" and "no topic no-such-topic" in finding.detail
        [finding] = found(tmp_path, text % cluster.topic(1))
        assert finding.status == "ok"
