"""Finds names and key phrases in prose that the grammar does not parse: other languages, other scripts, lists of words."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

import yake_rust

from memory.openie.rules.grammar.instructions import instructs
from memory.openie.rules.grammar.pos_tagger import tagger
from memory.openie.rules.grammar.tokenizer import join_tokens, split_sentences, word_set
from memory.openie.rules.languages.chinese import chinese_sentences
from memory.openie.rules.languages.german import tag_german
from memory.openie.rules.languages.japanese import japanese_sentences
from memory.openie.rules.languages.non_terms import NON_TERMS
from memory.openie.rules.languages.optional_taggers import INSTALLED
from memory.openie.rules.languages.words import NOUN, Word, compounds_of, joined, names_of

MAX_NAMES = 24
"""Maximum number of names per passage; the most frequent are kept."""
MAX_KEY_PHRASES = 6
"""Maximum number of key phrases of a paragraph without names."""
KEYWORD_TIMES, COMPOUND_TIMES = 3, 2
"""Minimum number of occurrences: of a noun in a Chinese or Japanese paragraph; of a pair of nouns there, or of words
elsewhere."""
_JOINTS = word_set("de la le du del della di da do dos von van der den zu zur y al el bin ibn af av of the und e i")
_WORD_CHARS = 40
_STOPWORDS = word_set("ar bg da de el en es et fa fi fr hi hr hu hy id it lt lv nl no pl pt ro ru sk sl sv tr uk")
"""Languages for which yake has function words, by code of the language detector."""
_MARKS = str.maketrans("।॥۔؟؛،", "...?;,")
"""Marks that yake takes for letters, and their replacements."""
_BRACKETS = re.compile(r"[\[\]{}()<>]{8,}")
"""Runs of brackets, which make yake_rust panic if they are thousands of characters long."""
_ELIDED = re.compile(r"\b[^\W\d_]+['’](?=[^\W\d_])")
_PARTICLE = re.compile(r"(?<=[A-Za-z0-9])(?=[\uac00-\ud7a3])")
"""The position between a Latin name and the particle that Korean appends to it."""
_ELIDING = frozenset({"fr", "it", "ca"})
"""Languages that join an article to the next word: "l'Europe", "dell'Adige"."""
_QUOTED_NAME = re.compile(r"[《「『〈【]([^《》「」『』〈〉【】\n]{1,30})[》」』〉】]")
_UNSPACED: dict[str, Callable[[str], Iterator[list[Word]]]] = {"ja": japanese_sentences, "zh": chinese_sentences}


class ProseNames(NamedTuple):
    """`names`: most frequent first, then in order of appearance. `pairs`: names that follow each other in a sentence, in order.

    `only_key_phrases`: the prose has no names, and `names` contains its key phrases.
    """

    names: list[str]
    pairs: list[tuple[str, str]]
    only_key_phrases: bool = False


def read_names(text: str, language: str, passage: str = "") -> ProseNames:
    """Returns at most `MAX_NAMES` names in the prose, or its key phrases if it has no names. `language`: a code of the language
    detector.

    `passage`: title and text of the passage, in which key phrases are counted.
    """
    if read := _UNSPACED.get(language):
        return _read_unspaced(text, read)
    if language in _ELIDING:
        text = _ELIDED.sub(" ", text)
    elif language == "ko":
        text = _PARTICLE.sub(" ", text)
    sentences = split_sentences(text)
    if language in ("", "en"):
        sentences = [words for words in sentences if not instructs(words, tagger().tag(words))]
    if language == "de" and INSTALLED:
        by_sentence = [
            [" ".join(word.text for word in run) for run in names_of(tag_german(each))] for each in sentences
        ]
    elif language == "de":
        by_sentence = _full_names(sentences)
    else:
        by_sentence = _capitalised(sentences)
    counts = Counter(name for names in by_sentence for name in names)
    if not counts and by_sentence:
        return ProseNames(_key_phrases(text, language, passage or text), [], only_key_phrases=True)
    # English names that only follow each other get no mention edge.
    return _most_frequent(counts, [] if language in ("", "en") else by_sentence)


def _read_unspaced(text: str, read: Callable[[str], Iterator[list[Word]]]) -> ProseNames:
    names = Counter(_QUOTED_NAME.findall(text))
    nouns: Counter[str] = Counter()
    compounds: Counter[str] = Counter()
    by_sentence = []
    for words in read(text):
        by_sentence.append([joined(run) for run in names_of(words)])
        names.update(by_sentence[-1])
        nouns.update(word.text for word in words if word.tag == NOUN and len(word.text) > 1)
        compounds.update(joined(run) for run in compounds_of(words))
    # These scripts have no capitals, and dictionaries lack many names, so frequent nouns are key phrases.
    names.update({noun: count for noun, count in nouns.items() if count >= KEYWORD_TIMES})
    names.update({compound: count for compound, count in compounds.items() if count >= COMPOUND_TIMES})
    return _most_frequent(names or Counter(dict(compounds.most_common(MAX_KEY_PHRASES))), by_sentence)


def _most_frequent(counts: "Counter[str]", by_sentence: Iterable[Sequence[str]]) -> ProseNames:
    pairs = dict.fromkeys(pair for names in by_sentence for pair in pairwise(names))
    return ProseNames([name for name, _ in counts.most_common(MAX_NAMES)], list(pairs)[:MAX_NAMES])


def _key_phrases(text: str, language: str, passage: str) -> list[str]:
    """Returns the paragraph's key phrases of two words, best first. The passage must repeat them; words that only begin
    sentences are excluded. Single words are excluded, because they are often verbs or adverbs.

    A phrase that occurs once is just as often a verb with its object, because many sentences begin with an imperative. In
    scripts without capitals, nothing else indicates names, so a phrase need not be repeated.
    """
    orders, counts = _words_of_passage(passage)
    once = sum(char.isalpha() and char.lower() == char.upper() for char in text) * 2 > len(text.replace(" ", ""))
    ranking = _key_phrase_ranking(language if language in _STOPWORDS else "")
    found: list[str] = []
    taken: set[str] = set()
    for phrase, _ in ranking.get_n_best(_BRACKETS.sub(" ", text.translate(_MARKS)), n=8 * MAX_KEY_PHRASES):
        words = tuple(phrase.casefold().split())
        if len(words) != 2 or len(phrase) > 2 * _WORD_CHARS or taken.issuperset(words):
            continue
        if (once or counts[words] >= COMPOUND_TIMES) and orders.isdisjoint(words) and NON_TERMS.isdisjoint(words):
            found.append(phrase)
            taken.update(words)
    return found[:MAX_KEY_PHRASES]


@lru_cache(maxsize=4)
def _words_of_passage(passage: str) -> tuple[Set[str], Mapping[tuple[str, str], int]]:
    """Returns (words that only begin sentences, number of occurrences of each pair of words) of a passage.

    The result is cached, because it is the same for all paragraphs of the passage.
    """
    sentences = split_sentences(passage.casefold())
    within = {word for words in sentences for word in words[1:]}
    return {words[0] for words in sentences} - within, Counter(pair for words in sentences for pair in pairwise(words))


@cache
def _key_phrase_ranking(language: str) -> yake_rust.Yake:
    if language:
        return yake_rust.Yake(language=language, ngrams=2)
    return yake_rust.Yake(stopwords=set(), ngrams=2)


def _capitalised(sentences: Sequence[Sequence[str]]) -> list[list[str]]:
    """Returns the runs of capitalised words of each sentence, in order.

    The first word of a sentence always has a capital. The first word does not belong to the next name if that name also occurs
    without it ("Открой Obsidian").
    """
    runs = [_runs(words) for words in sentences]
    within = {join_tokens(run) for found in runs for at, run in found if at}
    by_sentence: list[list[str]] = []
    for found in runs:
        names = []
        for at, run in found:
            while run and not at and run[0].casefold() in NON_TERMS:
                run = run[1:]  # "Откройте Настройки"
            opens = not at and (len(run) == 1 or join_tokens(run[1:]) in within)
            if name := join_tokens(run[opens:]):
                names.append(name)
        by_sentence.append(names)
    return by_sentence


def _full_names(sentences: Sequence[Sequence[str]]) -> list[list[str]]:
    """Returns the names in German sentences, where every noun has a capital: runs of two or more capitalised words, not at the
    beginning.

    Compared with HanTa on 250 passages of a vault, 73 % of these names are right, but only 22 % of the names from
    `_capitalised`.
    """
    return [
        [join_tokens(run) for at, run in _runs(words) if at and len(run) > 1 and not any(map(str.islower, run))]
        for words in sentences
    ]


def _runs(words: Sequence[str]) -> list[tuple[int, Sequence[str]]]:
    """Returns the runs of capitalised words, each with its position."""
    found: list[tuple[int, Sequence[str]]] = []
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
        found.append((i, words[i:end]))
        i = end
    return found


def _is_capital(word: str) -> bool:
    return word[0].isupper() and 1 < len(word) <= _WORD_CHARS
