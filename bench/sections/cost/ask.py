"""`ask` through a running daemon, with a model that takes 300 ms a call: hippod's own wall and processor time.

The model is a script in a separate process that answers after exactly 300 ms. `own` is the client's time between request and
answer, minus the calls' 300 ms: the API, retrieval, prompts, parsing replies, HTTP to the model, writing sessions, JSON. `cpu`
is the daemon's processor time between request and answer, which other work on the machine affects less. The memory is the
example drive, extracted by the rules.
"""

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from itertools import count, islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil

from bench.support.data import DRIVE
from bench.support.measuring import repeated
from bench.support.scripted_model_process import model_process
from bench.support.synthetic_documents import World
from bench.support.tables import table
from tests.e2e.real_hippod import Daemon
from tests.memory.answering.working_memory.scripted_model import playing
from tests.memory.llm.model_server import Call, ModelServer, obedient

LATENCY_S = 0.3
QUESTIONS = 10
ADDED = 20
"""Number of documents per batch added while questions are asked."""
WAYS: tuple[tuple[str, dict[str, Any], bool], ...] = (
    ("`ask`", {}, False),
    ("`ask --steps 3`", {"steps": 3}, False),
    ("`ask --deep`", {"deep": True}, False),
    ("`ask --deep --session`", {"deep": True, "session": "bench"}, False),
    ("`ask --deep` beside indexing", {"deep": True}, True),
)


def run(results: dict[str, Any]) -> str:
    rows = []
    with model_process(_serve) as (url, _), tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir()
        shutil.copytree(DRIVE, home / "drive")
        encoder = {"backend": "sentence-transformers"}
        llm = {"base_url": url, "model": "scripted"}
        with Daemon(home, llm=llm, encoder=encoder, retrieval={"filter": "none"}) as daemon:
            daemon.wait(600)
            for name, body, beside in WAYS:
                results[name] = found = _measured(daemon, body, beside)
                cpu = "" if beside else f"{found['cpu_share']:.1%}"
                took, own = f"{found['seconds']:.2f} s", f"{found['own_s'] * 1000:.0f} ms"
                rows.append((name, f"{found['calls']:g}", took, own, f"{found['share']:.1%}", cpu))
    return table(("question", "calls", "time p50", "own p50", "own, share p50", "cpu, share"), rows)


def _measured(daemon: Daemon, body: dict[str, Any], beside: bool) -> dict[str, Any]:
    """Asks one question to warm up, then `QUESTIONS` one after another."""
    assert daemon.process is not None
    process = psutil.Process(daemon.process.pid)
    times, calls, shares = [], [], []
    with repeated(_indexing(daemon)) if beside else nullcontext():
        _asked(daemon, 0, body)
        before = process.cpu_times()
        for number in range(1, QUESTIONS + 1):
            began = time.perf_counter()
            answer = _asked(daemon, number, body)
            times.append(time.perf_counter() - began)
            calls.append(answer["calls"])
            shares.append((times[-1] - answer["calls"] * LATENCY_S) / times[-1])
        after = process.cpu_times()
    cpu = after.user + after.system - before.user - before.system
    return {
        "calls": statistics.fmean(calls),
        "seconds": statistics.median(times),
        "own_s": statistics.median(t - n * LATENCY_S for t, n in zip(times, calls, strict=True)),
        "share": statistics.median(shares),
        "share_most": max(shares),
        "cpu_s": cpu / QUESTIONS,
        "cpu_share": cpu / sum(times),
    }


def _asked(daemon: Daemon, number: int, body: dict[str, Any]) -> dict[str, Any]:
    question = f"What have the people of station {number} to do with the river?"
    answer = daemon.ask("POST", "/v1/ask", json={"question": question, **body})
    assert answer["written"], answer["note"]
    return answer


def _indexing(daemon: Daemon) -> Callable[[], None]:
    """Returns a function that adds one batch of documents with triples."""
    numbers, passages = count(), World(1).passages(1_000_000)

    def add() -> None:
        daemon.add(
            *[
                {"id": f"w{next(numbers)}", "title": title, "text": text, "triples": [list(t) for t in triples]}
                for title, text, triples in islice(passages, ADDED)
            ]
        )
        daemon.wait()

    return add


def _serve(pipe: Connection) -> None:
    def instead(call: Call, turn: int) -> Any:
        if call.purpose == "thought":
            return {"thought": f"The river has a station, part {turn}.", "sources": [1], "answers": False}
        return obedient(call) if call.purpose in ("filter", "probe") else None

    with ModelServer(playing(instead), LATENCY_S) as server:
        pipe.send(server.url)
        pipe.recv()
