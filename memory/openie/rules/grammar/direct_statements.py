"""Reads the direct statements of a sentence: adjacent subject, verb and complement at the beginning of a clause.

If the meaning depends on other words (a condition, a restricted subject, a verb of causing), the sentence is not read, because
a lost statement costs less than a wrong one.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from memory.openie.rules.grammar.chunk import ADVERB, AND, BREAK, CLOSE, COMMA, NOUN, OPEN, PREP, VERB, WHICH, Chunk
from memory.openie.rules.grammar.clause_state import FINITE, POSSESSIVE, ClauseState, short
from memory.openie.rules.grammar.modality import NEGATIVE
from memory.openie.rules.grammar.pos_tagger import tagger
from memory.openie.rules.grammar.tokenizer import word_set
from memory.openie.rules.triple_filter import is_short_for

_ADJECTIVES = frozenset({"JJ", "JJR", "JJS"})
_CONDITIONS = word_set("when whenever once until till unless except while whether")
_RESTRICTING = word_set(
    "only solely just sometimes usually often typically generally mostly rarely instead otherwise maybe almost"
)
_POINTING = POSSESSIVE | word_set("this that these those such another any some either both each no neither")
_CAUSING = word_set(
    "allow let enable require permit cause prevent help tell force make keep want need ask expect ensure guarantee stop see "
    "mean assume have get leave find consider call set show indicate note check"
)
"""Verbs whose object is usually the subject of the next verb or adjective: "lets the debugger read registers"."""
_ENDINGS = ("", "s", "es", "ed", "d")
_CLAUSE_OPENERS = word_set("because than if since that so though although")
_NO_COMPLEMENT = _CLAUSE_OPENERS | word_set("between among without per via")


def note_names(clause: ClauseState) -> None:
    """Notes the names in a sentence, and the abbreviations in brackets behind their words, whatever the sentence states."""
    for c, mark, inner in zip_longest(clause.chunks, clause.chunks[1:], clause.chunks[2:]):
        if c.kind == NOUN and c.name:
            clause.mention(c)
        if mark and mark.kind == OPEN and inner and inner.kind == NOUN and c.kind == NOUN:
            phrase, short_form = clause.mention(c), clause.mention(inner)
            if phrase and short_form and is_short_for(short_form, phrase):
                clause.found.add_triple(phrase, "also known as", short_form)


def read_direct(clause: ClauseState) -> None:
    """Adds the direct statements of a sentence to the triples of its passage, and notes its names and subjects."""
    note_names(clause)
    for i, (name, comma, who) in enumerate(zip(clause.chunks, clause.chunks[1:], clause.chunks[2:-1], strict=False), 3):
        is_relative = name.name and (name.kind, comma.kind, who.kind) == (NOUN, COMMA, WHICH) and who.tag == "WP"
        if is_relative and _is_finite(clause.chunks, i):
            clause.subjects = [clause.mention(name)]  # "Ann Lee, who lives in Oslo"
            _read_predicate(clause, i)
    for begin in _clause_begins(clause.chunks):
        _read_clause(clause, begin)


def _clause_begins(chunks: Sequence[Chunk]) -> Iterator[int]:
    """Yields the position of each clause's first chunk: at the beginning of the sentence, after a semicolon, after ", and", or
    after adverbs there."""
    for i in range(len(chunks)):
        before = chunks[max(i - 2, 0) : i]
        kinds = [c.kind for c in before]
        joined = kinds == [COMMA, AND] and before[-1].words != ["or"]
        opens = not i or before[-1].words == [";"] or joined or _ends_adverbial(chunks, i)
        if not opens:
            continue
        i = _behind_bracket(chunks, i)  # "[x] Ann Lee moved to Bergen"
        k = i + 3 * (_words(chunks[i : i + 3]) == ["by", "default", ","])
        while k < len(chunks) and chunks[k].kind == ADVERB and chunks[k].words[0].lower() not in _RESTRICTING:
            k += 1
        if i < k < len(chunks) and chunks[k].kind == COMMA:
            k += 1
        if k < len(chunks) and chunks[k].kind == NOUN:
            yield k


def _ends_adverbial(chunks: Sequence[Chunk], i: int) -> bool:
    """Returns whether an opening adverbial ends before `i`, and a name with a verb in the past tense follows.

    "After the war, Ann Lee led Redbird" is a fact; "On a phone, the button is hidden" depends on a condition.
    """
    if chunks[0].kind != PREP or [c.kind for c in chunks[: i - 1]] != [PREP, NOUN] or chunks[i - 1].kind != COMMA:
        return False
    verb = chunks[i + 1] if i + 1 < len(chunks) else None
    return chunks[i].name and verb is not None and tagger().lexicon.get(verb.words[0]) in ("VBD", "VBN")


def _words(chunks: Sequence[Chunk]) -> list[str]:
    return [word.lower() for c in chunks for word in c.words]


def _read_clause(clause: ClauseState, i: int) -> None:
    chunks = clause.chunks
    if chunks[i].tag == "desc" and i + 1 < len(chunks) and chunks[i + 1].kind == NOUN:
        i += 1
    c = chunks[i]
    subject = "" if c.det in _POINTING or c.owner or c.date or _may_be_verb(c) else clause.mention(c)
    if c.det == "this" and not c.pronoun and clause.mention(c) == clause.coref.title:
        subject = clause.coref.title  # "this module"
    i = _behind_bracket(chunks, i + 1)
    subjects = [subject]
    if [other.kind for other in chunks[i : i + 2]] == [AND, NOUN] and c.name and chunks[i + 1].name:
        subjects.append(clause.mention(chunks[i + 1]))
        i += 2
    verb = _next(chunks, i)
    if not all(subjects) or verb < 0 or not _is_finite(chunks, verb) or _is_conditional(chunks, i):
        return
    if not clause.main[0]:
        clause.coref.note_subject(subject, subject in clause.found.names)
    clause.subjects = subjects
    while verb >= 0:
        after = _read_predicate(clause, verb)
        shared = 0 <= after < len(chunks) - 1 and chunks[after].kind == AND and chunks[after].words == ["and"]
        follows = shared and chunks[after + 1].kind == VERB and chunks[after + 1].tag in FINITE
        verb = after + 1 if follows else -1


def _is_finite(chunks: Sequence[Chunk], i: int) -> bool:
    """Whether a finite verb is at `i`. A participle counts if the sentence has no other verb: "Ann moved to Oslo"."""
    c = chunks[i]
    return c.kind == VERB and (c.tag in FINITE or (c.tag == "VBN" and sum(other.kind == VERB for other in chunks) == 1))


def _may_be_verb(c: Chunk) -> bool:
    """Whether the first word of the sentence may be its verb: "Run scheduled jobs"."""
    return not c.start and len(c.words) == 1 and not c.title and tagger().is_base_verb(c.words[0].lower())


def _read_predicate(clause: ClauseState, verb: int) -> int:
    """Adds the statements that the finite verb at `verb` makes about the subjects. Returns the position after the last
    complement; -1 if the remaining clause is uncertain."""
    chunks, c = clause.chunks, clause.chunks[verb]
    predicate, denied = " ".join(c.words), bool(NEGATIVE.intersection(c.words))
    found: list[tuple[str, str]] = []
    if c.words[-1].endswith("ly"):
        return -1
    i, copula = _next(chunks, verb + 1), c.tag == "be"
    if 0 <= i < len(chunks) and chunks[i].kind == NOUN:
        complement = chunks[i]
        phrase = _named(clause, chunks[i - 1], complement)
        if not phrase or not _ends(chunks, i, c.words):
            return -1
        if complement.tag in _ADJECTIVES and not complement.name:
            if not copula:
                return -1
        elif not (copula and _is_loose(complement)):
            found.append((predicate, phrase))
        predicate, i = f"{predicate} {short(complement)}", _behind_bracket(chunks, i + 1)
    if 0 <= i < len(chunks) - 1 and chunks[i].kind == PREP and not _NO_COMPLEMENT.intersection(chunks[i].words):
        complement = chunks[i + 1]
        stands = complement.kind == NOUN and not clause.starts_clause(i + 1)
        phrase = _named(clause, chunks[i], complement) if stands else ""
        if phrase and _ends(chunks, i + 1, c.words):
            found.append((f"{predicate} {' '.join(chunks[i].words)}", phrase))
        i = i + 2 if phrase else -1
    elif 0 <= i < len(chunks) and chunks[i].kind == PREP:
        i = -1
    whole = not 0 <= i < len(chunks) or chunks[i].kind in (COMMA, BREAK, AND, OPEN)
    for said, object_ in found[-1:] if denied else found:
        if whole or not denied:
            for subject in clause.subjects:
                clause.found.add_triple(subject, said, object_, near=True)
    return i


def _named(clause: ClauseState, before: Chunk, c: Chunk) -> str:
    """Returns the phrase of a complement directly after `before`; "" if it is a pronoun or has an owner."""
    # The chunk of a title does not include its article.
    if c.pronoun or c.owner or c.tag == "desc" or c.start - before.end > c.title:
        return ""
    return clause.mention(c)


def _is_loose(c: Chunk) -> bool:
    """Whether "is" with a bare noun is ambiguous: "is server side", "are file system dependent"."""
    return not c.det and not c.name and c.tag != "NNS"


def _ends(chunks: Sequence[Chunk], i: int, verb: Sequence[str]) -> bool:
    """Whether the verb's complement at `i` is complete and adjacent to the next chunk."""
    following = chunks[i + 1] if i + 1 < len(chunks) else None
    adjacent = following is None or (following.start == chunks[i].end and following.kind != NOUN)
    return adjacent and is_complete(chunks, i, verb)


