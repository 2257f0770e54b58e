"""Extraction by a model: throughput with 200 simulated servers, rates of a scripted server, replayed answers of GPT-3.5."""

import asyncio
import json
import statistics
import tempfile
import time
from collections import deque
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bench.support.data import MUSIQUE
from bench.support.scripted_model_process import model_process
from bench.support.tables import table
from memory.llm.client import ModelClient, ModelSettings
from memory.llm.errors import ModelError
from memory.llm.limiter import Limiter
from memory.openie.llm.extractor import LLMExtractor
from store.types import PassageText
from tests.e2e.real_hippod import Daemon
from tests.memory.llm import simulated_servers
from tests.memory.llm.model_server import Call, ModelServer, Status, Text, obedient
from tests.memory.llm.recorded_answers import grounded_documents

SECONDS = 40
SIMULATED_SERVERS = 200


def run(results: dict[str, Any]) -> str:
    """Runs the replay only if ../shared is present; the rates are always measured."""
    rows = []
    for name, kind, latency_s, ideal in (
        ("500 ms, room for 64", "room", 0.5, 128.0),
        ("10/s, 429 + Retry-After", "rate", 0.05, 10.0),
    ):
        found = _rate(kind, latency_s, int(ideal * SECONDS / 2))
        found |= {"ideal": ideal, "share": found["calls_per_s"] / ideal}
        results[kind] = found
        shares = f"{found['share']:.1%}", f"{found['refused_share']:.1%}"
        rows.append((name, found["passages"], f"{found['calls_per_s']:.1f}", f"{ideal:.0f}", *shares))
    parts = [_simulations(results), table(("server", "passages", "calls/s", "ideal", "share", "refused"), rows)]
    if (MUSIQUE / "openie.json").exists():
        results["replay"] = replay = _replay()
        if not replay["equal"]:
            results.setdefault("violations", []).append("what the replay extracted is not what import takes over")
        parts.append(
            f"Replay of all {replay['passages']} passages: export equal to import's without {replay['ungrounded']} "
            f"ungrounded triples: {replay['equal']}; "
            f"{replay['seconds']:.0f} s, {replay['calls']} calls; characters / 4 of prompts and answers, a passage: "
            f"{replay['tokens_a_passage']}"
        )
    return "\n\n".join(parts)


def _simulations(results: dict[str, Any]) -> str:
    """Measures throughput relative to a client that knows the server's limits, for many kinds of servers with random refusals
    and failures."""
    outcomes = [simulated_servers.run(seed) for seed in range(SIMULATED_SERVERS)]
    rows = []
    for place, kind in enumerate([*simulated_servers.KINDS, "all"]):
        chosen = outcomes if kind == "all" else outcomes[place :: len(simulated_servers.KINDS)]
        shares = sorted(outcome.share for outcome in chosen)
        found = {
            "median": statistics.median(shares),
            "tenth": shares[len(shares) // 10],
            "worst": shares[0],
            "refused": sum(o.refused for o in chosen) / sum(o.refused + o.answered + o.failed for o in chosen),
        }
        results.setdefault("simulated", {})[kind] = found
        rows.append((kind, len(shares), *(f"{share:.1%}" for share in found.values())))
    if found["median"] < 0.9 or found["worst"] < 0.7:
        results.setdefault("violations", []).append(
            "of what simulated servers give, less than 90 % (median) or 70 % (worst)"
        )
    return table(("simulated servers", "number", "median share", "a tenth below", "worst", "refused"), rows)


def _rate(kind: str, latency_s: float, passages: int) -> dict[str, Any]:
    with model_process(_serve, kind, latency_s) as (url, pipe):
        took = asyncio.run(_extract(url, passages))
        pipe.send("count")
        calls, refused = pipe.recv()
    return {
        "passages": passages,
        "seconds": took,
        "calls_per_s": 2 * passages / took,
        "refused_share": refused / calls,
    }


def _serve(kind: str, latency_s: float, pipe: Connection) -> None:
    taken: deque[float] = deque()

    def script(call: Call) -> Any:
        now = time.monotonic()
        if kind == "room":
            return obedient(call) if server.inside <= 64 else Status(429, headers={"Retry-After": "1"})
        while taken and taken[0] <= now - 1:
            taken.popleft()
        if len(taken) >= 10:
            return Status(429, headers={"Retry-After": "1"})
        taken.append(now)
        return obedient(call)

    with ModelServer(script, latency_s) as server:
        pipe.send(server.url)
        while pipe.recv():
            pipe.send((len(server.calls), server.refused))


async def _extract(url: str, count: int) -> float:
    client = ModelClient(ModelSettings(url, "m"))
    extractor = LLMExtractor(client, Limiter(64))
    left = iter([PassageText(f"{n:032x}", f"Doc {n}", "Ada Kerr built Skellan Light in 1868.") for n in range(count)])

    async def worker() -> None:
        for passage in left:
            try:
                await extractor.read(passage)
            except ModelError as error:
                raise RuntimeError(f"no passage may fail here: {error}") from error

    began = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(80)))
    took = time.perf_counter() - began
    await client.close()
    return took


