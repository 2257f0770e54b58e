"""What stands in brackets after a name: dates of birth and death, other names, facts without a subject."""

from collections.abc import Sequence
from itertools import zip_longest

from memory.openie.rules.grammar.chunk import NOUN, PREP, VERB, Chunk
from memory.openie.rules.grammar.clause_state import ClauseState
from memory.phrase_normalisation import normalise_phrase


def read_bracket(clause: ClauseState, inner: Sequence[Chunk]) -> None:
    """Add what is said between brackets of the name before them."""
    subject = clause.subjects[0] if clause.subjects and not clause.verb and not clause.lead else clause.left_phrase
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
        elif c.name or len(nouns) == 1:
            clause.found.add_triple(subject, "also known as", clause.mention(c))


def _counted(c: Chunk) -> tuple[str, str] | None:
    """ "population 200,000": what is counted, and the number."""
    at = next((k for k, word in enumerate(c.words) if word[0].isdigit() or word[0] in "$€£"), 0)
    if not at or not all(word.islower() and len(word) > 2 for word in c.words[:at]):
        return None
    return " ".join(c.words[:at]), normalise_phrase(" ".join(c.words[at:]))


def _facts(clause: ClauseState, subject: str, inner: Sequence[Chunk]) -> None:
    """ "(born 2 May 1904 in Oslo)": the name is the subject of each verb."""
    predicate, prep = "", ""
    for c in inner:
        if c.kind == VERB:
            predicate, prep = " ".join(c.words), ""
        elif c.kind == PREP:
            prep = " ".join(c.words)
        elif c.kind == NOUN and predicate:
            clause.found.add_triple(subject, f"{predicate} {prep}", clause.mention(c))