def is_complete(chunks: Sequence[Chunk], i: int, verb: Sequence[str]) -> bool:
    """Whether the words after the verb's complement at `i` leave its meaning unchanged."""
    if i + 1 == len(chunks):
        return True
    following = chunks[i + 1]
    if following.kind == OPEN:
        behind = _behind_bracket(chunks, i + 1)
        return behind >= len(chunks) or chunks[behind].kind != NOUN  # "Rapid Tool (RT) editor"
    if following.kind == NOUN:
        return following.tag not in _ADJECTIVES or not following.text.isalpha()
    if following.kind == ADVERB:
        return following.words[0].lower() not in _RESTRICTING
    copula = verb[-1] in ("is", "are", "was", "were")
    if following.tag == "VBG" and _is_noun(chunks, i + 2) and (copula or _is_loose(chunks[i])):
        return False  # "is a machine learning format", "supports multi-level collating elements"
    if following.kind == VERB:
        return following.tag not in FINITE and not _causes(verb)
    if following.kind == PREP and following.words[0] in ("out", "off"):
        return False  # "takes Redbird out of service"
    if following.kind == PREP and _causes(verb):
        return following.words[0] not in ("from", "to", "as")
    return following.kind != PREP or following.words[0] not in _CLAUSE_OPENERS


def _is_noun(chunks: Sequence[Chunk], i: int) -> bool:
    return i < len(chunks) and chunks[i].kind == NOUN


def _causes(verb: Sequence[str]) -> bool:
    return any(word.removesuffix(ending) in _CAUSING for word in verb for ending in _ENDINGS)


def _next(chunks: Sequence[Chunk], i: int) -> int:
    """Returns the position of the first chunk from `i` on that is not an adverb; -1 if an adverb restricts the statement."""
    while i < len(chunks) and chunks[i].kind == ADVERB:
        if chunks[i].words[0].lower() in _RESTRICTING:
            return -1
        i += 1
    return i if i < len(chunks) else -1


def _behind_bracket(chunks: Sequence[Chunk], i: int) -> int:
    if i < len(chunks) and chunks[i].kind == OPEN:
        return next((k + 1 for k in range(i, len(chunks)) if chunks[k].kind == CLOSE), i)
    return i


def _is_conditional(chunks: Sequence[Chunk], i: int) -> bool:
    """Whether a condition follows in this clause, except inside a relative clause."""
    for c in chunks[i:]:
        word = c.words[-1].lower()
        if word in _CONDITIONS:
            return True
        if c.kind == WHICH or c.words == [";"]:
            return False
    return False
