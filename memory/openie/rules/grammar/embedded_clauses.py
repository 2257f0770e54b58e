"""Clauses inside a clause: where one ends, and whom the verb behind it is about.

"Lantern, which Ann founded, ended in 1970": it is not Ann that ended. "What Ann needs is a boat": nothing is said of Ann there.
"""

from memory.openie.rules.grammar.chunk import ADVERB, AND, BREAK, COMMA, NOUN, PREP, VERB, WHICH, Chunk
from memory.openie.rules.grammar.clause_state import FINITE, ClauseState, OuterClause
from memory.openie.rules.grammar.modality import NEGATIVE, REPORTS
from memory.openie.rules.grammar.tokenizer import word_set

_FREE_RELATIVES = word_set("what whatever who whoever whom whomever which whichever that how why")
_TIMES_AND_PLACES = word_set("when where whenever wherever")
_TOLD_IN_A_CLAUSE = word_set("reason way moment extent manner fact")
"""What is said of these is said by the clause behind them, also without a "that"."""


def begin_relative_clause(clause: ClauseState, i: int) -> None:
    """Notes that a relative clause begins at chunk `i`, right behind the subject of a verb to come, where it does."""
    if clause.verb or not clause.subjects or clause.outer is not None:
        return
    # ", with whom": the comma stands one farther.
    at = i - 2 if clause.chunks[i - 1].kind == PREP and i > 1 else i - 1
    comma, left = clause.chunks[at].kind in (COMMA, BREAK), clause.left
    if clause.lead and comma and left is not None and left.name and at > 1 and clause.chunks[at - 2].kind == COMMA:
        # "Her single, Redbird, which": the name is the single's.
        clause.outer = OuterClause([clause.left_phrase], begun_by_comma=True)
    else:
        clause.outer = OuterClause(clause.subjects, clause.lead, begun_by_comma=comma)


def begin_free_clause(clause: ClauseState, c: Chunk, i: int) -> None:
    """Notes that a clause begins with chunk `i`, `c`, that is itself the subject of a verb to come: "what she needs is"."""
    word = c.words[-1].lower()
    if i and clause.chunks[i - 1].kind == PREP:
        # "During that time".
        return
    if word in _FREE_RELATIVES or word == "whether" or word in _TIMES_AND_PLACES:
        # Nothing is said of anybody by the verb to come.
        clause.outer = OuterClause([""], verbs_touch=word in _TIMES_AND_PLACES)
    if c.kind == WHICH and word in _FREE_RELATIVES:
        # "What comes of it": who "what" is, only the rest can tell.
        clause.subjects, clause.lead = [""], ""


def begin_bare_clause(clause: ClauseState, c: Chunk, i: int) -> bool:
    """Whether the noun phrase at `i` is followed by a relative clause without its pronoun: "the lamp Ann built burned"."""
    verbs = clause.chunks[i + 2 : i + 4]
    if not verbs or verbs[0].kind != VERB or verbs[0].tag not in FINITE or clause.verb:
        return False
    if c.words[-1].lower() in _TOLD_IN_A_CLAUSE:
        clause.outer = OuterClause([""])
    elif len(verbs) > 1 and verbs[1].kind == VERB:
        clause.outer = OuterClause([clause.mention(c)])
    else:
        return False
    return True


def ends_embedded_clause(clause: ClauseState, c: Chunk, i: int) -> bool:
    """Whether the verb `c`, which is chunk `i`, is about what the embedded clause is inside of."""
    if clause.outer is None or not clause.verb or clause.prep:
        return False
    before = clause.chunks[i - 1]
    if before.kind == ADVERB and i > 1:
        before = clause.chunks[i - 2]
    if clause.outer.begun_by_comma:
        following = clause.following(i)
        listed = following is not None and following.kind in (COMMA, AND)
        finite = c.tag in FINITE or (c.tag == "VBN" and not any(v.tag in FINITE for v in clause.chunks[i + 1 :]))
        return before.kind == COMMA and finite and not listed
    if before.kind == VERB:
        return c.tag in FINITE or c.tag == "VBN"
    if clause.outer.verbs_touch or c.tag not in FINITE or COMMA in clause.since or AND in clause.since:
        return False
    return not (before.kind == NOUN and REPORTS.intersection(clause.verb.split()))


def end_embedded_clause(clause: ClauseState) -> None:
    """Go on about the subject of the clause outside."""
    assert clause.outer is not None
    clause.subjects, clause.lead = clause.outer.subjects, clause.outer.lead
    clause.outer, clause.main = None, ([], "")
    clause.verb = clause.tail = clause.relative = ""


def subject_of_participle(clause: ClauseState, c: Chunk, i: int) -> list[str]:
    """Whom the participle `c` that opens a sentence as chunk `i` is about: "Having founded Lantern, Ann moved".

    [""] where it is itself what the sentence is about ("Founding it took years"), [] where nothing tells.
    """
    comma = False
    for k, other in enumerate(clause.chunks[i + 1 : -1], i + 1):
        if other.kind == COMMA:
            comma, named = True, clause.chunks[k + 1]
            if named.kind == NOUN and clause.starts_clause(k + 1):
                return _named_subject(clause, named)
        elif other.kind == VERB and other.tag in FINITE:
            return [] if comma or c.tag != "VBG" else [""]
    return []


def _named_subject(clause: ClauseState, c: Chunk) -> list[str]:
    phrase = clause.coref.resolve(c) if c.name or c.title else ""
    # "Mackenzie" is the one whom the text is about, Peter Samuel Mackenzie.
    return [phrase] if phrase and not set(phrase.split()) <= set(clause.coref.title.split()) else []


def without_cleft(chunks: list[Chunk]) -> list[Chunk]:
    """ "It was Ann who founded it" as "Ann who founded it", and "it was in 1961 that Ann" as "in 1961 Ann"."""
    if [c.kind for c in chunks[:2]] != [NOUN, VERB] or chunks[0].words[0].lower() != "it" or chunks[1].tag != "be":
        return chunks
    # In "it was not Ann who" the "not" finds its verb by the words.
    rest = chunks[3:] if len(chunks) > 2 and chunks[2].words[0].lower() in NEGATIVE else chunks[2:]
    if len(chunks[1].words) > 1 or not rest or not (rest[0].name or rest[0].kind == PREP):
        return chunks
    for k, c in enumerate(rest[:-1]):
        if c.kind == WHICH and k and rest[k - 1].kind == NOUN and rest[k + 1].kind in (NOUN, VERB):
            return [*rest[:k], *rest[k + 1 :]] if rest[0].kind == PREP else rest
        if c.kind not in (NOUN, PREP):
            break
    return chunks
