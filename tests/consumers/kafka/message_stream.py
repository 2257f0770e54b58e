"""A random stream of messages with all kinds of changes to documents, and the expected result."""

import random
from dataclasses import dataclass, field
from typing import Any

from tests.consumers.kafka.cluster import Cluster

WORDS = [
    f"{first}{second}" for first in ("bel", "cor", "dun", "far", "gil", "hob") for second in ("an", "eth", "is", "om")
]


@dataclass(slots=True)
class Stream:
    """`left`: the remaining documents, by id. `poison`: the number of invalid messages."""

    left: dict[str, dict[str, Any]] = field(default_factory=dict)
    poison: int = 0
    sent: int = 0


def document(id: str, rng: random.Random) -> dict[str, Any]:
    names = rng.sample(WORDS, 4)
    return {
        "id": id,
        "title": f"On {names[0]}",
        "text": f"{names[0]} met {names[1]} near {names[2]}, and {rng.randrange(10_000)} others saw {names[3]}.",
        "triples": [[names[0], "met", names[1]], [names[0], "stood near", names[2]]],
    }


def publish(cluster: Cluster, topic: str, count: int, partitions: int, seed: int, stream: Stream) -> None:
    """Sends `count` messages: new documents, repetitions, replacements, removals, and one invalid message in a hundred.

    A document's messages all go to one partition, so they stay in order.
    """
    rng = random.Random(seed)
    for _ in range(count):
        known = list(stream.left) if rng.random() < 0.05 else None
        drawn = rng.random()
        id = f"d{rng.randrange(max(stream.sent, 20))}"
        place = sum(map(ord, id)) % partitions
        if drawn < 0.01:
            bad: Any = rng.choice(["{broken", '{"id": "d1"}', "[]", b"\xff\xfe\xff", '{"id": "d2", "text": 7}'])
            cluster.send(topic, bad, key=id, partition=place)
            stream.poison += 1
        elif drawn < 0.06:
            cluster.send(topic, None, key=id, partition=place)
            stream.left.pop(id, None)
        elif drawn < 0.09:
            cluster.send(topic, {"id": id, "deleted": True}, key="other", partition=place)
            stream.left.pop(id, None)
        elif known:
            again = rng.choice(known)
            cluster.send(topic, stream.left[again], key=again, partition=sum(map(ord, again)) % partitions)
        else:
            value = document(id, rng)
            cluster.send(topic, value, key=id, partition=place)
            stream.left[id] = value
        stream.sent += 1
