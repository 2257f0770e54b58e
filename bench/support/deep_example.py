"""An example of `ask --deep`: `python -m bench.support.deep_example` runs it and prints the events.

hippod indexes examples/drive with its packaged encoder and extractor. Only the model is a script; its sentences were written by
hand from the passages that hippod finds.
"""

import asyncio
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.support.data import DRIVE
from memory.answering.working_memory.deep import ask_deep
from memory.answering.working_memory.deep_answer import DeepAnswer
from memory.answering.working_memory.trace import (
    DeepEvent,
    DeepSettings,
    EvidenceFound,
    MemoryJudged,
    PointsChanged,
    StepBegan,
)
from memory.encoder import make_encoder
from memory.llm.client import ModelClient, ModelSettings
from store.snapshot import Snapshot
from store.store import Store
from tests.e2e.real_hippod import Daemon
from tests.memory.answering.working_memory.prompt_reader import Prompt
from tests.memory.llm.model_server import Call, ModelServer

ENCODER = make_encoder("sentence-transformers", "all-MiniLM-L6-v2", 32, "cpu")
QUESTION = "What ties the Amsel Brewery to the Dorn family?"

WATER = "The Amsel Brewery takes its water from Copper Spring."
FUND = "Viktor Amsel, who inherited the Amsel Brewery, set up the Amsel Fund in 1990 after his well had run brown."
GAUGE = "Copper Spring is watched by the Heron gauge, which Casimir Dorn built in 1971."
HOURGLASS = "The Amsel Fund pays for Project Hourglass, which uses the Lark drip counter."
LARK = "Alba Dorn, a niece of Casimir Dorn, invented the Lark drip counter."
WATCHED = (
    "The Amsel Brewery takes its water from Copper Spring, which is watched by the Heron gauge that Casimir Dorn built "
    "in 1971."
)
PAID = (
    "The Amsel Fund, which Viktor Amsel of the Amsel Brewery set up in 1990, pays for Project Hourglass, which uses the "
    "Lark drip counter; its inventor Alba Dorn is a niece of Casimir Dorn."
)


