"""A real hippod that follows topics of the test's cluster."""

import json
import tempfile
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from tests.consumers.kafka.cluster import REAL
from tests.e2e.real_hippod import Daemon

Json = dict[str, Any]
QUICK = {"session_timeout_ms": 6000 if REAL else 3000, "heartbeat_interval_ms": 500}
"""The shortest timeout for a killed member that real brokers allow; mock ones allow any."""


class Brokers(Protocol):
    """Addresses of brokers, separated by commas, and options of their clients."""

    @property
    def brokers(self) -> str: ...
    @property
    def options(self) -> dict[str, Any]: ...


def following(home: Path, cluster: Brokers, *topics: str, group: str | None = None, **more: Any) -> Daemon:
    """Returns a daemon that is not started. `options` are added to the cluster's; `sections` are other configuration tables."""
    options = {**cluster.options, **QUICK, **more.pop("options", {})}
    sections = more.pop("sections", {})
    table = {
        "brokers": more.pop("brokers", cluster.brokers.split(",")),
        "topics": list(topics),
        "group": group or f"group-{topics[0]}",
        "options": options,
        **more,
    }
    return Daemon(home, folders=(), kafka=[table], **sections)


def source(daemon: Daemon) -> Json:
    """Returns the Kafka source's part of `status`."""
    [found] = [each for each in daemon.status()["sources"] if each["kind"] == "kafka"]
    return dict(found)


def positions(daemon: Daemon) -> dict[int, int]:
    """Returns the stored positions of a daemon that follows one topic."""
    return {each["partition"]: each["position"] for each in source(daemon)["partitions"]}


def shown(daemon: Daemon, uri: str) -> Json:
    """Returns what `hippoctl show` prints about a document."""
    return daemon.ask("GET", f"/v1/documents/{quote(uri, safe='')}")


def article(number: int | str, text: str | None = None, **more: Any) -> Json:
    """Returns a document with its own triples, so that no extractor is needed."""
    return {
        "id": f"a{number}",
        "title": f"Article {number}",
        "text": text or f"Town {number} lies on river {number}.",
        "triples": [[f"Town {number}", "lies on", f"River {number}"]],
        **more,
    }


def built_at_once(documents: list[Json]) -> list[str]:
    """Returns the export of a fresh memory of exactly these documents."""
    home = Path(tempfile.mkdtemp(prefix="hippod-once-"))
    with Daemon(home, folders=()) as daemon:
        for start in range(0, len(documents), 500):
            assert daemon.add(*documents[start : start + 500])
        daemon.wait()
        return daemon.export()


def error_of(daemon: Daemon, uri: str) -> str:
    return str(daemon.documents()[uri]["error"])


def lines(text: str) -> list[Json]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]
