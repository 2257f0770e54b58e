"""A name of the code uses the glossary's term, never one of its synonyms (docs/reference/glossary.md)."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("cli", "consumers", "daemon", "memory", "store")
SYNONYMS = {
    "PageRank": {"ppr"},
    "triple": {"triplet", "spo"},
    "encoder": {"embedder", "vectorizer", "vectoriser"},
    "commit": {"transaction"},
    "checkpoint": {"savepoint"},
    "replica": {"follower", "mirror", "slave", "standby"},
    "client": {"principal", "tenant"},
    "gold passage": {"golden"},
    "statement": {"assertion"},
}
"""Words that mean nothing else in this project than the term."""

_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


def names():
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            yield path, path.stem
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    yield path, node.name


def test_each_term_is_in_the_glossary():
    glossary = (ROOT / "docs" / "reference" / "glossary.md").read_text()
    terms = {term.strip() for line in re.findall(r"\*\*(.+?)\*\*", glossary) for term in line.split(",")}
    assert set(SYNONYMS) <= terms


def test_no_name_uses_a_synonym_of_a_term():
    instead = {word: term for term, words in SYNONYMS.items() for word in words}
    assert [
        f"{path.relative_to(ROOT)}: {name} says {word.lower()} for {instead[word.lower()]}"
        for path, name in names()
        for word in _WORD.findall(name)
        if word.lower() in instead
    ] == []
