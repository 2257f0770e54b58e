"""Publishes JSON lines to a topic, as a team that writes articles would: `python examples/kafka/publish.py`.

Each line is one document, `{"id", "title", "text", …}`. Its id is the message's key, so that all changes of a document stay in
one partition, in order. `--remove ID` publishes a null value, which removes the document.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from kafka import KafkaProducer
from kafka.errors import KafkaError

ARTICLES = Path(__file__).resolve().parent.parent / "drive" / "archive" / "notebook.jsonl"


def main() -> int:
    parser = argparse.ArgumentParser(description="Publish JSON lines to a Kafka topic, one message a document.")
    parser.add_argument(
        "files", nargs="*", type=Path, default=[ARTICLES], help="JSON lines; the example articles if none"
    )
    parser.add_argument("--brokers", default="localhost:9092", help="host:port, several with commas between")
    parser.add_argument("--topic", default="articles")
    parser.add_argument("--remove", action="append", default=[], metavar="ID", help="remove this document instead")
    options = parser.parse_args()
    try:
        producer = KafkaProducer(bootstrap_servers=options.brokers.split(","), acks="all")
        waiting = [
            producer.send(options.topic, key=id.encode(), value=value, headers=[("publisher", b"examples/kafka")])
            for id, value in ([(id, None) for id in options.remove] or documents(options.files))
        ]
        for future in waiting:
            future.get(timeout=30)
        producer.close()
    except (KafkaError, OSError, ValueError) as error:
        print(f"not published: {error}", file=sys.stderr)
        return 1
    print(f"{len(waiting)} message{'s' * (len(waiting) != 1)} published to {options.topic}")
    return 0


def documents(files: list[Path]) -> Iterator[tuple[str, bytes]]:
    """Yields id and content of each line, as JSON."""
    for file in files:
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
            if line.strip():
                value = json.loads(line)
                yield str(value.get("id", f"{file.stem}-{number}")), json.dumps(value).encode()


if __name__ == "__main__":
    sys.exit(main())
