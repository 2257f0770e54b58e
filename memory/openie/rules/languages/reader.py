"""Reads prose of a language that has a tagger here: its names, and what its sentences state."""

from collections.abc import Callable, Iterator, Sequence

from memory.openie.rules.languages.chinese import chinese_sentences
from memory.openie.rules.languages.clauses import Style, read_clauses
from memory.openie.rules.languages.german import tag_german
from memory.openie.rules.languages.sentences import split_sentences
from memory.openie.rules.languages.words import Phrase, Statement, Word, names_of
from memory.openie.rules.triple_collector import TripleCollector
from memory.phrase_normalisation import normalise_phrase

_TAGGERS: dict[str, tuple[Callable[[Sequence[str]], list[Word]], Style]] = {
    "de": (tag_german, Style(verb_second=True)),
}
_CHINESE = Style(joint="", modifiers_first=True)

LANGUAGES = frozenset({*_TAGGERS, "zh"})
"""Languages whose sentences are read, by the detector's codes."""

_NEUTRAL = frozenset({"es", "het"})
"""Pronouns for things alone: they mean the title rather than the person who was named last."""
_MAX_WORDS = 8
"""Words of a phrase that say something; a longer one was read wrongly."""


def read_language(text: str, code: str, found: TripleCollector) -> None:
    """Puts what the prose names and states into `found`. `code` is one of `LANGUAGES`."""
    for sentence, asked, style in _sentences(text, code):
        for name in names_of(sentence, style.joint or " "):
            found.add_name(normalise_phrase(name))
        if not asked:
            for statement in read_clauses(sentence, style):
                _take(statement, found)


def _sentences(text: str, code: str) -> Iterator[tuple[list[Word], bool, Style]]:
    if code == "zh":
        for words, asked in chinese_sentences(text):
            yield words, asked, _CHINESE
        return
    tag, style = _TAGGERS[code]
    for sentence in split_sentences(text, code):
        yield tag(sentence), sentence[-1] == "?", style


def _take(statement: Statement, found: TripleCollector) -> None:
    """Takes a statement of which both ends can be met again: one is a name or the title, the other says something."""
    coref = found.coref
    if not statement.subject.words:
        subject, named = _meant(statement.subject.text, found), True
    else:
        subject = normalise_phrase(statement.subject.text)
        named = statement.subject.name or subject == coref.title
    object_ = normalise_phrase(statement.object.text)
    if not subject or not object_ or not (_is_readable(statement.object) and _is_readable(statement.subject)):
        return
    told = statement.object.name or object_ == coref.title or statement.object.number
    if found.technical:
        # Manuals: only what is said outright of something with a name.
        if not named or not statement.direct or statement.object.number:
            return
    elif not (named or told or _several(statement.object)):
        return
    found.add_triple(subject, statement.predicate, object_, near=statement.direct)
    coref.note_subject(subject, named)


def _meant(pronoun: str, found: TripleCollector) -> str:
    """What a pronoun means: the last subject that was a name or the title; the title where it is no person's pronoun."""
    coref = found.coref
    if found.technical or pronoun in _NEUTRAL:
        return coref.resolve_pronoun()
    return coref.last_subject if coref.last_subject == coref.title else coref.last_named_subject or coref.title


def _several(phrase: Phrase) -> bool:
    """Whether a phrase says enough to be met again: not a lone common word."""
    return phrase.words > 1


def _is_readable(phrase: Phrase) -> bool:
    return phrase.words <= _MAX_WORDS and len(phrase.text) > 1
