"""Reads prose of a language that has a tagger here: its names, and what its sentences state."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from memory.openie.rules.grammar.tokenizer import word_set
from memory.openie.rules.languages.chinese import chinese_sentences
from memory.openie.rules.languages.clauses import Style, read_clauses
from memory.openie.rules.languages.german import tag_german
from memory.openie.rules.languages.japanese import japanese_sentences
from memory.openie.rules.languages.lexicon_tagger import tag_by_lexicon
from memory.openie.rules.languages.sentences import split_sentences
from memory.openie.rules.languages.words import NOUN, Phrase, Statement, Word, names_of
from memory.openie.rules.names_and_keywords import MAX_NAMES
from memory.openie.rules.triple_collector import TripleCollector
from memory.phrase_normalisation import normalise_phrase
from store.text.language import detect_language

_TAGGERS: dict[str, tuple[Callable[[Sequence[str]], list[Word]], Style]] = {
    "de": (tag_german, Style(verb_second=True)),
    "nl": (partial(tag_by_lexicon, code="nl"), Style(verb_second=True)),
    **{code: (partial(tag_by_lexicon, code=code), Style()) for code in ("es", "fr", "it", "pt")},
}
_CHINESE = Style(joint="", modifiers_first=True)

_UNSPACED = frozenset({"ja", "zh"})
LANGUAGES = frozenset({*_TAGGERS, *_UNSPACED})
"""Languages whose sentences are read, by the detector's codes."""

_QUOTED_NAME = re.compile(r"[《「『〈【]([^《》「」『』〈〉【】\n]{1,30})[》」』〉】]")
_KANA = re.compile("[\u3041-\u30fa]")
_WIDE = re.compile("[\u3041-\u30fa\u3400-\u9fff]")
_LATIN = re.compile("[A-Za-z]")
_LATIN_PER_WIDE = 4
"""Latin letters that say about as much as one Chinese character."""

_NEUTRAL = frozenset({"es", "het"})
"""Pronouns for things alone: they mean the title rather than the person who was named last."""
_SPEAKERS = word_set(
    """
    ich wir ihr du man je j' nous vous tu on c' cela ça yo nosotros usted ustedes te nos me esto eso io noi voi ne ci vi ciò
    eu nós você vocês isto isso aquilo ik we wij jij u men er 我 我们 你 你们 您 咱们 私 僕 我々 あなた これ それ どれ 何
    """
)
"""Pronouns that mean nobody whom the text names."""
KEYWORD_TIMES = 3
"""Occurrences in a paragraph from which on a noun of Chinese or Japanese stands for what it is about."""
_MAX_WORDS = 8
"""Words of a phrase that say something; a longer one was read wrongly."""


def paragraph_language(text: str, language: str) -> str:
    """The language of a paragraph in a passage that is in `language`: that one, or English, or what its script says.

    The detector takes a Chinese sentence with two English names for English.
    """
    if len(_WIDE.findall(text)) * _LATIN_PER_WIDE > len(_LATIN.findall(text)):
        return "ja" if _KANA.search(text) else "zh"
    return "en" if language in LANGUAGES and detect_language(text) == "en" else language


def read_language(text: str, code: str, found: TripleCollector) -> None:
    """Puts what the prose names and states into `found`. `code` is one of `LANGUAGES`."""
    nouns: Counter[str] = Counter()
    names = Counter(_QUOTED_NAME.findall(text) if code in _UNSPACED else ())
    for sentence, statements in _sentences(text, code):
        names.update(names_of(sentence, spaced=code not in _UNSPACED))
        if code in _UNSPACED:
            nouns.update(word.text for word in sentence if word.tag == NOUN and len(word.text) > 1)
        for statement in statements:
            _take(statement, found)
    # Common nouns are capitalised nowhere there, and dictionaries lack many names: what comes again and again is a keyword.
    names.update({noun: count for noun, count in nouns.items() if count >= KEYWORD_TIMES})
    for name, _ in names.most_common(MAX_NAMES):
        found.add_name(normalise_phrase(name))


def _sentences(text: str, code: str) -> Iterator[tuple[list[Word], Iterable[Statement]]]:
    """The words of each sentence, and what it states: nothing where it asks."""
    if code == "ja":
        yield from japanese_sentences(text)
    elif code == "zh":
        for words, asked in chinese_sentences(text):
            yield words, () if asked else read_clauses(words, _CHINESE)
    else:
        tag, style = _TAGGERS[code]
        for sentence in split_sentences(text, code):
            words = tag(sentence)
            yield words, () if sentence[-1] == "?" else read_clauses(words, style)


def _take(statement: Statement, found: TripleCollector) -> None:
    """Takes a statement of which both ends can be met again: one is a name or the title, the other says something."""
    coref = found.coref
    if not statement.subject.words:
        subject, named = _referent(statement.subject.text, found), True
    else:
        subject = normalise_phrase(statement.subject.text)
        named = statement.subject.name or subject == coref.title
    object_ = normalise_phrase(statement.object.text)
    if not subject or not object_ or not (_is_readable(statement.object) and _is_readable(statement.subject)):
        return
    told = statement.object.name or object_ == coref.title or statement.object.number
    if coref.strict:
        # Manuals: only what is said outright of something with a name.
        if not named or not statement.direct or statement.object.number:
            return
    elif not (named or told or _several(statement.object)):
        return
    found.add_triple(subject, statement.predicate, object_, near=statement.direct)
    coref.note_subject(subject, named)


def _referent(pronoun: str, found: TripleCollector) -> str:
    """What a pronoun means: the last subject that was a name or the title, the title for a thing, "" for nothing."""
    coref = found.coref
    if pronoun in _SPEAKERS:
        return ""
    if coref.strict or pronoun in _NEUTRAL:
        return coref.resolve_pronoun()
    return coref.last_subject if coref.last_subject == coref.title else coref.last_named_subject or coref.title


def _several(phrase: Phrase) -> bool:
    """Whether a phrase says enough to be met again: not a lone common word."""
    return phrase.words > 1


def _is_readable(phrase: Phrase) -> bool:
    return phrase.words <= _MAX_WORDS and len(phrase.text) > 1
