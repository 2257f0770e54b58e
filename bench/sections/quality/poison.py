"""Attacks by documents: whether a flood of near-duplicates or a magnet displaces true passages.

Each attack is added to the example drive and to MuSiQue (triples of the rules), every question is asked in `fused` and in the
baselines, and the attack is removed. Each flood targets one question. `places` are the ranks of the question's gold before the
attack, with one near-duplicate, and with all near-duplicates. `HIPPOD_BENCH_SETS` selects a set (drive,musique).
"""

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.support.bulk_daemon import BULK_S, bulk_daemon, ctl
from bench.support.data import DRIVE, MUSIQUE, ROOT, skipped
from bench.support.poisoned_documents import (
    Document,
    altered_copies,
    flood,
    name_magnet,
    question_magnet,
    triple_magnet,
    word_magnet,
)
from bench.support.questions.mode_comparison import KS, ask, locate
from bench.support.tables import table
from cli.evaluation.questions import EvalQuestion, read_questions
from daemon.contract.query import RankedPassage
from tests.e2e.real_hippod import Daemon

SETS = tuple(os.environ.get("HIPPOD_BENCH_SETS", "drive,musique").split(","))
MODES = ("fused", "hipporag2", "bm25", "dense")
FLOODED = 3
"""Number of questions that floods target, evenly spaced."""
FIRST = 5
PLACES_MAX = 1
"""Maximum number of ranks that gold among the first `FIRST` may lose in `fused` if the flood grows from one near-duplicate to
all."""
LOSS_MAX = 0.02
"""Maximum loss of recall@5 in `fused` by an attack, over all questions. The magnet that repeats the questions is exempt."""
BATCH = 100


@dataclass(frozen=True, slots=True)
class Attack:
    name: str
    documents: Sequence[Document]
    target: int | None = None
    """Index of the question that the attack targets."""
    original: RankedPassage | None = None
    """The passage that the attack's documents copy; a copy counts as this passage."""
    is_bounded: bool = True
    """Whether `LOSS_MAX` applies."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Results of all questions in one mode. `found[i, k - 1]`: share of the gold of question i among the first k passages.
    `places`: ranks of gold by question. `attackers`: number of the attack's passages among the first `FIRST`."""

    found: Any
    places: Sequence[Sequence[int]]
    attackers: int

    @property
    def recall(self) -> dict[str, float]:
        return {str(k): round(float(self.found[:, k - 1].mean()), 4) for k in KS}


def run(results: dict[str, Any]) -> str:
    parts = []
    for name in SETS:
        if name == "musique" and not MUSIQUE.exists():
            parts.append(skipped("MuSiQue", MUSIQUE))
            continue
        folder = Path(tempfile.mkdtemp(prefix="hippod-poison-"))
        try:
            parts.append(_set(name, folder, results))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return "\n\n".join(parts)


def _set(name: str, home: Path, results: dict[str, Any]) -> str:
    daemon = bulk_daemon(home)
    if name == "drive":
        shutil.copytree(DRIVE, daemon.drive, dirs_exist_ok=True)
        questions = read_questions(ROOT / "examples" / "questions.json")
    else:
        questions = read_questions(MUSIQUE / "questions.json")
    with daemon:
        if name == "musique":
            ctl(daemon, "add", MUSIQUE / "corpus.json")
        daemon.wait(BULK_S)
        passages = daemon.status()["passages"]
        questions = locate(daemon, questions)
        clean = {mode: _answers(daemon, questions, mode) for mode in MODES}
        figures = results.setdefault(
            name, {"passages": passages, "clean": {m: each.recall for m, each in clean.items()}}
        )
        rows = [_row("nothing", mode, answers) for mode, answers in clean.items()]
        for attack in _attacks(daemon, questions):
            one = _one_copy(daemon, questions, attack)
            uris = [uri for part in _batches(attack.documents) for uri in daemon.add(*part)]
            daemon.wait(BULK_S)
            attacked = {mode: _answers(daemon, questions, mode, attack) for mode in MODES}
            for part in _batches(uris):
                ctl(daemon, "rm", *part)
            daemon.wait(BULK_S)
            figures[attack.name] = {
                mode: _figures(attack, clean[mode], one.get(mode), answers) for mode, answers in attacked.items()
            }
            rows += [
                _row(attack.name, mode, answers, attack, clean[mode], one.get(mode))
                for mode, answers in attacked.items()
            ]
            _judge(name, attack, clean["fused"], one.get("fused"), attacked["fused"], results)
    head = (
        f"{name}, {passages:,} passages, {len(questions)} questions: added",
        "mode",
        *(f"recall@{k}" for k in KS),
        f"attacker among {FIRST}",
        "places of the target's gold: before → beside one → beside all",
    )
    return table(head, rows)


