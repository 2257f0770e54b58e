"""A passage is found by what its words have in common with the query's, in the middle of a compound too."""

import numpy as np
import pytest
from numpy.typing import NDArray

from memory.retrieval.char_ngrams import char_ngrams, compare_parts


def compare(query: str, *texts: str) -> NDArray[np.float64]:
    lengths = np.array([len(text.split()) for text in texts], np.int32)
    return compare_parts(query, texts, texts.__getitem__, lengths)


def best(query: str, *texts: str) -> str:
    scores = compare(query, *texts)
    return texts[int(scores.argmax())]


@pytest.mark.parametrize(
    ("query", "wanted", "others"),
    [
        (
            "Antivirenprogramm",
            "Der Virenscanner ClamAV prüft Post.",
            ["Der Drucker druckt Post.", "Die Uhr prüft nichts."],
        ),
        ("Boot-Menü", "Das Bootmenue hat Einträge. Bootmenü.", ["Das Menu der Kantine.", "Das Boot liegt im Hafen."]),
        ("recursion limit", "sys.setrecursionlimit(limit)", ["a limit of time", "an incursion"]),
        ("démarrer", "redemarrage du serveur", ["un serveur", "la marche"]),
        ("软件包", "安装软件包", ["安装文件", "开机"]),
    ],
)
def test_char_ngrams_find_compounds_derivations_and_identifiers(query: str, wanted: str, others: list[str]) -> None:
    assert best(query, *others, wanted) == wanted


def test_short_words_have_no_ngrams() -> None:
    assert not char_ngrams("a is the 12, or so")
    assert compare("a is the", "this is the theatre").tolist() == [0.0]


def test_ngrams_do_not_cross_words_or_texts() -> None:
    texts = ["abc", "defg", "ab cdef", "xabcdex", "𝒳abcd\0abcd"]
    scores = compare("abcde", *texts)
    assert [bool(score) for score in scores] == [False, False, False, True, True]


def test_overlapping_ngrams_are_counted() -> None:
    once, more = compare("aaaa", "aaaa b", "aaaaaa b")
    assert 0 < once < more
