"""`make test-ray`: a backfill on a Ray cluster of three nodes on this machine, one of which is lost midway.

    python -m tests.daemon.backfill.run_on_ray [--documents N] [--corpus FILE]

The files must equal those of one process without Ray, byte for byte; a second run writes nothing.
"""

import argparse
import contextlib
import json
import sys
import tempfile
import time
from pathlib import Path

import ray
from ray.cluster_utils import Cluster

from daemon.backfill import ray_run
from daemon.backfill.shard_reader import ShardReader
from daemon.backfill.shards import shards
from daemon.config import load_config

OBJECT_STORE_BYTES = 100 << 20
NAMES = ("Ada Lovelace", "Charles Babbage", "Mary Somerville", "Sophia Frend", "Luigi Menabrea")


def corpus(file, count):
    """Returns documents as JSON objects: from a HippoRAG corpus, or synthetic."""
    if file is not None:
        return [
            {"id": str(each.get("idx", number)), "title": each["title"], "text": each["text"]}
            for number, each in enumerate(json.loads(file.read_text("utf-8"))[:count])
        ]
    made = []
    for number in range(count):
        who, whom = NAMES[number % 5], NAMES[(number + 1 + number % 3) % 5]
        text = (
            f"{who} wrote letter {number} to {whom}. {whom} received it in London. Letter {number} describes an engine."
        )
        made.append({"id": f"a{number}", "title": f"Letter {number}", "text": text})
    return made


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--documents", type=int, default=1500)
    parser.add_argument("--corpus", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hippod-ray-") as place, contextlib.ExitStack() as stack:
        home = Path(place)
        documents = corpus(given.corpus, given.documents)
        (home / "pile.jsonl").write_text("".join(json.dumps(each) + "\n" for each in documents))
        (home / "config.toml").write_text('[encoder]\nbackend = "hash"\nmodel = "64"\n[parsing]\nworkers = 1\n')
        config = load_config(home / "config.toml")
        work = list(shards([str(home / "pile.jsonl")]))
        print(f"{len(documents)} documents, {len(work)} shards", flush=True)

        nodes = {"num_cpus": 1, "object_store_memory": OBJECT_STORE_BYTES, "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args=nodes)
        stack.callback(cluster.shutdown)
        others = [cluster.add_node(num_cpus=1, object_store_memory=OBJECT_STORE_BYTES) for _ in range(2)]
        ray.init(address=cluster.address, log_to_driver=False)
        stack.callback(ray.shutdown)
        cluster.wait_for_nodes()
        out = home / "ray"
        lost: list[int] = []

        def progress(done, records):
            if done >= len(work) // 3 and not lost:
                lost.append(done)
                cluster.remove_node(others[0], allow_graceful=False)
                print(f"one node of three is lost after {done} shards", flush=True)

        began = time.monotonic()
        told = ray_run.run(config, work, f"file://{out}", None, 3, 0.0, progress)
        print(f"all is read: {told} records told of, {time.monotonic() - began:.0f} s", flush=True)
        assert lost, "no node was lost"
        assert ray_run.run(config, work, f"file://{out}", None, 2, 0.0, lambda *_: None) == 0
        print("a second start reads nothing", flush=True)

        reader = ShardReader(config, f"file://{home / 'alone'}")
        stack.callback(reader.close)
        records = sum(reader.read(shard)[1] for shard in work)
        assert records == len(documents), (records, len(documents))
        assert contents(home / "alone") == contents(out), "the files differ"
        print(f"passed: {len(work)} files, {records} records, equal to those of one process without Ray")


if __name__ == "__main__":
    sys.exit(main())