@contextmanager
def drive() -> Iterator[Snapshot]:
    """Yields the memory of examples/drive, indexed by a daemon that has ended."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        shutil.copytree(DRIVE, home / "drive")
        with Daemon(home, encoder={"backend": "sentence-transformers"}) as daemon:
            daemon.wait()
        with Store(home / "store", ENCODER.identity) as store:
            yield store.snapshot()


def plays() -> Any:
    """Yields the scripted model."""
    turns: Counter[str] = Counter()

    def script(call: Call) -> Any:
        turns[call.purpose] += 1
        prompt, turn = Prompt(call), turns[call.purpose]
        if call.purpose == "judge" and turn == 1:
            asks = (
                ("What measures the spring that the brewery drinks from?", WATER, "What watches Copper Spring?"),
                ("What does the brewery's fund pay for?", FUND, "What does the Amsel Fund pay for?"),
            )
            return {"enough": False, "concerns": [_concern(prompt, *ask) for ask in asks]}
        if call.purpose == "judge":
            asks = (
                ("Who made the drip counter?", HOURGLASS, "Who invented the Lark drip counter?"),
                ("Did others of his family make instruments?", WATCHED, "Who are the relatives of Casimir Dorn?"),
            )
            return {"enough": False, "concerns": [_concern(prompt, *ask) for ask in asks]}
        if call.purpose == "evolve" and turn == 1:
            water = prompt.insert(WATER, ["amsel brewery"], ["Copper Spring"], ("Copper Spring",))
            paid = prompt.insert(FUND, ["viktor amsel", "amsel fund", "amsel brewery"], ["The Amsel Brewery"])
            return {"updates": [], "inserts": [water, paid]}
        if call.purpose == "evolve" and turn == 2:
            heron = prompt.insert(
                GAUGE, ["copper spring"], ["Copper Spring", "Heron gauge"], ("Heron gauge", "Casimir Dorn")
            )
            hourglass = prompt.insert(
                HOURGLASS, ["amsel fund"], ["Project Hourglass"], ("Project Hourglass", "Lark drip counter")
            )
            return {"updates": [], "inserts": [heron, hourglass]}
        if call.purpose == "evolve":
            drip = prompt.insert(
                LARK, ["lark drip counter"], ["Lark drip counter", "Casimir Dorn"], ("Alba Dorn", "Casimir Dorn")
            )
            return {"updates": [], "inserts": [drip]}
        if call.purpose == "merge" and turn == 2:
            points = [prompt.points[WATER], prompt.points[GAUGE]]
            return {"merges": [{"points": points, "description": WATCHED}]}
        if call.purpose == "merge" and turn == 3:
            points = [prompt.points[FUND], prompt.points[HOURGLASS], prompt.points[LARK]]
            return {"merges": [{"points": points, "description": PAID}]}
        if call.purpose == "merge":
            return {"merges": []}
        spring, gauge = prompt.passages["Copper Spring"], prompt.passages["Heron gauge"]
        fund, hour = prompt.passages["The Amsel Brewery"], prompt.passages["Project Hourglass"]
        lark, uncle = prompt.passages["Lark drip counter"], prompt.passages["Casimir Dorn"]
        answers = (
            ("Both live by the same water, watched with instruments that the Dorns made.", [spring, gauge, lark]),
            ("The brewery draws on Copper Spring, where Casimir Dorn's Heron gauge keeps watch.", [spring, gauge]),
            (
                "Its Amsel Fund pays for Project Hourglass, whose Lark drip counter Alba Dorn invented.",
                [fund, hour, lark],
            ),
            ("Alba Dorn is Casimir Dorn's niece.", [uncle]),
        )
        sentences = [{"text": text, "sources": sources} for text, sources in answers]
        return {"found": True, "sentences": sentences, "short": "the instruments that watch its water"}

    return script


def _concern(prompt: Prompt, concern: str, about: str, subquery: str) -> dict[str, Any]:
    return {"concern": concern, "point": prompt.points[about], "subquery": subquery}


def event_lines(event: DeepEvent) -> Iterator[str]:
    """Yields the lines that describe an event."""
    if isinstance(event, StepBegan):
        yield f"\nStep {event.step} ({event.points} points)"
    elif isinstance(event, MemoryJudged):
        for concern in event.concerns:
            yield f"  {concern.kind}{f' ({concern.point})' if concern.point else ''}: {concern.subquery}"
    elif isinstance(event, EvidenceFound):
        inquiry = event.inquiry
        entities = ", ".join(f"{each.phrase} {each.score:.2f}" for each in inquiry.entities[:4])
        yield f"    {inquiry.candidates} candidates: {entities}, …"
        yield f"    passages: {'; '.join(passage.title or '(untitled)' for passage in inquiry.passages)}"
    elif isinstance(event, PointsChanged):
        for change in event.changes:
            merged = f" of {', '.join(point.id for point in change.before)}" if change.kind == "merged" else ""
            yield f"  {change.kind} {change.point.id}{merged}: {change.point.description}"
            yield f"    entities: {', '.join(change.point.entities)}"
        yield from (f"  refused: {refused.why} ({refused.what})" for refused in event.refused)


async def ask(snapshot: Snapshot, url: str) -> DeepAnswer:
    client = ModelClient(ModelSettings(url, "scripted"))
    try:
        return await ask_deep(
            QUESTION,
            snapshot,
            ENCODER,
            client,
            DeepSettings(quick=True, steps=2, passages=3),
            on_event=lambda event: print("\n".join(event_lines(event)), end="\n" * bool(list(event_lines(event)))),
        )
    finally:
        await client.close()


def main() -> None:
    print(QUESTION)
    with drive() as snapshot, ModelServer(plays()) as server:
        answer = asyncio.run(ask(snapshot, server.url))
    print(f"\n{answer.text}\n")
    for cited in answer.citations:
        print(f"  [{cited.rank}] {cited.title}, supporting {', '.join(cited.points) or 'no point'}")
    print(
        f"\n{answer.requests} model calls, {answer.tokens.prompt} + {answer.tokens.completion} tokens by the script's count, "
        f"{answer.own_seconds * 1000:.0f} ms of hippod's own time; {answer.trace.memory.entities_a_point:.1f} entities a point"
    )


if __name__ == "__main__":
    main()
