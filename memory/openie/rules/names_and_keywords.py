"""Names and key phrases of prose that no grammar reads: other languages, other scripts, lists of words."""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import yake_rust

from memory.openie.rules.grammar.tokenizer import join_tokens, word_set

MAX_NAMES = 24
"""Maximum number of names of one passage; the most frequent are kept."""
MAX_KEY_PHRASES = 6
"""Maximum number of key phrases of a paragraph without names."""
_ENGLISH = word_set(
    "the of and to for with by that from at are were has had have his her its it which an be this not as on he she they who "
    "when their been also but or into after before would can will you we"
)
_JOINTS = word_set("de la le du des del della di da do dos von van der den zu zur y al el bin ibn af av of the und e i")
_WORD_CHARS = 40
_STOPWORDS = word_set("ar bg da de el en es et fa fi fr hi hr hu hy id it lt lv nl no pl pt ro ru sk sl sv tr uk")
"""Languages, by the detector's codes, for which yake has function words."""
_MARKS = str.maketrans("।॥۔؟؛،", "...?;,")
"""Marks that yake would take for letters."""


def is_english(words: Sequence[str], lexicon: dict[str, str]) -> bool:
    """Returns whether a sequence of words is English prose.

    At least one word in ten must belong to the grammar, or three in four of the words in lower case must be in the lexicon.
    """
    letters = [word for word in words if word[0].isalpha()]
    if sum(word.lower() in _ENGLISH for word in letters) * 10 >= len(letters) > 0:
        return True
    lower = [word for word in letters if word.islower()]
    return sum(word in lexicon for word in lower) * 4 >= len(lower) * 3 > 0


def names_and_keywords(text: str, sentences: Sequence[Sequence[str]], language: str) -> list[str]:
    """Returns the names in the text, most frequent first, at most `MAX_NAMES`; its key phrases if it has no name."""
    counts = Counter(name for words in sentences for name in _capitalised(words))
    if not counts and sentences:
        return _key_phrases(text, language)
    return [name for name, _ in counts.most_common(MAX_NAMES)]


def names_together(sentences: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
    """Returns pairs of consecutive names in a sentence, in order; at most `MAX_NAMES`."""
    found: dict[tuple[str, str], None] = {}
    for words in sentences:
        found.update(dict.fromkeys(pairwise(_capitalised(words))))
    return list(found)[:MAX_NAMES]


def _key_phrases(text: str, language: str) -> list[str]:
    """Returns the paragraph's key phrases of two words, best first. A single word is as likely a verb or an adverb."""
    ranking = _key_phrase_ranking(language if language in _STOPWORDS else "")
    ranked = ranking.get_n_best(text.translate(_MARKS), n=4 * MAX_KEY_PHRASES)
    found: list[str] = []
    taken: set[str] = set()
    for phrase, _ in ranked:
        words = phrase.casefold().split()
        if len(words) == 2 and len(phrase) <= 2 * _WORD_CHARS and not taken.issuperset(words):
            found.append(phrase)
            taken.update(words)
    return found[:MAX_KEY_PHRASES]


@cache
def _key_phrase_ranking(language: str) -> yake_rust.Yake:
    if language:
        return yake_rust.Yake(language=language, ngrams=2)
    return yake_rust.Yake(stopwords=set(), ngrams=2)


def _capitalised(words: Sequence[str]) -> list[str]:
    """Returns runs of capitalised words, except a single word that only begins a sentence."""
    found: list[str] = []
    i = 0
    while i < len(words):
        if not _is_capital(words[i]):
            i += 1
            continue
        end = i + 1
        while end < len(words) and end - i < 7:
            if _is_capital(words[end]) or words[end].isdigit() or words[end] == "n't":
                end += 1
            elif words[end].lower() in _JOINTS and end + 1 < len(words) and _is_capital(words[end + 1]):
                end += 2
            else:
                break
        if i > 0 or end > 1:
            found.append(join_tokens(words[i:end]))
        i = end
    return found


def _is_capital(word: str) -> bool:
    return word[0].isupper() and 1 < len(word) <= _WORD_CHARS
