"""Reads the text in brackets after a name: dates of birth and death, other names, facts without a subject."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import zip_longest

from memory.openie.rules.grammar.chunk import NOUN, PREP, VERB, Chunk
from memory.openie.rules.grammar.clause_state import ClauseState
from memory.openie.rules.grammar.tokenizer import word_set
from memory.openie.rules.triple_filter import is_short_for
from memory.phrase_normalisation import normalise_phrase

_OTHER_NAME = word_set(
    "also formerly originally previously or aka a.k.a née nee alias later now sometimes called known abbreviated"
)
_SHORTENED = 6
"""Maximum number of letters of an abbreviation."""
_ALIKE = 0.6
"""Minimum share of equal letters in two spellings of a name ("Western Park", "Westerpark")."""
_COMPARED_CHARS = 60
"""Longer names are not compared by letters: the time is proportional to the product of their lengths."""


def read_bracket(clause: ClauseState, inner: Sequence[Chunk]) -> None:
    """Adds what the text in brackets states about the name before it."""
    subject = clause.subjects[0] if clause.subjects and not clause.verb and not clause.lead else clause.left_phrase
    # "(English: The Quiet Sea)", "(formerly Bluebird)"
    is_other_name = any(c.words == [":"] or _OTHER_NAME.intersection(word.lower() for word in c.words) for c in inner)
    inner = [c for c, after in zip_longest(inner, inner[1:]) if after is None or after.words != [":"]]
    if not subject:
        return
    if any(c.kind == VERB for c in inner):
        _facts(clause, subject, inner)
        return
    nouns = [c for c in inner if c.kind == NOUN]
    dates = [c for c in nouns if c.date and any(word[0].isdigit() for word in c.words)]
    if len(dates) == 2 and len(nouns) == 2:
        clause.found.add_triple(subject, "born", normalise_phrase(dates[0].text))
        clause.found.add_triple(subject, "died", normalise_phrase(dates[1].text))
        return
    for c in nouns:
        if c.date:
            clause.found.add_triple(subject, "date", clause.mention(c))
        elif len(nouns) == 1 and (counted := _counted(c)) is not None:
            clause.found.add_triple(subject, *counted)
        elif (c.name or len(nouns) == 1) and (phrase := clause.mention(c)):
            if (is_other_name and not dates) or _is_alike(subject, phrase):
                clause.found.add_triple(subject, "also known as", phrase)
            else:
                clause.found.add_mention(subject, phrase)


def _is_alike(name: str, other: str) -> bool:
    """Whether one name may be another form of the other: its initials, some of its letters in order, or mostly equal
    letters."""
    if is_short_for(other, name) or is_short_for(name, other):
        return True
    short, long = sorted((name.replace(" ", ""), other.replace(" ", "")), key=len)
    rest = iter(long)
    if len(short) <= _SHORTENED and short[0] == long[0] and all(letter in rest for letter in short):
        return True
    if max(len(name), len(other)) > _COMPARED_CHARS:
        return False
    return SequenceMatcher(None, name, other, autojunk=False).ratio() >= _ALIKE


def _counted(c: Chunk) -> tuple[str, str] | None:
    """Splits "population 200,000" into noun and number; returns None for any other phrase."""
    at = next((k for k, word in enumerate(c.words) if word[0].isdigit() or word[0] in "$€£"), 0)
    if not at or not all(word.islower() and len(word) > 2 for word in c.words[:at]):
        return None
    return " ".join(c.words[:at]), normalise_phrase(" ".join(c.words[at:]))


def _facts(clause: ClauseState, subject: str, inner: Sequence[Chunk]) -> None:
    """Adds the facts in "(born 2 May 1904 in Oslo)": the name is the subject of each verb."""
    predicate, prep = "", ""
    for c in inner:
        if c.kind == VERB:
            predicate, prep = " ".join(c.words), ""
        elif c.kind == PREP:
            prep = " ".join(c.words)
        elif c.kind == NOUN and predicate:
            clause.found.add_triple(subject, f"{predicate} {prep}", clause.mention(c))