def _replay() -> dict[str, Any]:
    docs = list({doc["passage"]: doc for doc in json.loads((MUSIQUE / "openie.json").read_text())["docs"]}.values())
    known = {" ".join(doc["passage"].split()): doc for doc in docs}

    def script(call: Call) -> Any:
        if call.purpose == "probe":
            return Text("OK")
        doc = known[" ".join(call.passage.split())]
        if call.purpose == "entities":
            return {"named_entities": doc["extracted_entities"]}
        return {"triples": doc["extracted_triples"]}

    with ModelServer(script) as server, tempfile.TemporaryDirectory() as folder:
        llm = {"base_url": server.url, "model": "gpt-3.5-replayed"}
        imported = Daemon(Path(folder) / "imported")
        grounded = grounded_documents(docs)
        file = Path(folder) / "openie.json"
        file.write_text(json.dumps({"docs": grounded}))
        with imported:
            imported.ctl_json("import", file)
            expected = imported.export()
        extracted = Daemon(
            Path(folder) / "extracted",
            llm=llm,
            openie={"backend": "llm", "concurrency": 16},
            passages={"max_tokens": 8192, "min_tokens": 1},
        )
        with extracted:
            began = time.perf_counter()
            titled = [doc["passage"].partition("\n") for doc in docs]
            for start in range(0, len(titled), 500):
                part = titled[start : start + 500]
                extracted.add(*[{"id": f"{start}-{n}", "title": t, "text": x} for n, (t, _, x) in enumerate(part)])
            extracted.ask("POST", "/v1/wait", json={"timeout_s": 900}, timeout=1000)
            took = time.perf_counter() - began
            equal = extracted.export() == expected
            spent = extracted.ask("GET", "/v1/extraction")["spent"][0]
        characters = {"entities": [0, 0], "triples": [0, 0]}
        for call in server.calls:
            if call.purpose in characters:
                doc = known[" ".join(call.passage.split())]
                said = doc["extracted_entities"] if call.purpose == "entities" else doc["extracted_triples"]
                characters[call.purpose][0] += sum(len(message["content"]) for message in call.body["messages"])
                characters[call.purpose][1] += len(json.dumps(said))
        return {
            "passages": len(docs),
            "equal": equal,
            "ungrounded": sum(
                len(doc["extracted_triples"]) - len(kept["extracted_triples"])
                for doc, kept in zip(docs, grounded, strict=True)
            ),
            "seconds": took,
            "calls": len(server.calls),
            "prompt_tokens": spent["prompt_tokens"],
            "completion_tokens": spent["completion_tokens"],
            "characters": characters,
            "tokens_a_passage": {
                purpose: [round(n / 4 / len(docs)) for n in counts] for purpose, counts in characters.items()
            },
        }
