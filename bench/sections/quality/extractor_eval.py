"""Compares the rules' triples of technical text with labelled triples, and their triples of MuSiQue with recorded triples.

The labelled set is `bench/support/labelled_triples.json`: triples of the rules, drawn at random from all distinct triples of a
drive of manuals (Debian's reference, handbook and FAQ, Python's documentation, man pages). Each triple was judged against the
sentence from which it was extracted: "true" (stated and informative), "bare" (uninformative, or a mention, for which the rules
then wrote the predicate `mentions` or `part of`) or "wrong". The set contains sentences without their pages; each sentence is
extracted again under its page's title.
"""

import json
from collections import Counter
from typing import Any

from bench.support.data import MUSIQUE, ROOT, skipped
from bench.support.tables import table
from memory.openie.hipporag_file import read_hipporag_file
from memory.openie.rules.extractor import RulesExtractor
from memory.phrase_normalisation import normalise_phrase
from store.types import PassageText, Triple, is_statement, passage_id

LABELLED = ROOT / "bench/support/labelled_triples.json"
LABELS = ("true", "bare", "wrong")
LEAST_TRUE, MOST_WRONG = 0.60, 0.15
"""Minimum share of true and maximum share of wrong triples in the sample."""
LEAST_KEPT = 0.9
"""Minimum share of the triples labelled true that the rules must still extract from their sentences."""

MOST_WRONG_READ = 0.06
"""Maximum share of triples labelled wrong among those that the rules still extract."""


def run(results: dict[str, Any]) -> str:
    recorded = _recorded(results) if MUSIQUE.exists() else skipped("MuSiQue", MUSIQUE)
    return f"{_labelled(results)}\n\n{recorded}"


def read_labelled() -> list[dict[str, Any]]:
    """Returns the labelled triples, each with `title`, `sentence`, `triple`, `label`."""
    found: list[dict[str, Any]] = json.loads(LABELLED.read_text(encoding="utf-8"))["triples"]
    return found


def still_read(rows: list[dict[str, Any]]) -> list[bool]:
    """Whether the rules extract each triple from its sentence."""
    passages = [PassageText(passage_id(row["title"], row["sentence"]), row["title"], row["sentence"]) for row in rows]
    found = RulesExtractor().extract(passages)
    return [tuple(row["triple"]) in extraction.triples for row, extraction in zip(rows, found, strict=True)]


def _labelled(results: dict[str, Any]) -> str:
    rows = read_labelled()
    kept = still_read(rows)
    drawn = Counter(row["label"] for row in rows)
    given = Counter(row["label"] for row, each in zip(rows, kept, strict=True) if each)
    shares = {label: drawn[label] / len(rows) for label in LABELS}
    results["labelled"] = {"triples": len(rows), "drawn": dict(drawn), "still read": dict(given), "shares": shares}
    violations = results.setdefault("violations", [])
    if shares["true"] < LEAST_TRUE or shares["wrong"] > MOST_WRONG:
        violations.append(f"of the labelled triples {shares['true']:.0%} are true and {shares['wrong']:.0%} wrong")
    if given["true"] < LEAST_KEPT * drawn["true"]:
        violations.append(f"of {drawn['true']} triples labelled true the rules read {given['true']}")
    if given["wrong"] > MOST_WRONG_READ * sum(kept):
        violations.append(f"of {sum(kept)} labelled triples that the rules read {given['wrong']} are wrong")
    lines = [(label, drawn[label], f"{shares[label]:.1%}", given[label]) for label in LABELS]
    return table((f"{len(rows)} triples of technical text", "drawn", "share", "still extracted"), lines)


def _recorded(results: dict[str, Any]) -> str:
    """Compares with GPT-3.5's triples: recall and precision of whole triples, and of pairs of phrases with any relation."""
    recorded = list(read_hipporag_file(MUSIQUE / "openie.json"))
    passages = [PassageText(passage_id(r.title, r.text), r.title, r.text) for r in recorded]
    ours = [set(each.triples) for each in RulesExtractor().extract(passages)]
    theirs = [{_normalised(triple) for triple in r.triples} for r in recorded]
    rows = []
    for name, part in (("triples", _whole), ("related pairs", _pair), ("phrases", _phrases)):
        a = [{end for triple in found for end in part(triple)} for found in ours]
        b = [{end for triple in found for end in part(triple)} for found in theirs]
        common = sum(len(x & y) for x, y in zip(a, b, strict=True))
        recall, precision = common / max(sum(map(len, b)), 1), common / max(sum(map(len, a)), 1)
        results.setdefault("recorded", {})[name] = {"recall": round(recall, 4), "precision": round(precision, 4)}
        rows.append((name, f"{recall:.4f}", f"{precision:.4f}"))
    count, statements = sum(map(len, ours)), sum(is_statement(triple) for found in ours for triple in found)
    results["recorded"] |= {"ours": statements, "mentions": count - statements}
    head = f"MuSiQue, {statements:,} triples of the rules compared with the recorded triples"
    return table((head, "recall", "precision"), rows)


def _normalised(triple: Triple) -> Triple:
    subject, predicate, object_ = map(normalise_phrase, triple)
    return subject, predicate, object_


def _whole(triple: Triple) -> list[Any]:
    return [triple] if is_statement(triple) else []


def _pair(triple: Triple) -> list[Any]:
    return [frozenset((triple[0], triple[2]))]


def _phrases(triple: Triple) -> list[Any]:
    return [triple[0], triple[2]]