def _attacks(daemon: Daemon, questions: Sequence[EvalQuestion]) -> Iterable[Attack]:
    texts = [question.text for question in questions]
    spaced = [int(at) for at in np.linspace(0, len(questions) - 1, FLOODED + 2)[1:-1]]
    for at in spaced:
        yield Attack(f"flood, question {at}", list(flood(texts[at])), at)
    first = ask(daemon, texts[spaced[0]], "fused").passages
    gold = next((passage for passage in first if questions[spaced[0]].found([passage])), None)
    if gold is not None:
        copies = list(altered_copies(gold.title, gold.text))
        yield Attack(f"copies of gold, question {spaced[0]}", copies, spaced[0], gold)
    names = _names(daemon, questions)
    yield Attack("magnet of names", [name_magnet(names)])
    yield Attack("magnet of triples", [triple_magnet(names)])
    yield Attack("magnet of words", [word_magnet(texts)])
    yield Attack("magnet of questions", [question_magnet(texts)], is_bounded=False)


def _names(daemon: Daemon, questions: Sequence[EvalQuestion]) -> list[str]:
    """Returns the titles of gold passages if the questions have them, otherwise the titles of all documents."""
    called = sorted({gold.title for question in questions for gold in question.passages})
    return called or sorted({each["title"] for each in daemon.documents().values() if each["title"]})


def _answers(daemon: Daemon, questions: Sequence[EvalQuestion], mode: str, attack: Attack | None = None) -> Answers:
    added = {f"added:{each['id']}" for each in attack.documents} if attack else set()
    found, places, attackers = [], [], 0
    for question in questions:
        passages = ask(daemon, question.text, mode).passages
        attackers += any(passage.document in added for passage in passages[:FIRST])
        if attack and attack.original:
            passages = [attack.original if passage.document in added else passage for passage in passages]
        counts = [question.found(passages[:k]) for k in range(1, max(KS) + 1)]
        found.append([count / question.gold for count in counts])
        places.append([k + 1 for k, count in enumerate(counts) for _ in range(count - (counts[k - 1] if k else 0))])
    return Answers(np.array(found), places, attackers)


def _one_copy(daemon: Daemon, questions: Sequence[EvalQuestion], attack: Attack) -> Mapping[str, Sequence[int]]:
    """Adds the first document of the attack; returns the ranks of the target's gold by mode."""
    if attack.target is None:
        return {}
    daemon.add(attack.documents[0])
    daemon.wait(BULK_S)
    return {mode: _answers(daemon, [questions[attack.target]], mode, attack).places[0] for mode in MODES}


def _figures(attack: Attack, clean: Answers, one: Sequence[int] | None, attacked: Answers) -> Mapping[str, Any]:
    figures: dict[str, Any] = {"recall": attacked.recall, "attacker_among_first": attacked.attackers}
    if attack.target is not None:
        figures["places"] = {
            "before": clean.places[attack.target],
            "beside_one": one,
            "beside_all": attacked.places[attack.target],
        }
    return figures


def _row(
    name: str,
    mode: str,
    answers: Answers,
    attack: Attack | None = None,
    clean: Answers | None = None,
    one: Sequence[int] | None = None,
) -> tuple[str, ...]:
    moved = ""
    if attack and clean and one is not None and attack.target is not None:
        moved = " → ".join(map(_listed, (clean.places[attack.target], one, answers.places[attack.target])))
    recall = (f"{value:.4f}" for value in answers.recall.values())
    return (name, f"`{mode}`", *recall, str(answers.attackers), moved)


def _listed(places: Sequence[int]) -> str:
    return ", ".join(map(str, places)) or "none"


def _judge(
    name: str,
    attack: Attack,
    clean: Answers,
    one: Sequence[int] | None,
    attacked: Answers,
    results: dict[str, Any],
) -> None:
    violations = results.setdefault("violations", [])
    lost = clean.recall["5"] - attacked.recall["5"]
    if attack.is_bounded and lost > LOSS_MAX:
        violations.append(f"{name}, {attack.name}: recall@5 of fused fell by {lost:.3f}")
    if attack.target is None or one is None:
        return
    after = attacked.places[attack.target]
    first = [place for place in one if place <= FIRST]
    if any(at >= len(after) or after[at] > place + PLACES_MAX for at, place in enumerate(first)):
        violations.append(
            f"{name}, {attack.name}: gold at {_listed(one)} beside one near-duplicate is at {_listed(after)} beside all"
        )


def _batches(items: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (items[at : at + BATCH] for at in range(0, len(items), BATCH))
