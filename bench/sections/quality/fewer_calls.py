"""Ways of OpenIE with fewer or cheaper calls: the cost of their prompts on the recorded set, and a model's extractions.

Start `examples/llama/serve.sh` or another server in one terminal, and `HIPPOD_BENCH_LLM=http://127.0.0.1:8080/v1 python -m
bench fewer_calls` in a second one; the recorded set alone needs no model. HIPPOD_BENCH_PASSAGES is the number of passages that
the model reads.
"""

import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from bench.support.data import DRIVE, MUSIQUE
from bench.support.extraction_ways import NAMES, PASSAGES_A_CALL, TRIPLES, WAYS, Call, Extracted, Way
from bench.support.tables import table
from memory.llm.errors import BadAnswer
from memory.llm.json_answers import parse
from memory.openie.llm.extractor import build_extraction
from memory.phrase_normalisation import normalise_phrase
from store.types import Extraction, PassageText

SERVER = os.environ.get("HIPPOD_BENCH_LLM")
PASSAGES = int(os.environ.get("HIPPOD_BENCH_PASSAGES", "8"))
ANSWER_TOKENS = 512
"""Maximum number of tokens of an answer for each passage of a call."""
CHARS_PER_TOKEN = 4
REMEMBERED_PROMPTS = 8
"""Number of earlier prompts whose beginnings a caching server is assumed to remember."""


Answer = tuple[object, bool, int]
"""(JSON of an answer, whether it was valid and complete, number of its tokens)."""


@dataclass
class Spent:
    """The tokens, calls and seconds that one way has spent, and its extractions."""

    passages: int = 0
    calls: int = 0
    prompt: float = 0.0
    computed: float = 0.0
    """Number of prompt tokens that the server's cache did not contain."""
    completion: float = 0.0
    seconds: float | None = 0.0
    """None if a known answer was reused, so that its generation was not measured."""
    valid: int = 0
    extracted: list[Extracted] = field(default_factory=list)


def run(results: dict[str, Any]) -> str:
    """Fills `results["recorded"]`, and `results["model"]` if a model is named."""
    parts = []
    recorded = _recorded_documents()
    if recorded:
        found = {name: _on_recorded(way, recorded) for name, way in WAYS.items()}
        results["recorded"] = {name: _tokens(spent) for name, spent in found.items()}
        parts.append(
            f"GPT-3.5's answers for {len(recorded):,} passages; tokens a passage (characters / {CHARS_PER_TOKEN}).\n\n"
            + _table(
                results["recorded"], {"prompt": "prompt", "computed": "with a prefix cache", "completion": "answer"}
            )
        )
        kept, dropped = _checked(found["two calls (hippod)"])
        results["recorded grounding"] = {"kept": sum(len(each.triples) for each in kept), "dropped": dict(dropped)}
        parts.append(f"GPT-3.5's triples that the extractor would keep and drop: {results['recorded grounding']}.")
    if SERVER is not None:
        known = recorded or {each.id: {"passage": each} for each in _drive_passages()}
        chosen = dict(list(known.items())[:PASSAGES])
        results["model"] = _with_model(chosen)
        columns = {
            "calls": "calls", "prompt": "prompt", "computed": "not cached", "completion": "answer", "seconds": "seconds",
            "valid": "valid JSON", "kept": "triples kept", "grounded": "grounded", "names": "of the recorded names",
        }  # fmt: skip
        parts.append(
            f"{results['model'].pop('name')} read {len(chosen)} passages; figures a passage.\n\n"
            + _table(results["model"], columns)
        )
    else:
        parts.append("No model: $HIPPOD_BENCH_LLM is not set.")
    return "\n\n".join(parts)


def _recorded_documents() -> dict[str, dict[str, Any]]:
    """Returns the recorded passages with their recorded answers, by passage id."""
    file = MUSIQUE / "openie.json"
    if not file.exists():
        return {}
    docs = {doc["passage"]: doc for doc in json.loads(file.read_text("utf-8"))["docs"]}
    found = {}
    for number, doc in enumerate(docs.values()):
        title, _, text = doc["passage"].partition("\n")
        answers = {NAMES: doc["extracted_entities"], TRIPLES: doc["extracted_triples"]}
        found[str(number)] = {"passage": PassageText(str(number), title, text), **answers}
    return found


def _drive_passages() -> list[PassageText]:
    return [PassageText(file.stem, file.stem, file.read_text("utf-8")) for file in sorted(DRIVE.glob("places/*.txt"))]


def _batches(passages: Sequence[PassageText]) -> Iterator[Sequence[PassageText]]:
    for start in range(0, len(passages), PASSAGES_A_CALL):
        yield passages[start : start + PASSAGES_A_CALL]


