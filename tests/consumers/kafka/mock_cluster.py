"""A Kafka cluster in a separate process: librdkafka's mock brokers, which speak the real protocol over loopback.

`python mock_cluster.py BROKERS` prints the bootstrap addresses, then reads one JSON command a line from stdin and answers each
with a line. It uses the librdkafka inside confluent-kafka, because the Python wrapper exposes little of the mock API.
"""

import ctypes
import glob
import json
import os
import sys

import confluent_kafka

[LIBRARY] = glob.glob(
    os.path.join(os.path.dirname(confluent_kafka.__file__), "../confluent_kafka.libs/librdkafka-*.so*")
)
PRODUCER = 0


def library() -> ctypes.CDLL:
    rd = ctypes.CDLL(LIBRARY)
    pointer, text, whole = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    rd.rd_kafka_conf_new.restype = pointer
    rd.rd_kafka_new.restype = pointer
    rd.rd_kafka_new.argtypes = [whole, pointer, text, ctypes.c_size_t]
    rd.rd_kafka_mock_cluster_new.restype = pointer
    rd.rd_kafka_mock_cluster_new.argtypes = [pointer, whole]
    rd.rd_kafka_mock_cluster_bootstraps.restype = text
    rd.rd_kafka_mock_cluster_bootstraps.argtypes = [pointer]
    rd.rd_kafka_mock_topic_create.argtypes = [pointer, text, whole, whole]
    rd.rd_kafka_mock_topic_delete.argtypes = [pointer, text]
    rd.rd_kafka_mock_broker_set_down.argtypes = [pointer, ctypes.c_int32]
    rd.rd_kafka_mock_broker_set_up.argtypes = [pointer, ctypes.c_int32]
    rd.rd_kafka_mock_broker_set_rtt.argtypes = [pointer, ctypes.c_int32, whole]
    rd.rd_kafka_mock_partition_set_leader.argtypes = [pointer, text, ctypes.c_int32, ctypes.c_int32]
    rd.rd_kafka_mock_coordinator_set.argtypes = [pointer, text, text, ctypes.c_int32]
    rd.rd_kafka_mock_group_initial_rebalance_delay_ms.argtypes = [pointer, ctypes.c_int32]
    rd.rd_kafka_mock_topic_set_error.argtypes = [pointer, text, whole]
    return rd


def main() -> None:
    rd = library()
    why = ctypes.create_string_buffer(512)
    client = rd.rd_kafka_new(PRODUCER, rd.rd_kafka_conf_new(), why, 512)
    assert client, why.value
    cluster = rd.rd_kafka_mock_cluster_new(client, int(sys.argv[1]))
    rd.rd_kafka_mock_group_initial_rebalance_delay_ms(cluster, 300)
    print(rd.rd_kafka_mock_cluster_bootstraps(cluster).decode(), flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        topic = command.get("topic", "").encode()
        match command["do"]:
            case "create":
                answer = rd.rd_kafka_mock_topic_create(cluster, topic, command["partitions"], 1)
            case "delete":
                answer = rd.rd_kafka_mock_topic_delete(cluster, topic)
            case "down":
                answer = rd.rd_kafka_mock_broker_set_down(cluster, command["broker"])
            case "up":
                answer = rd.rd_kafka_mock_broker_set_up(cluster, command["broker"])
            case "slow":
                answer = rd.rd_kafka_mock_broker_set_rtt(cluster, command["broker"], command["answers_after_ms"])
            case "lead":
                answer = rd.rd_kafka_mock_partition_set_leader(cluster, topic, command["partition"], command["broker"])
            case "coordinate":
                group = command["group"].encode()
                answer = rd.rd_kafka_mock_coordinator_set(cluster, b"group", group, command["broker"])
            case "error":
                rd.rd_kafka_mock_topic_set_error(cluster, topic, command["code"])
                answer = 0
        print(answer, flush=True)


if __name__ == "__main__":
    main()
