"""A deep question with a model that takes 300 ms a call: hippod's own time.

The model is a script in a separate process. `own` is a question's time minus the calls' 300 ms: retrieval, prompts, parsing
answers, the HTTP client, and other delays of the machine. `cpu` is the processor time of this process over all threads, which
other work on the machine affects less.
"""

import asyncio
import statistics
import time
from multiprocessing.connection import Connection
from typing import Any

from bench.support.data import MUSIQUE
from bench.support.deep_example import ENCODER, drive
from bench.support.large_graph import large_snapshot
from bench.support.scripted_model_process import model_process
from bench.support.tables import table
from memory.answering.working_memory.deep import ask_deep
from memory.answering.working_memory.trace import DeepSettings
from memory.llm.client import ModelClient, ModelSettings
from store.snapshot import Snapshot
from tests.memory.answering.working_memory.scripted_model import playing
from tests.memory.llm.model_server import ModelServer

RECORDED = MUSIQUE / "openie.json"
LATENCY_S = 0.3
QUESTIONS = 12


def run(results: dict[str, Any]) -> str:
    """Uses the large graph only if ../shared is present; the example drive is always measured."""
    with drive() as snapshot:
        rows = [_row(results, "example drive", snapshot)]
    if RECORDED.exists():
        rows.append(_row(results, "of the paper's size", large_snapshot(RECORDED)))
    heads = ("memory", "phrases", "calls", "question p50", "own p50", "own, share min / p50 / max", "cpu, share")
    return table(heads, rows)


def _row(results: dict[str, Any], name: str, snapshot: Snapshot) -> tuple[object, ...]:
    times, cpu_s = asyncio.run(_ask(snapshot))
    shares = sorted(own / whole for _, whole, own in times)
    found = {
        "phrases": snapshot.n_phrases,
        "calls": max(calls for calls, _, _ in times),
        "seconds": statistics.median(whole for _, whole, _ in times),
        "own_s": statistics.median(own for _, _, own in times),
        "share": statistics.median(shares),
        "share_least": shares[0],
        "share_most": shares[-1],
        "cpu_s": cpu_s,
    }
    results[name] = found
    return (
        name,
        f"{found['phrases']:,}",
        found["calls"],
        f"{found['seconds']:.2f} s",
        f"{found['own_s'] * 1000:.0f} ms",
        f"{found['share_least']:.1%} / {found['share']:.1%} / {found['share_most']:.1%}",
        f"{cpu_s / (found['calls'] * LATENCY_S):.1%}",
    )


async def _ask(snapshot: Snapshot) -> tuple[list[tuple[int, float, float]], float]:
    """Returns (calls, seconds, seconds without the model's time) of each question, and the processor seconds per question.

    Leaves out the first question, which warms up.
    """
    with model_process(_serve) as (url, _):
        client = ModelClient(ModelSettings(url, "m"))
        times = []
        cpu = 0.0
        for number in range(QUESTIONS + 1):
            if number == 1:
                cpu = time.process_time()
            question = f"What have the people of station {number} to do with the river?"
            answer = await ask_deep(question, snapshot, ENCODER, client, DeepSettings())
            assert answer.stopped == "steps", answer.note
            times.append((answer.requests, answer.seconds, answer.seconds - answer.requests * LATENCY_S))
        cpu = time.process_time() - cpu
        await client.close()
    return times[1:], cpu / QUESTIONS


def _serve(pipe: Connection) -> None:
    with ModelServer(playing(), LATENCY_S) as server:
        pipe.send(server.url)
        pipe.recv()
