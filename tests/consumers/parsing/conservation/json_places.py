"""JSON documents: the keys are those of docs/reference; others are metadata."""

import json
from typing import Any

from tests.consumers.parsing.conservation.places import FormatTable, Words

PLACES: dict[str, tuple[str, Any]] = {
    "title": ("title", "The {}"),
    "text": ("text", "The mill stands. It is {}."),
    "address": ("url", "https://{}.example"),
    "date": ("published_at", "{}"),
    "own key": ("mill", "the {}"),
    "list": ("gates", ["a", "the {}"]),
    "object": ("weir", {"gate": {"name": "the {}"}}),
    "deep value": ("deep", "{}"),
    "triple": ("triples", [["Mill", "stands at", "{}"]]),
    "damaged triple": ("triples", [["Mill", "the {}"]]),
}


def write(given: Words) -> bytes:
    value: dict[str, Any] = {"text": "The mill stands."}
    for place, (key, content) in PLACES.items():
        if place in given:
            said = json.loads(json.dumps(content).replace("{}", given[place]))
            for _ in range(40 if place == "deep value" else 0):
                said = [said]
            value[key] = value[key] + said if key == "triples" and key in value else said
    return json.dumps(value).encode()


TABLE = FormatTable("mill.json", "RFC 8259", {place: f"4, {key!r}" for place, (key, _) in PLACES.items()}, write)
