"""Finds the ends of embedded clauses, and the subject of the verb that follows an embedded clause.

"Lantern, which Ann founded, ended in 1970" states that Lantern ended, not Ann. "What Ann needs is a boat" states nothing about
Ann.
"""

from memory.openie.rules.grammar.chunk import ADVERB, AND, BREAK, COMMA, NOUN, PREP, VERB, WHICH, Chunk
from memory.openie.rules.grammar.clause_state import FINITE, ClauseState, OuterClause
from memory.openie.rules.grammar.modality import NEGATIVE, REPORTS
from memory.openie.rules.grammar.tokenizer import word_set

_FREE_RELATIVES = word_set("what whatever who whoever whom whomever which whichever that how why")
_TIMES_AND_PLACES = word_set("when where whenever wherever")
_TOLD_IN_A_CLAUSE = word_set("reason way moment extent manner fact")
"""Nouns that a clause without "that" may follow and explain."""


def begin_relative_clause(clause: ClauseState, i: int) -> None:
    """Records a relative clause that begins at chunk `i`, if it directly follows the subject of a later verb."""
    if clause.verb or not clause.subjects or clause.outer is not None:
        return
    # Before ", with whom", the comma is one chunk earlier.
    at = i - 2 if clause.chunks[i - 1].kind == PREP and i > 1 else i - 1
    comma, left = clause.chunks[at].kind in (COMMA, BREAK), clause.left
    if clause.lead and comma and left is not None and left.name and at > 1 and clause.chunks[at - 2].kind == COMMA:
        # "Her single, Redbird, which": "Redbird" is the single's name.
        clause.outer = OuterClause([clause.left_phrase], begun_by_comma=True)
    else:
        clause.outer = OuterClause(clause.subjects, clause.lead, begun_by_comma=comma)


def begin_free_clause(clause: ClauseState, c: Chunk, i: int) -> None:
    """Records a clause that begins with `c`, chunk `i`, and is itself the subject of a later verb: "what she needs is"."""
    word = c.words[-1].lower()
    if i and clause.chunks[i - 1].kind == PREP:
        # "During that time": no clause begins.
        return
    if word in _FREE_RELATIVES or word == "whether" or word in _TIMES_AND_PLACES:
        # The later verb states nothing about a named subject.
        clause.outer = OuterClause([""], verbs_touch=word in _TIMES_AND_PLACES)
    if c.kind == WHICH and word in _FREE_RELATIVES:
        # "What comes of it": the subject "what" has no known referent.
        clause.subjects, clause.lead = [""], ""


def begin_bare_clause(clause: ClauseState, c: Chunk, i: int) -> bool:
    """Whether a relative clause without a pronoun follows the noun phrase at `i`: "the lamp Ann built burned"."""
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
    """Whether the verb `c`, chunk `i`, belongs to the clause that contains the embedded clause."""
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
    """Returns to the subject of the outer clause."""
    assert clause.outer is not None
    clause.subjects, clause.lead = clause.outer.subjects, clause.outer.lead
    clause.outer, clause.main = None, ([], "")
    clause.verb = clause.tail = clause.relative = ""


def subject_of_participle(clause: ClauseState, c: Chunk, i: int) -> list[str]:
    """Returns the subject of the participle `c`, chunk `i`, that opens a sentence: "Having founded Lantern, Ann moved".

    Returns [""] if the participle itself is the subject of the sentence ("Founding it took years"), and [] if the subject is
    unknown.
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
    # "Mackenzie" is the topic of the text, Peter Samuel Mackenzie.
    return [phrase] if phrase and not set(phrase.split()) <= set(clause.coref.title.split()) else []


def without_cleft(chunks: list[Chunk]) -> list[Chunk]:
    """Turns "It was Ann who founded it" into "Ann who founded it", and "it was in 1961 that Ann" into "in 1961 Ann"."""
    if [c.kind for c in chunks[:2]] != [NOUN, VERB] or chunks[0].words[0].lower() != "it" or chunks[1].tag != "be":
        return chunks
    # In "it was not Ann who", the words show which verb the "not" belongs to.
    rest = chunks[3:] if len(chunks) > 2 and chunks[2].words[0].lower() in NEGATIVE else chunks[2:]
    if len(chunks[1].words) > 1 or not rest or not (rest[0].name or rest[0].kind == PREP):
        return chunks
    for k, c in enumerate(rest[:-1]):
        if c.kind == WHICH and k and rest[k - 1].kind == NOUN and rest[k + 1].kind in (NOUN, VERB):
            return [*rest[:k], *rest[k + 1 :]] if rest[0].kind == PREP else rest
        if c.kind not in (NOUN, PREP):
            break
    return chunks
