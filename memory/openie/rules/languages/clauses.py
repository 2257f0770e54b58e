"""Subject, verb and object of sentences whose words have their parts of speech.

One reader for languages in which the verb stands between subject and object, or second (German, Dutch). It keeps to what is
plain: a clause with one finite verb, a subject that is a noun phrase or a pronoun, objects with the preposition before them.
What hangs on another clause ("weil", "qui", "如果") is left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from memory.openie.rules.grammar.tokenizer import word_set
from memory.openie.rules.languages import words as w
from memory.openie.rules.languages.words import Phrase, Statement, Word, joined

MAX_OBJECTS = 4
"""Of one verb."""

_WITHIN = frozenset({w.ADJECTIVE, w.NUMBER, w.NOUN, w.NAME})
_VERBS = frozenset({w.VERB, w.AUXILIARY})
_UNFINISHED = word_set(
    """
    wird werden kann können muss müssen soll sollen darf dürfen peut peuvent doit doivent va vont puede pueden debe deben
    può possono deve devono pode podem devem kan kunnen moet moeten zal zullen 能 能够 可以 可 会 应 应该 应当 必须 将
    """
)
"""Auxiliaries that say nothing without another verb; where there is none it was not found."""
MAX_VERB_WORDS = 5
"""Of a predicate; a longer one was put together from several clauses."""
_PARTITIVE = frozenset({"des", "du"})


@dataclass(frozen=True, slots=True)
class Style:
    """How a language builds its clauses."""

    joint: str = " "
    """What stands between the words of a phrase."""
    verb_second: bool = False
    """The subject may follow the verb, as something else has the first place."""
    modifiers_first: bool = False
    """Everything that describes a noun stands before it (Chinese)."""


@dataclass(slots=True)
class _Item:
    kind: str
    text: str = ""
    phrase: Phrase | None = None
    preposition: str = ""


@dataclass(slots=True)
class _Clause:
    before: list[_Item] = field(default_factory=list)
    after: list[_Item] = field(default_factory=list)
    verb: list[str] = field(default_factory=list)
    full: bool = False
    """The verb has a meaning of its own: more than an auxiliary has been read."""


def read_clauses(sentence: Sequence[Word], style: Style) -> Iterator[Statement]:
    """What the sentence states, in order."""
    subject: Phrase | None = None
    for clause in _clauses(_items(sentence, style), style):
        own = _subject(clause, style)
        subject = own or subject  # "gründete Debian und studierte in Köln" goes on with the same
        if subject:
            yield from _statements(clause, subject)


def _items(sentence: Sequence[Word], style: Style) -> list[_Item]:
    """Noun phrases with their prepositions, parts of verbs, and what parts clauses; without what is subordinate."""
    items: list[_Item] = []
    preposition = ""
    skipping = False
    i = 0
    while i < len(sentence):
        word = sentence[i]
        if word.tag in (w.COMMA, w.MARK):
            skipping, preposition = False, ""
            items.append(_Item(word.tag))
        elif word.tag == w.SUBORDINATOR:
            skipping = True
            items.append(_Item(w.SUBORDINATOR))
        elif skipping:
            pass
        elif word.tag in _WITHIN or word.tag == w.DETERMINER:
            phrase, i = _noun_phrase(sentence, i, style)
            if phrase:
                items.append(_Item("phrase", phrase=phrase, preposition=preposition))
            preposition = ""
            continue
        elif word.tag == w.OF and style.modifiers_first:
            # "由志愿者组成的系统": what ends here describes the noun that follows.
            while items and items[-1].kind not in (w.AUXILIARY, w.COMMA, w.MARK):
                items.pop()
            preposition = ""
        elif (
            word.tag == w.OF and word.text.lower() in _PARTITIVE and items and items[-1].kind in (w.NONFINITE, *_VERBS)
        ):
            preposition = ""  # "installe des paquets"
        elif word.tag in (w.PREPOSITION, w.OF):
            preposition = f"{preposition} {word.text.lower()}".strip()
        elif word.tag != w.ADVERB:
            preposition = "" if word.tag != w.PARTICLE else preposition
            pronoun = Phrase(word.text.lower(), False, 0) if word.tag == w.PRONOUN else None
            items.append(_Item(word.tag, word.text.lower(), pronoun))
        i += 1
    return items


def _noun_phrase(sentence: Sequence[Word], i: int, style: Style) -> tuple[Phrase | None, int]:
    """The phrase that begins at `i`, without its determiner, and where it ends; None where no noun comes."""
    parts: list[Word] = []
    heads = 0
    while i < len(sentence):
        word = sentence[i]
        following = sentence[i + 1].tag if i + 1 < len(sentence) else ""
        if word.tag == w.DETERMINER:
            if heads:
                break
        elif word.tag in _WITHIN:
            if heads and word.tag == w.ADJECTIVE and style.verb_second:
                break
            if word.tag == w.NAME and parts and parts[-1].tag == w.NUMBER and not heads:
                break  # "nel 1902 Emilio Strand": the year is a phrase by itself
            parts.append(word)
            heads += word.tag in (w.NOUN, w.NAME)
        elif word.tag == w.OF and heads and (following in _WITHIN or following == w.DETERMINER):
            parts.append(word)
            if following == w.DETERMINER:
                i += 1
                parts.append(sentence[i])
        else:
            break
        i += 1
    while parts and parts[-1].tag in (w.OF, w.DETERMINER):
        parts.pop()
    if not parts:
        return None, i
    text = style.joint.join(part.text for part in parts) if style.joint else joined(parts)
    content = sum(part.tag in _WITHIN for part in parts)
    if not heads:
        number = any(part.tag == w.NUMBER for part in parts)
        return (Phrase(text, False, content, number=True), i) if number else (None, i)
    return Phrase(text, any(part.tag == w.NAME for part in parts), content), i


def _clauses(items: list[_Item], style: Style) -> Iterator[_Clause]:
    """Stretches with one finite verb each: between two verbs, what last parts them begins the second clause."""
    verbs = [i for i, item in enumerate(items) if item.kind in _VERBS]
    # Two finite verbs side by side are one ("kann ... sein"): the first is what the clause turns on.
    verbs = [at for n, at in enumerate(verbs) if not n or _parting(items, verbs[n - 1], at) is not None]
    start = 0
    for n, at in enumerate(verbs):
        end = len(items)
        if n + 1 < len(verbs):
            parting = _parting(items, at, verbs[n + 1])
            end = parting if parting is not None else verbs[n + 1]
        clause = _Clause(before=_last_stretch(items[start:at]))
        clause.verb.append(items[at].text)
        clause.full = items[at].kind == w.VERB
        for item in items[at + 1 : end]:
            if item.kind == w.MARK or (item.kind == w.COMMA and style.modifiers_first):
                break
            if item.kind in (w.NONFINITE, w.PARTICLE, *_VERBS):
                if _is_of_another(item, clause, style):
                    break
                clause.verb.append(item.text)
                clause.full = clause.full or (item.kind != w.AUXILIARY and item.kind != w.PARTICLE)
            else:
                clause.after.append(item)
        clause.verb[:0] = [item.text for item in clause.before if item.kind == w.PARTICLE]
        yield clause
        start = end


def _is_of_another(item: _Item, clause: _Clause, style: Style) -> bool:
    """Whether a part of a verb that comes after an object or a comma belongs to what follows: "zu ändern", "utilisant"."""
    if style.verb_second:
        # The participle and the separated prefix come last; after a comma there is another clause.
        return clause.full and item.kind == w.NONFINITE and any(each.kind == w.COMMA for each in clause.after)
    if any(each.phrase and not each.preposition for each in clause.after):
        return item.kind != w.PARTICLE or style.modifiers_first
    return clause.full and bool(clause.after)


def _parting(items: list[_Item], first: int, second: int) -> int | None:
    """Where the clause of the second verb begins."""
    for i in range(second - 1, first, -1):
        if items[i].kind in (w.COMMA, w.MARK, w.CONJUNCTION):
            return i
    return None


def _last_stretch(items: list[_Item]) -> list[_Item]:
    for i in range(len(items) - 1, -1, -1):
        if items[i].kind == w.MARK:
            return items[i + 1 :]
    return items


def _subject(clause: _Clause, style: Style) -> Phrase | None:
    """The clause's own subject. One after the verb is taken out of `after`."""
    before = [item for item in clause.before if item.kind in ("phrase", w.PRONOUN, w.SUBORDINATOR)]
    bare = [item for item in before if not item.preposition and _can_be_subject(item)]
    if bare:
        apposition = clause.before[-1].kind == w.COMMA
        chosen = bare[0] if apposition else bare[-1]
        return chosen.phrase
    if not (style.verb_second and before):
        return None
    for item in clause.after:
        if not item.preposition and _can_be_subject(item):
            clause.after.remove(item)
            return item.phrase
        if item.kind == w.COMMA:
            break
    return None


def _can_be_subject(item: _Item) -> bool:
    return item.phrase is not None and not item.phrase.number


def _statements(clause: _Clause, subject: Phrase) -> Iterator[Statement]:
    verb = " ".join(clause.verb)
    if verb in _UNFINISHED or len(clause.verb) > MAX_VERB_WORDS:
        return
    placed = [item for item in clause.before if item.phrase and item.preposition]
    direct_taken = listed = False
    count = 0
    for item in [*clause.after, *placed]:
        if item.phrase is None or not item.phrase.words:
            listed = item.kind in (w.COMMA, w.CONJUNCTION) and direct_taken
            if item.kind == w.COMMA and not direct_taken:
                return
            continue
        bare = not item.preposition
        if bare and direct_taken and not listed and not item.phrase.number:
            continue
        predicate = verb if bare else f"{verb} {item.preposition}"
        yield Statement(subject, predicate, item.phrase, direct=bare)
        direct_taken = direct_taken or (bare and not item.phrase.number)
        count += 1
        if count >= MAX_OBJECTS:
            return
