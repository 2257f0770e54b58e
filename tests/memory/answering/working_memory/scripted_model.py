"""A model that plays along: each step finds something new, and the answer cites the first passage."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.memory.answering.working_memory.prompt_reader import Prompt
from tests.memory.llm.model_server import Call, Script


def playing(instead: Callable[[Call, int], Any] = lambda _call, _turn: None) -> Script:
    """`instead(call, turn)` may answer a purpose's call number `turn`, from 1; None lets the model play."""
    turns: Counter[str] = Counter()

    def script(call: Call) -> Any:
        turns[call.purpose] += 1
        turn = turns[call.purpose]
        said = instead(call, turn)
        if said is not None:
            return said
        prompt = Prompt(call)
        if call.purpose == "judge" and '"about": "beyond"' in call.body["messages"][0]["content"]:
            concerns = [{"concern": f"more, part {turn}", "point": 1}, {"concern": f"else, part {turn}", "point": 1}]
            return {"enough": False, "about": "points", "concerns": concerns}
        if call.purpose == "subquery":
            return {"subquery": f"Who inherited the workshop of the wardens, part {turn}?"}
        if call.purpose == "judge":
            about = {"concern": "more", "point": 1, "subquery": f"Who inherited the workshop, part {turn}?"}
            beyond = {"concern": "else", "point": 0, "subquery": f"Which wardens keep the flame, part {turn}?"}
            return {"enough": False, "concerns": [about, beyond]}
        if call.purpose == "evolve":
            entity, passage = next(iter(prompt.entities)), next(iter(prompt.passages))
            return {
                "updates": [],
                "inserts": [prompt.insert(f"Point {turn}.{at}.", [entity], [passage]) for at in (1, 2)],
            }
        if call.purpose == "merge":
            return {"merges": [{"points": [1, 2], "description": f"Merged {turn}."}]}
        return {"found": True, "sentences": [{"text": "It is so.", "sources": [1]}], "short": "so"}

    return script
