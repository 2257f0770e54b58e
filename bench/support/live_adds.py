"""The time from an `add` to its commit, one passage at a time, with the real daemon and the packaged encoder."""

import json
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import numpy as np

from bench.support.data import CORPUS, MUSIQUE
from tests.e2e.real_hippod import Daemon

RECORDED = MUSIQUE / "openie.json"
ADDS = 100
BETWEEN_S = 0.1
"""Pause in seconds between two adds."""


def live_adds() -> dict[str, Any] | None:
    """Imports MuSiQue's passages with recorded triples, then adds passages of another set, which are extracted and encoded.

    Returns None if the sets are absent.
    """
    if not (RECORDED.exists() and CORPUS.exists()):
        return None
    corpus = json.loads(CORPUS.read_text())[-ADDS - 5 :]
    with (
        tempfile.TemporaryDirectory(prefix="hippod-live-") as place,
        Daemon(Path(place, "home"), encoder={"backend": "sentence-transformers"}) as daemon,
    ):
        headers = {"content-type": "application/json"}
        daemon.http.post("/v1/import", content=RECORDED.read_bytes(), headers=headers, timeout=1_200).raise_for_status()
        passages = daemon.status()["passages"]
        seen: dict[str, float] = {}
        arrived = threading.Condition()
        threading.Thread(target=_listen, args=(daemon, seen, arrived), daemon=True).start()
        took = [_add(daemon, number, document, seen, arrived) for number, document in enumerate(corpus)][5:]
        stages = {
            stage: round(
                1000
                * daemon.metric("hippod_stage_seconds_sum", stage=stage)
                / max(daemon.metric("hippod_stage_seconds_count", stage=stage), 1),
                1,
            )
            for stage in ("parse", "extract", "encode", "commit")
        }
    accepted, whole = (np.percentile([pair[i] for pair in took], [50, 95]) for i in (0, 1))
    return {
        "passages": passages,
        "adds": len(took),
        "accepted_to_visible_ms_p50_p95": [round(float(value), 1) for value in accepted],
        "sent_to_visible_ms_p50_p95": [round(float(value), 1) for value in whole],
        "mean_ms_by_stage": stages,
    }


def _listen(daemon: Daemon, seen: dict[str, float], arrived: threading.Condition) -> None:
    # The stream ends with the daemon.
    with suppress(httpx2.HTTPError), daemon.http.stream("GET", "/v1/events", timeout=None) as response:
        for line in response.iter_lines():
            if line.startswith("data:"):
                now = time.perf_counter()
                event = json.loads(line[5:])
                with arrived:
                    seen.setdefault(f"{event['event']} {event.get('uri')}", now)
                    arrived.notify_all()


def _add(
    daemon: Daemon, number: int, document: dict[str, Any], seen: dict[str, float], arrived: threading.Condition
) -> tuple[float, float]:
    """Returns the milliseconds from (the response, the request) of the add to the commit's event."""
    time.sleep(BETWEEN_S)
    body = {"documents": [{"id": f"live-{number}", "title": document["title"], "text": document["text"]}]}
    sent = time.perf_counter()
    answer = daemon.http.post("/v1/documents", json=body)
    accepted = time.perf_counter()
    uri = answer.json()["documents"][0]
    with arrived:
        if not arrived.wait_for(lambda: f"indexed {uri}" in seen, 60):
            raise RuntimeError(f"{uri} was accepted and not committed within 60 s")
    visible = seen[f"indexed {uri}"]
    return max(visible - accepted, 0.0) * 1000, (visible - sent) * 1000
