"""Weak matches: the cosine below which an answer says that nothing in the memory answers the question well.

The questions of a set are divided into halves. The gold passages of one half are removed from the memory, so that its questions
have no answer; the questions of the other half keep their gold. Then the two halves change roles. The measure is the cosine of
the question with the nearest passage, whatever the mode. The sets are MuSiQue, HotpotQA and 2WikiMultihopQA (whose other
passages were chosen to be near the questions), the manuals below `HIPPOD_BENCH_MANUALS`, and the example drive.
"""

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from bench.support.data import DATA, DRIVE, MANUALS, ROOT
from bench.support.tables import table
from cli.evaluation.gold import same_text
from cli.evaluation.questions import read_questions
from consumers.parsing.parse_file import parse_file
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument
from memory.encoder import make_encoder
from memory.encoder.packaged_model import MINILM
from store.types import PassageText

THRESHOLDS = (0.30, 0.35, 0.40, 0.45, 0.50, 0.55)
MOST_FALSE = 0.05
"""Maximum share of weak matches among the questions that the memory can answer, over all sets, for each half."""

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Questions of a set. `gold`: for each question, a mask of the passages that answer it."""

    passages: list[PassageText]
    questions: list[str]
    gold: list[Flags]


@dataclass(frozen=True, slots=True)
class Half:
    """Best cosines while this half's gold is removed: `gone` for this half's questions, `there` for the other half's
    questions."""

    gone: Floats
    there: Floats


def run(results: dict[str, Any]) -> str:
    encoder = make_encoder("sentence-transformers", "all-MiniLM-L6-v2", 64, "auto")
    sets = _sets()
    vectors = {
        name: encoder.encode_low_precision([passage.full for passage in each.passages]) for name, each in sets.items()
    }
    asked = {name: np.stack([encoder.encode_query(text) for text in each.questions]) for name, each in sets.items()}
    halves = {name: _halves(asked[name] @ vectors[name].T, each.gold) for name, each in sets.items()}
    own = MINILM.calibration.weak_below
    assert own is not None
    rows = []
    for name, pair in halves.items():
        results[name] = {"passages": len(sets[name].passages), "questions": len(sets[name].questions), "halves": []}
        for number, half in enumerate(pair, 1):
            rates = {f"{at:.2f}": (_share(half.gone, at), _share(half.there, at)) for at in (*THRESHOLDS, own)}
            results[name]["halves"].append({"auc": _auc(half), "gone, there below": rates})
            shown = (f"{gone:.2f} / {there:.2f}" for gone, there in list(rates.values())[: len(THRESHOLDS)])
            rows.append((f"{name}, half {number} out", f"{_auc(half):.3f}", *shown))
    results["chosen"] = {}
    for number in (0, 1):
        there, other = (np.concatenate([pair[at].there for pair in halves.values()]) for at in (number, 1 - number))
        chosen = _highest(there)
        results["chosen"][f"half {number + 1}"] = {"threshold": chosen, "false on the other": _share(other, chosen)}
        if (false := _share(there, own)) > MOST_FALSE:
            results.setdefault("violations", []).append(
                f"half {number + 1}: {false:.1%} of the answered questions lie below {own}"
            )
    head = ("gone / there below", "AUC", *(f"{at:.2f}" for at in THRESHOLDS))
    results["of other sets"] = {
        name: {other: _share((asked[other] @ vectors[name].T).max(axis=1), own) for other in sets if other != name}
        for name in sets
    }
    foreign = ", ".join(
        f"{name} {min(shares.values()):.2f} to {max(shares.values()):.2f}"
        for name, shares in results["of other sets"].items()
    )
    found = ", ".join(
        f"{name} gives {each['threshold']:.2f} ({each['false on the other']:.3f} false on the other)"
        for name, each in results["chosen"].items()
    )
    return (
        f"{table(head, rows)}\n\nHighest threshold with at most {MOST_FALSE:.0%} of the answered questions below it: {found}. "
        f"In use: {own}.\n\nShare of the questions of each other set that lie below {own}: {foreign}."
    )


# Sets of questions.


def _sets() -> dict[str, QuestionSet]:
    sets = {name: _wikipedia(DATA / name) for name in ("musique", "hotpotqa", "2wiki") if (DATA / name).is_dir()}
    manuals = MANUALS / "en"
    if manuals.is_dir() and (DATA / "manuals").is_dir():
        sets["manuals"] = _manuals(manuals)
    return sets | {"drive": _drive()}


def _wikipedia(folder: Path) -> QuestionSet:
    corpus = json.loads((folder / "corpus.json").read_text("utf-8"))
    passages = [PassageText("", each["title"], each["text"]) for each in corpus]
    texts = [same_text(f"{each.title}\n{each.text}") for each in passages]
    questions = read_questions(folder / "questions.json")
    known = [{same_text(str(gold)) for gold in question.passages} for question in questions]
    gold = [np.array([text in passages for text in texts]) for passages in known]
    return QuestionSet(passages, [question.text for question in questions], gold)


def _manuals(folder: Path) -> QuestionSet:
    passages = [passage for passage, _ in _parsed(folder)]
    listed = json.loads((DATA / "manuals" / "questions.json").read_text("utf-8"))
    entries = [entry for entry in listed if entry["language"] == "en"]
    gold = [_matching(passages, entry["gold"]) for entry in entries]
    return QuestionSet(passages, [entry["question"] for entry in entries], gold)


def _drive() -> QuestionSet:
    parsed = _parsed(DRIVE)
    questions = read_questions(ROOT / "examples" / "questions.json")
    uris = [unquote(uri) for _, uri in parsed]
    gold = [
        np.array([any(uri.endswith(f"/{path}") for path in question.documents) for uri in uris])
        for question in questions
    ]
    return QuestionSet([passage for passage, _ in parsed], [question.text for question in questions], gold)


def _parsed(folder: Path) -> list[tuple[PassageText, str]]:
    """Returns every passage of a folder's files, with its document's URI."""
    found = []
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        for read in parse_file(os.fsencode(file), file.as_uri(), SplitSettings(400, 40)):
            if isinstance(read, ParsedDocument):
                found += [(PassageText("", each.title, each.text), read.uri) for each in read.passages]
    return found


def _matching(passages: Sequence[PassageText], patterns: Sequence[str]) -> Flags:
    return np.array([any(re.search(pattern, passage.full) for pattern in patterns) for passage in passages])


# Measures.


def _halves(cosines: NDArray[np.float32], gold: Sequence[Flags]) -> tuple[Half, Half]:
    even = np.arange(len(gold)) % 2 == 0
    return _half(cosines, gold, even), _half(cosines, gold, ~even)


def _half(cosines: NDArray[np.float32], gold: Sequence[Flags], removed: Flags) -> Half:
    """Returns the best cosines. A question of the other half counts only if none of its gold was removed."""
    out = np.any([mask for mask, gone in zip(gold, removed, strict=True) if gone], axis=0)
    best = np.where(out, -1.0, cosines).max(axis=1)
    whole = np.array([bool(mask.any()) and not (mask & out).any() for mask in gold])
    return Half(best[removed], best[~removed & whole])


def _share(values: Floats, below: float) -> float:
    return float((values < below).mean())


def _auc(half: Half) -> float:
    """Returns the probability that a question without its gold has a lower cosine than one with its gold."""
    lower = half.gone[:, None] < half.there
    return float((lower + 0.5 * (half.gone[:, None] == half.there)).mean())


def _highest(there: Floats) -> float:
    steps = [step / 100 for step in range(100)]
    return max(step for step in steps if _share(there, step) <= MOST_FALSE)
