"""Names and keywords of prose that the English rules cannot read: other languages, other scripts, lists of words."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from memory.openie.rules.grammar.tokenizer import word_set

MAX_NAMES = 24
"""Mentions of one passage; the most frequent stay."""
_ENGLISH = word_set(
    "the of and to for with by that from at are were has had have his her its it which an be this not as on he she they who "
    "when their been also but or into after before would can will you we"
)
_JOINTS = word_set("de la le du des del della di da do dos von van der den zu zur y al el bin ibn af av of the und e i")
_RUNS = re.compile(r"[\u30a0-\u30ff]{2,}|[\u3400-\u9fff\uf900-\ufaff々〆]{2,}")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
QUOTED_NAME = re.compile(r"[《「『〈【]([^《》「」『』〈〉【】\n]{1,30})[》」』〉】]")
# The commonest grammatical characters of Chinese; what stands between two of them is mostly one word or name.
_CUTS = re.compile("[的是在了於于與与及被把從从由為为也都而或之其这這那]+")
_WORD_CHARS = 40


def is_english(words: Sequence[str], lexicon: dict[str, str]) -> bool:
    """Whether a stretch of words is English prose.

    One in ten or more belongs to its grammar, or three in four of those in lower case are in the lexicon.
    """
    letters = [word for word in words if word[0].isalpha()]
    if sum(word.lower() in _ENGLISH for word in letters) * 10 >= len(letters) > 0:
        return True
    lower = [word for word in letters if word.islower()]
    return sum(word in lexicon for word in lower) * 4 >= len(lower) * 3 > 0


def names_and_keywords(text: str, sentences: Sequence[Sequence[str]]) -> list[str]:
    """What the text mentions, most frequent first and then in order; at most `MAX_NAMES`."""
    counts: Counter[str] = Counter()
    if _WIDE.search(text):
        counts.update(QUOTED_NAME.findall(text))
        for run in _RUNS.findall(text):
            counts.update(piece for piece in _CUTS.split(run) if 2 <= len(piece) <= 10)
    for words in sentences:
        counts.update(_capitalised(words))
    if not counts:
        # A script without capitals: longer words stand for what the text is about.
        found = [word for words in sentences for word in words if word[0].isalpha() and 3 <= len(word) <= _WORD_CHARS]
        counts.update(word for word in found if not word.isascii() and len(word) > 3)
    return [word for word, _ in counts.most_common(MAX_NAMES)]


def names_together(sentences: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
    """Pairs of names that follow each other in a sentence, in order; at most `MAX_NAMES`."""
    found: dict[tuple[str, str], None] = {}
    for words in sentences:
        found.update(dict.fromkeys(pairwise(_capitalised(words))))
    return list(found)[:MAX_NAMES]


def _capitalised(words: Sequence[str]) -> list[str]:
    """Runs of capitalised words; one that only opens the sentence says nothing and is left out."""
    found: list[str] = []
    i = 0
    while i < len(words):
        if not _is_capital(words[i]):
            i += 1
            continue
        end = i + 1
        while end < len(words) and end - i < 7:
            if _is_capital(words[end]) or words[end].isdigit():
                end += 1
            elif words[end].lower() in _JOINTS and end + 1 < len(words) and _is_capital(words[end + 1]):
                end += 2
            else:
                break
        if i > 0 or end > 1:
            found.append(" ".join(words[i:end]))
        i = end
    return found


def _is_capital(word: str) -> bool:
    return word[0].isupper() and 1 < len(word) <= _WORD_CHARS
