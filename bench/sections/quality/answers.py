"""A real model's answers to 20 questions of each set: single answers, which the model also judges, and deep answers after each
step.

Start `examples/llama/serve.sh` or another server in one terminal, and `HIPPOD_BENCH_LLM=http://127.0.0.1:8080/v1 python -m
bench answers` in a second one. If the benchmark is interrupted, the same command continues it: the evaluations keep their
answers in bench/results/answers/. To start over, delete that folder. `HIPPOD_BENCH_SETS` selects sets (musique,hotpotqa,2wiki).
`HIPPOD_BENCH_QUESTIONS` and `HIPPOD_BENCH_DEEP` reduce the number of single and of deep answers per set: with a small model on
a CPU, a deep answer takes minutes.

The memory contains the gold passages of the questions and other passages of each corpus, with the triples of the rules.
"""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import httpx2

from bench.sections.quality.continual import gold_documents
from bench.support.bulk_daemon import BULK_S, bulk_daemon, ctl
from bench.support.data import DATA, RESULTS, ROOT
from bench.support.tables import table
from tests.e2e.real_hippod import Daemon

SERVER = os.environ.get("HIPPOD_BENCH_LLM")
SETS = tuple(os.environ.get("HIPPOD_BENCH_SETS", "musique,hotpotqa,2wiki").split(","))
QUESTIONS = 20
SINGLE_QUESTIONS = int(os.environ.get("HIPPOD_BENCH_QUESTIONS", str(QUESTIONS)))
DEEP_QUESTIONS = int(os.environ.get("HIPPOD_BENCH_DEEP", str(QUESTIONS)))
PASSAGES = 200
"""Number of passages of each set, including the gold passages."""
ANSWERS = ROOT / "bench/support/questions/two_wiki_answers.json"
"""Answers to 20 questions of 2Wiki, whose question file has none; one person wrote them from the gold passages."""
WAYS = {
    "single": (SINGLE_QUESTIONS, ["--judge"]),
    "deep": (DEEP_QUESTIONS, ["--answerer", "deep", "--each-step", "--steps", "2", "--quick"]),
}
"""For each way of answering: (number of questions, options of `eval`)."""
KEPT = RESULTS / "answers"
MODEL_S = 600.0
"""Time limit of a call in seconds; the machine may be busy."""


def run(results: dict[str, Any]) -> str:
    """Fills `results` with the evaluation of each set and way. Returns a table of their scores and costs."""
    if SERVER is None:
        return "Not measured: $HIPPOD_BENCH_LLM is not set."
    KEPT.mkdir(parents=True, exist_ok=True)
    model = httpx2.get(f"{SERVER}/models", trust_env=False).json()["data"][0]["id"]
    llm = {"base_url": SERVER, "model": Path(model).name, "timeout_s": MODEL_S}
    rows: list[tuple[str, ...]] = []
    with (
        tempfile.TemporaryDirectory(prefix="hippod-answers-") as place,
        bulk_daemon(Path(place), folders=(), llm=llm, retrieval={"filter": "none"}) as daemon,
    ):
        sets = {name: _add(daemon, name) for name in SETS if (DATA / name).exists()}
        daemon.wait(BULK_S)
        for way, (count, options) in WAYS.items():
            for name, questions in sets.items():
                saved = KEPT / f"{name}-{way}-{count}.json"
                results[f"{name}, {way}"] = found = _evaluated(daemon, questions[:count], saved, options)
                rows.append((name, way, str(found["answers"]["n"]), *_cells(found)))
                print(*rows[-1], sep=" | ", flush=True)
    heads = (
        "set",
        "answers",
        "questions",
        "EM",
        "F1",
        "F1 by step",
        "failed, abstained",
        "judge: comprehensiveness, diversity, right",
    )
    costs = ("failed judgements", "calls", "prompt tokens", "answer tokens", "seconds, p50")
    return f"{Path(model).name}; costs a question, without the judge's:\n\n{table(heads + costs, rows)}"


def _add(daemon: Daemon, name: str) -> list[dict[str, Any]]:
    """Adds the set's passages to the memory. Returns its questions."""
    corpus = json.loads((DATA / name / "corpus.json").read_text("utf-8"))
    questions: list[dict[str, Any]] = json.loads((DATA / name / "questions.json").read_text("utf-8"))
    if name == "2wiki":
        answers = json.loads(ANSWERS.read_text("utf-8"))
        questions = [{**each, "answer": answers[each["question"]]} for each in questions if each["question"] in answers]
    questions = questions[:QUESTIONS]
    gold = frozenset[int]().union(*gold_documents(corpus, questions).values())
    others = [at for at in range(len(corpus)) if at not in gold]
    wanted = PASSAGES - len(gold)
    chosen = sorted(gold | set(others[:: len(others) // wanted][:wanted]))
    documents = daemon.home / f"{name}.json"
    documents.write_text(json.dumps([corpus[at] for at in chosen]), "utf-8")
    ctl(daemon, "add", documents, "--id-prefix", name)
    return questions


def _evaluated(daemon: Daemon, questions: list[dict[str, Any]], saved: Path, options: list[str]) -> dict[str, Any]:
    """Returns the result of `eval`, which is kept in `saved`."""
    if not saved.exists():
        file = daemon.home / "questions.json"
        file.write_text(json.dumps(questions), "utf-8")
        ctl(daemon, "eval", file, *options, "--save", saved, timeout_s=None)
    result: dict[str, Any] = json.loads(saved.read_text("utf-8"))["modes"][0]
    return result


def _cells(found: dict[str, Any]) -> tuple[str, ...]:
    answers, cost = found["answers"], found["cost"]
    judge = answers.get("judge")
    return (
        f"{answers['em']:.2f}",
        f"{answers['f1']:.2f}",
        ", ".join(f"{step['f1']:.2f}" for step in answers.get("steps", [])) or "–",
        f"{answers['failed']}, {answers['abstained']}",
        f"{judge['comprehensiveness']:.0f}, {judge['diversity']:.0f}, {judge['accuracy']:.2f}" if judge else "–",
        f"{judge['failed']} of {judge['failed'] + judge['calls']}" if judge else "–",
        f"{cost['calls']:.1f}",
        f"{cost['prompt_tokens']:,.0f}",
        f"{cost['completion_tokens']:,.0f}",
        f"{answers['took_ms']['p50'] / 1000:.0f}",
    )