def _on_recorded(way: Way, documents: dict[str, dict[str, Any]]) -> Spent:
    """Runs the way on the recorded answers. The completion tokens are counted after the recorded answers were converted to the
    way's form."""
    spent = Spent(passages=len(documents))
    earlier: list[str] = []
    for batch in _batches([each["passage"] for each in documents.values()]):
        reading = way(batch)
        said: object = None
        while (call := _next(reading, said, spent)) is not None:
            prompt = "\n".join(f"{each['role']}: {each['content']}" for each in call.messages)
            cached = max((_equal_beginning(prompt, other) for other in earlier), default=0)
            earlier = [*earlier[1 - REMEMBERED_PROMPTS :], prompt]
            parts = [{name: documents[each.id][name] for name in call.fields} for each in call.passages]
            said = parts[0]
            if call.is_for_several:
                said = {"passages": [{"number": str(at), **part} for at, part in enumerate(parts, 1)]}
            spent.calls += 1
            spent.prompt += len(prompt) / CHARS_PER_TOKEN
            spent.computed += (len(prompt) - cached) / CHARS_PER_TOKEN
            spent.completion += len(json.dumps(said, ensure_ascii=False)) / CHARS_PER_TOKEN
    return spent


def _equal_beginning(one: str, other: str) -> int:
    """Returns the number of equal characters at the beginning of two texts."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def _next(reading: Any, said: object, spent: Spent) -> Call | None:
    """Returns the next call. After the last call, adds the extractions to `spent` and returns None."""
    try:
        call: Call = reading.send(said)
    except StopIteration as end:
        spent.extracted += end.value
        return None
    return call


def _with_model(documents: dict[str, dict[str, Any]]) -> dict[str, Any]:
    passages = [each["passage"] for each in documents.values()]
    found: dict[str, Any] = {}
    answered: dict[str, Answer] = {}
    with httpx2.Client(timeout=3600, trust_env=False) as client:
        model = client.get(f"{SERVER}/models").json()["data"][0]["id"]
        for name, way in WAYS.items():
            spent = Spent(passages=len(passages))
            for batch in _batches(passages):
                reading = way(batch)
                said: object = None
                while (call := _next(reading, said, spent)) is not None:
                    said = _ask(client, model, call, spent, answered)
            found[name] = _tokens(spent) | _quality(spent, documents)
            print(name, json.dumps(found[name]), flush=True)
    return {"name": Path(model).name, **found}


def _ask(client: httpx2.Client, model: str, call: Call, spent: Spent, answered: dict[str, Answer]) -> object:
    """Returns the JSON of the answer, {} if it has none. If another way has sent the same prompt, the server processes only the
    prompt again, and the known answer is returned."""
    key = json.dumps([call.messages, call.schema.name])
    is_known = key in answered
    schema = {"name": call.schema.name, "strict": True, "schema": dict(call.schema.schema)}
    body = {
        "model": model,
        "messages": call.messages,
        "temperature": 0.0,
        "max_tokens": 1 if is_known else ANSWER_TOKENS * len(call.passages),
        "response_format": {"type": "json_schema", "json_schema": schema},
    }
    began = time.perf_counter()
    answer = client.post(f"{SERVER}/chat/completions", json=body).raise_for_status().json()
    took_s = time.perf_counter() - began
    usage, choice = answer["usage"], answer["choices"][0]
    spent.calls += 1
    spent.prompt += usage["prompt_tokens"]
    spent.computed += usage["prompt_tokens"] - (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
    if is_known:
        spent.seconds = None
    else:
        answered[key] = (*_value(choice), usage["completion_tokens"])
        spent.seconds = spent.seconds + took_s if spent.seconds is not None else None
    value, is_valid, completion = answered[key]
    spent.valid += is_valid
    spent.completion += completion
    return value


def _value(choice: dict[str, Any]) -> tuple[object, bool]:
    try:
        parsed = parse(choice["message"]["content"] or "")
    except BadAnswer:
        return {}, False
    return parsed.value, parsed.how == "ok" and choice["finish_reason"] != "length"


def _tokens(spent: Spent) -> dict[str, Any]:
    n = spent.passages
    return {
        "calls": round(spent.calls / n, 2),
        "prompt": round(spent.prompt / n),
        "computed": round(spent.computed / n),
        "completion": round(spent.completion / n),
    }


def _quality(spent: Spent, documents: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Returns the number of triples that hippod would keep, the share of grounded triples among the well-formed ones, and the
    share of recorded names that were found."""
    checked, dropped = _checked(spent)
    kept = expected = matched = 0
    for made in checked:
        kept += len(made.triples)
        known = {normalise_phrase(name) for name in documents[made.passage].get(NAMES, ())}
        expected += len(known)
        matched += len(known & set(made.entities))
    well_formed = kept + dropped["ungrounded"]
    return {
        "seconds": None if spent.seconds is None else round(spent.seconds / spent.passages, 1),
        "valid": round(spent.valid / spent.calls, 2),
        "kept": round(kept / spent.passages, 1),
        "grounded": round(kept / well_formed, 2) if well_formed else None,
        "names": round(matched / expected, 2) if expected else None,
        "dropped": dict(dropped),
    }


def _checked(spent: Spent) -> tuple[list[Extraction], Counter[str]]:
    """Returns the extractions as hippod keeps them, and the numbers of dropped triples by reason."""
    dropped: Counter[str] = Counter()

    def count(why: str, number: int) -> None:
        dropped[why] += number

    return [
        build_extraction(each.passage, "", tuple(each.names), each.triples, count, 0, 0, 0.0)
        for each in spent.extracted
    ], dropped


def _table(rows: dict[str, dict[str, Any]], columns: dict[str, str]) -> str:
    lines = [(name, *("–" if row[key] is None else row[key] for key in columns)) for name, row in rows.items()]
    return table(("", *columns.values()), lines)
