"""Questions and triples in other languages than English, over Debian's reference, handbook and installation guide.

`HIPPOD_BENCH_MANUALS` (by default ../shared/data/manuals/drive) has one folder a language. For each language there are twenty
questions in `bench/support/questions/manual_questions.json`; what answers one is a passage that its regular expression
finds: a command, a path or a name that the question does not have. Here are BM25 by itself, in the language's own drive and
among all, and what the rules read. `python -m bench manuals` measures whole daemons.
"""

import json
import os
import random
import re
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.sections.quality.manuals import DATA
from consumers.parsing.parse_file import parse_file
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument, Passage
from memory.openie.rules.extractor import RulesExtractor
from store.index.bm25 import Postings
from store.types import MENTION, PassageText

QUESTIONS = Path(__file__).resolve().parents[2] / "support" / "questions" / "manual_questions.json"
EXTRACTED_PASSAGES = 300
"""Passages a language that the rules read."""
STRUCTURE = "also known as"
"""The predicate between a title and its other forms, which no sentence states."""
Questions = list[dict[str, Any]]


def run(results: dict[str, Any]) -> str:
    """Markdown; all figures in `results`."""
    folder = Path(os.environ.get("HIPPOD_BENCH_MANUALS", DATA / "drive"))
    if not folder.is_dir():
        return f"Skipped: the manuals are read from {folder}, which is not there (HIPPOD_BENCH_MANUALS names another place)."
    listed: Questions = json.loads(QUESTIONS.read_text("utf-8"))
    drives = {place.name: _passages(place) for place in sorted(folder.iterdir()) if place.is_dir()}
    together = [passage for passages in drives.values() for passage in passages]
    mixed = _index(together)
    results["languages"] = {}
    for code, passages in drives.items():
        questions = [entry for entry in listed if entry["language"] == code]
        found: dict[str, Any] = {"passages": len(passages), "rules": _extracted(passages)}
        if questions:
            found["alone"] = _asked(questions, passages, _index(passages))
            found["mixed"] = _asked(questions, together, mixed)
        results["languages"][code] = found
    return _table(results["languages"])


def _passages(folder: Path) -> list[Passage]:
    return [
        passage
        for file in sorted(folder.rglob("*"))
        if file.is_file()
        for document in parse_file(bytes(file), file.as_uri(), SplitSettings())
        if isinstance(document, ParsedDocument)
        for passage in document.passages
    ]


def _full(passage: Passage) -> str:
    return f"{passage.title}\n{passage.text}"


def _index(passages: list[Passage]) -> tuple[Postings, int]:
    postings = Postings()
    return postings, sum(postings.extend(row, _full(passage)) for row, passage in enumerate(passages))


def _asked(questions: Questions, passages: list[Passage], index: tuple[Postings, int]) -> dict[str, float]:
    """Rank of the first passage that answers, as shares of questions and as mean reciprocal rank."""
    postings, length = index
    ranks: list[float] = []
    for entry in questions:
        scores = postings.scores(entry["question"], np.ones(len(passages), np.bool_), length)
        order = [row for row in np.argsort(-scores, kind="stable")[:100].tolist() if scores[row] > 0]
        gold = re.compile(entry["gold"][0])
        ranks.append(next((n for n, row in enumerate(order, 1) if gold.search(_full(passages[row]))), np.inf))
    return {
        "n": len(ranks),
        "first": sum(rank == 1 for rank in ranks),
        "among_5": sum(rank <= 5 for rank in ranks),
        "mrr": round(sum(1 / rank for rank in ranks) / len(ranks), 3),
    }


def _extracted(passages: list[Passage]) -> dict[str, float]:
    """What the rules read of a sample: statements are what is neither a mention nor about titles."""
    chosen = random.Random(7).sample(passages, min(len(passages), EXTRACTED_PASSAGES))
    extractor = RulesExtractor()
    texts = [PassageText(str(n), passage.title, passage.text) for n, passage in enumerate(chosen)]
    extractor.extract(texts[:1])
    began = time.process_time()
    predicates = [predicate for found in extractor.extract(texts) for _, predicate, _ in found.triples]
    mentions = predicates.count(MENTION)
    return {
        "triples": len(predicates),
        "mentions": mentions,
        "statements": len(predicates) - mentions - predicates.count(STRUCTURE),
        "cpu_ms_a_passage": round((time.process_time() - began) * 1000 / len(texts), 2),
    }


def _table(languages: dict[str, Any]) -> str:
    lines = [
        "| | passages | BM25 alone: first / among 5 / of, MRR | among all languages | statements / mentions / triples | ms |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for code, found in languages.items():
        asked = [
            f"{each['first']} / {each['among_5']} / {each['n']}, {each['mrr']}" if (each := found.get(where)) else "-"
            for where in ("alone", "mixed")
        ]
        rules = found["rules"]
        said = f"{rules['statements']} / {rules['mentions']} / {rules['triples']}"
        lines.append(f"| {code} | {found['passages']} | {' | '.join(asked)} | {said} | {rules['cpu_ms_a_passage']} |")
    return "\n".join(lines)
