"""Questions and triples in languages other than English, over Debian's reference, handbook and installation guide.

`HIPPOD_BENCH_MANUALS` (by default ../shared/data/manuals/drive) has one folder per language. Each language has twenty questions
in `bench/support/questions/manual_questions.json`. A passage answers a question if it matches the question's regular
expression: a command, a path or a name that the question does not contain. Measures the rules' triples, and BM25 alone over the
language's own drive and over all drives. `python -m bench manuals` measures whole daemons.

Then, for each installed packaged encoder, a daemon follows the vault (`HIPPOD_BENCH_VAULT`), help pages in nine languages. Each
language's questions are asked of the pages in that language, and English questions of the pages in another language.
"""

import json
import random
import re
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from bench.support.bulk_daemon import BULK_S, bulk_daemon
from bench.support.data import DATA, MANUALS, ROOT, skipped
from bench.support.questions.drives import DriveQuestion, cross_lingual_questions, place, vault_questions
from bench.support.questions.mode_comparison import KS, recalls
from bench.support.tables import table
from consumers.parsing.parse_file import parse_file
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument, Passage
from memory.encoder.packaged_model import PACKAGED_MODELS
from memory.openie.rules.extractor import RulesExtractor
from memory.retrieval.modes import DEFAULT_MODE
from store.index.words.postings import Postings
from store.types import MENTION, PassageText
from tests.e2e.real_hippod import Daemon

QUESTIONS = ROOT / "bench/support/questions/manual_questions.json"
EXTRACTED_PASSAGES = 300
"""Number of passages per language from which the rules extract triples."""
VAULT_MODES = (DEFAULT_MODE, "dense", "bm25")
CROSSED_LANGUAGES = ("de", "zh", "ru")
STRUCTURE = "also known as"
"""Predicate between a title and its other forms, which no sentence states."""
Questions = list[dict[str, Any]]


def run(results: dict[str, Any]) -> str:
    return "\n\n".join([_manuals(results), _vault(results.setdefault("vault", {}))])


def _manuals(results: dict[str, Any]) -> str:
    if not MANUALS.is_dir():
        return skipped("The manuals", MANUALS, variable="HIPPOD_BENCH_MANUALS")
    listed: Questions = json.loads(QUESTIONS.read_text("utf-8"))
    drives = {place.name: _passages(place) for place in sorted(MANUALS.iterdir()) if place.is_dir()}
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


def _vault(results: dict[str, Any]) -> str:
    source, questions_file = place("vault", DATA / "vault" / "drive"), DATA / "vault" / "questions.json"
    if not source.is_dir() or not questions_file.exists():
        return skipped("The vault", source, questions_file, variable="HIPPOD_BENCH_VAULT")
    languages = sorted(each.name for each in source.iterdir() if vault_questions(questions_file, each.name))
    columns: dict[str, dict[str, float]] = {}
    for model in PACKAGED_MODELS:
        with suppress(FileNotFoundError), tempfile.TemporaryDirectory() as home:
            model.find_weights()
            daemon = bulk_daemon(Path(home), model.names[0])
            shutil.copytree(source, daemon.drive, dirs_exist_ok=True)
            with daemon:
                daemon.wait(BULK_S)
                for mode in VAULT_MODES:
                    columns[f"`{mode}`, {model.names[0]}"] = _vault_shares(daemon, questions_file, languages, mode)
    results.update(columns)
    rows = [(row, *(f"{column[row]:.2f}" for column in columns.values())) for row in next(iter(columns.values()))]
    return table(("vault: all pages among five passages", *columns), rows)


def _vault_shares(daemon: Daemon, questions_file: Path, languages: list[str], mode: str) -> dict[str, float]:
    """Returns the share of questions with all gold pages among the first five passages, by row of the table."""

    def answered(questions: list[DriveQuestion]) -> list[bool]:
        return [bool(share == 1) for share in recalls(daemon, questions, mode)[:, KS.index(5)]]

    own = {language: vault_questions(questions_file, language) for language in languages}
    found = {language: answered(questions) for language, questions in own.items()}
    of_two = [
        right
        for language, questions in own.items()
        for question, right in zip(questions, found[language], strict=True)
        if question.gold > 1
    ]
    rows = {language: float(np.mean(each)) for language, each in found.items()}
    rows["mean of the languages"] = float(np.mean(list(rows.values())))
    rows["questions of two pages"] = float(np.mean(of_two)) if of_two else 0.0
    crossed = {
        f"English questions, pages in {language}": answered(cross_lingual_questions(questions_file, language))
        for language in CROSSED_LANGUAGES
        if language in languages
    }
    return rows | {name: float(np.mean(each)) for name, each in crossed.items()}


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
    """Returns figures about the first answering passage's rank: shares of questions, and the mean reciprocal rank."""
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
    """Returns figures about the rules on a sample. Statements are triples that are neither mentions nor about titles."""
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
    rows = []
    for code, found in languages.items():
        asked = [
            f"{each['first']} / {each['among_5']} / {each['n']}, {each['mrr']}" if (each := found.get(where)) else "-"
            for where in ("alone", "mixed")
        ]
        rules = found["rules"]
        extracted = f"{rules['statements']} / {rules['mentions']} / {rules['triples']}"
        rows.append((code, found["passages"], *asked, extracted, rules["cpu_ms_a_passage"]))
    alone = "BM25 alone: first / among 5 / of, MRR"
    return table(("", "passages", alone, "among all languages", "statements / mentions / triples", "ms"), rows)
