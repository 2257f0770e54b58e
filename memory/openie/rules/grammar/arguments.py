"""Determines the role of a noun phrase in its sentence: subject, object, complement of a preposition, or another name of the
previous phrase."""

from memory.openie.rules.grammar.chunk import AND, BREAK, COMMA, NOUN, PREP, VERB, WHICH, Chunk
from memory.openie.rules.grammar.clause_state import FINITE, POSSESSIVE, ClauseState, short
from memory.openie.rules.grammar.direct_statements import is_complete
from memory.openie.rules.grammar.embedded_clauses import begin_bare_clause
from memory.openie.rules.grammar.modality import NEGATIVE
from memory.openie.rules.grammar.tokenizer import word_set
from memory.phrase_normalisation import normalise_phrase

_SUFFIXES = word_set("inc ltd llc llp plc corp co gmbh ag sa jr sr phd ph.d md m.d esq obe cbe mbe kbe")
_ADJECTIVE_OR_ADVERB = frozenset({"JJ", "JJR", "JJS", "RB"})
_PLACE = frozenset({"in", "at", "from", "near", "to", "of", "around", "outside"})


def place_noun(clause: ClauseState, c: Chunk, i: int) -> None:
    """Adds the noun phrase `c`, chunk `i`, to the clause."""
    if _belongs_to_last(clause, c, i):
        return
    following = clause.following(i)
    phrase = clause.mention(c)
    plain = not c.name and not c.date and not c.pronoun and phrase != clause.coref.title
    if following is not None and plain and following.kind == NOUN and following.name and following.start <= c.end + 1:
        if begin_bare_clause(clause, c, i):
            return
        if clause.copula and clause.is_direct() and clause.starts_clause(i + 1):
            # "Bonn is the city Ann was born in" does not state that Ann is a city.
            _object(clause, c, phrase, i)
            clause.verb, clause.tail, clause.subjects = "", "", []
            return
        if not _ends_adverbial(clause, i):
            _described(clause, c, following)
            return
        if phrase:
            _prepositional(clause, c, phrase, i)
        clause.prep = ""
        return
    if not phrase:
        _weak(clause, c)
        return
    if clause.relative and not clause.verb and WHICH in clause.since and following and following.kind == VERB:
        _object_relative(clause, phrase, following)
        return
    if clause.prep:
        _prepositional(clause, c, phrase, i)
    elif clause.verb and (COMMA in clause.since or AND in clause.since) and not clause.is_direct():
        _coordinated(clause, c, phrase, i)
    elif clause.verb:
        _object(clause, c, phrase, i)
    elif clause.subjects and clause.left is not None and (COMMA in clause.since or AND in clause.since):
        _beside_subject(clause, c, phrase, i)
    else:
        _subject(clause, c, phrase)
    clause.left, clause.left_phrase = c, phrase


def _belongs_to_last(clause: ClauseState, c: Chunk, i: int) -> bool:
    """Whether the noun phrase is a part of the previous one: "Ann herself", "in spring 1997", "Redbird, Inc."."""
    before = clause.chunks[i - 1] if i else c
    if before.kind == COMMA and clause.left is not None and clause.left.name and c.text.lower().strip(".") in _SUFFIXES:
        return True
    if before.kind != NOUN or before.end != c.start:
        return False
    if c.pronoun and c.text.endswith(("self", "selves")):
        return True
    if not (before.date and clause.adverbials) or clause.subjects:
        return False
    # In "According to 2006 Census Bureau estimates, Bonn", the date and the estimates are one adverbial.
    whole = c.date or clause.adverbials[-1][0] == "according to"
    following = clause.following(i)
    return whole and following is not None and following.kind == COMMA


def _ends_adverbial(clause: ClauseState, i: int) -> bool:
    """Whether chunk `i` ends a prepositional phrase that opens its clause. In "After the storm Ann Lee left", the name is then
    the verb's subject."""
    if not clause.prep or clause.verb or clause.subjects:
        return False
    ahead = i + 1
    while ahead + 2 < len(clause.chunks) and [c.kind for c in clause.chunks[ahead + 1 : ahead + 3]] == [AND, NOUN]:
        ahead += 2
    return clause.starts_clause(ahead)


def _subject(clause: ClauseState, c: Chunk, phrase: str) -> None:
    clause.subjects, clause.lead = [phrase], ""
    owner = clause.whose or clause.owner(c)
    clause.whose = ""
    if owner:
        clause.subjects, clause.lead = [owner], c.text
    elif clause.coref.strict or clause.coref.is_common:
        return
    elif c.det == "the" and not c.name and not c.date and clause.coref.title and phrase != clause.coref.title:
        clause.subjects, clause.lead = [clause.coref.resolve_pronoun()], c.text


def _beside_subject(clause: ClauseState, c: Chunk, phrase: str, i: int) -> None:
    if AND not in clause.since and c.pronoun:
        # "A physicist by training, he ...": the opening phrase describes the subject.
        clause.found.add_triple(phrase, "is", clause.subjects[0])
        clause.subjects, clause.lead = [phrase], ""
    elif subject := _described_further(clause, c, i):
        clause.found.add_triple(subject, "is", phrase)
        clause.appositive = (subject, c.text)
    elif AND not in clause.since and c.name and clause.lead and clause.left is not None and not clause.left.det:
        # "Holm & Sons, whose founder, Peter Holm, drowned": the founder is Peter Holm, and Peter Holm drowned.
        for owner in clause.subjects:
            clause.found.add_triple(owner, clause.lead, phrase)
        clause.subjects, clause.lead = [phrase], ""
    elif AND in clause.since or clause.is_listed(i):
        clause.subjects = [*clause.subjects, phrase]
    elif not _appose(clause, c, phrase) and not c.date:
        # "Richard Wesley, 1st Baron Mornington, was": no list follows, so both phrases name one person.
        clause.found.add_triple(clause.subjects[0], "is", phrase)
        if not c.name:
            clause.appositive = (clause.subjects[0], c.text)


def _described_further(clause: ClauseState, c: Chunk, i: int) -> str:
    """Returns the person with two descriptions joined by "and": "Bo Ek, son of Carl Ek and brother of Ida Ek, was". Returns ""
    for a list."""
    if c.name or c.pronoun or not _is_of(clause, i):
        return ""
    if AND in clause.since:
        return clause.appositive[0] if clause.appositive else ""
    if clause.left is None or not clause.left.name or len(clause.subjects) != 1 or clause.lead:
        return ""
    joined = next((k for k, b in enumerate(clause.chunks) if k > i and b.kind in (AND, VERB, WHICH, BREAK)), 0)
    more = clause.chunks[joined + 1 : joined + 2]
    return (
        clause.subjects[0] if more and more[0].kind == NOUN and not more[0].name and _is_of(clause, joined + 1) else ""
    )


def _is_of(clause: ClauseState, i: int) -> bool:
    following = clause.following(i)
    return following is not None and following.kind == PREP and following.words == ["of"]


def _object(clause: ClauseState, c: Chunk, phrase: str, i: int) -> None:
    owner = clause.owner(c)
    predicate = clause.predicate(tail=False)
    if c.tag not in ("JJ", "JJR", "JJS") or c.name:
        clause.say(predicate, phrase, near=clause.is_direct() and _is_beside(clause, i) and not _loose(clause, c))
    if owner:
        clause.say(f"{predicate} {c.text} of", owner, near=False)
    clause.last_predicate, clause.by_prep = predicate, False
    clause.objects += 1
    clause.tail = short(c)
    if clause.copula and not c.name and clause.subjects[:1] == [clause.coref.title]:
        clause.coref.note_kind(c.words)


def _is_beside(clause: ClauseState, i: int) -> bool:
    """Whether the noun phrase at `i` directly follows its verb or preposition, and is complete."""
    if (
        i > 1
        and clause.chunks[i - 1].kind == PREP
        and (clause.chunks[i - 2].kind == COMMA or clause.chunks[i - 2].pronoun)
    ):
        return False  # "means, for a book, the page itself", "puts them into a book"
    following = clause.following(i)
    if i > 1 and clause.chunks[i - 1].kind == AND and clause.chunks[i - 2].kind == PREP:
        return False  # "relates to or controls zones"
    denied = not NEGATIVE.isdisjoint(clause.verb.split())
    if denied and following is not None and (following.kind == WHICH or following.tag == "VBG"):
        return False  # "does not load files that contain labels"
    if clause.by_participle:
        # "The file named by the user opens": a participle after a noun other than the subject may describe other nouns. Before
        # a noun, it is an adjective ("The Oslo managed cache is").
        of_prep = bool(i) and clause.chunks[i - 1].kind == PREP
        return of_prep and following is not None and following.kind == VERB and following.tag in FINITE
    return is_complete(clause.chunks, i, clause.verb.split())


def _loose(clause: ClauseState, c: Chunk) -> bool:
    """Whether "is" with a bare noun is ambiguous: "is server side", "are file system dependent"."""
    return clause.copula and clause.coref.strict and not c.det and not c.name and c.tag != "NNS"


def _prepositional(clause: ClauseState, c: Chunk, phrase: str, i: int) -> None:
    prep, clause.prep = clause.prep, ""
    owner = clause.owner(c)
    if clause.appositive:
        subject, description = clause.appositive
        clause.found.add_triple(subject, f"is {description} {prep}", phrase)
        if prep == "of" and " " not in phrase and not c.name:
            clause.found.add_triple(subject, "is", normalise_phrase(f"{description} of {phrase}"))
        clause.last_predicate = f"is {description} {prep}"
        return
    if clause.verb:
        left = clause.left
        nested = clause.by_prep and clause.since == [PREP]
        role = clause.last_predicate.endswith(" as")
        if nested and left is not None and not left.date and (role or (not left.name and prep in ("of", "in"))):
            predicate = f"{clause.last_predicate} {left.text} {prep}"
        else:
            predicate = f"{clause.predicate()} {prep}"
        # Of several prepositions, only the first belongs to the verb for sure.
        whole = c.tag not in _ADJECTIVE_OR_ADVERB or "-" not in c.words[-1]  # "by a query-specific set"
        clause.say(
            predicate, phrase, near=whole and _is_beside(clause, i) and not clause.by_prep and clause.objects < 2
        )
        if owner:
            clause.say(f"{predicate} {c.text} of", owner, near=False)
        clause.last_predicate, clause.by_prep = predicate, True
        clause.objects += 1
        if (
            clause.left is not None
            and clause.left.name
            and c.name
            and prep in ("of", "in", "at", "from")
            and clause.since == [PREP]
        ):
            clause.found.add_triple(clause.left_phrase, prep, phrase)
    elif clause.left is not None and clause.subjects:
        if not clause.left.name and prep == "of" and not clause.left.pronoun and len(clause.subjects) > 1:
            # "Ann Lee, Bo Ek and the king of Norway met": the subject is the king, not Norway.
            clause.subjects = clause.subjects[:-1]
        elif not clause.left.name and prep == "of" and not clause.left.pronoun:
            clause.subjects, clause.lead = [phrase], clause.left.text
        elif clause.left_phrase:
            clause.found.add_triple(clause.left_phrase, f"{prep}" if clause.left.name else f"is {prep}", phrase)
    elif not (clause.adverbials and _belongs_to_noun(clause, c, prep)):
        clause.adverbials.append((prep, phrase))


def _belongs_to_noun(clause: ClauseState, c: Chunk, prep: str) -> bool:
    """Whether a preposition modifies the previous noun. "After the fall of Rome Ann left" does not state that she left Rome."""
    left = clause.left
    if clause.since != [PREP] or left is None:
        return False
    return prep == "of" or not (left.name or left.date or c.date or prep == "with")


def _coordinated(clause: ClauseState, c: Chunk, phrase: str, i: int) -> None:
    if clause.starts_clause(i):
        _subject(clause, c, phrase)
        clause.verb = clause.tail = ""
        clause.main = ([], "")
        if clause.outer is not None and (COMMA in clause.since or not clause.outer.begun_by_comma):
            clause.outer = None
    elif AND not in clause.since and (_appose(clause, c, phrase) or (clause.left and clause.left.date and not c.date)):
        return
    elif AND not in clause.since and _contains(clause, c, i):
        clause.found.add_triple(clause.left_phrase, "is in", phrase)
        clause.say(clause.last_predicate, phrase, near=False)
    elif clause.copula and c.tag in ("JJ", "JJR", "JJS") and not c.name:
        # "larger than Bonn but smaller than Rome": the words after the second adjective belong to it.
        clause.last_predicate, clause.by_prep = clause.predicate(tail=False), False
        clause.tail = short(c)
    else:
        if clause.copula and clause.by_prep and c.det in ("a", "an"):
            # "a prince of Hesse and a Prussian general": with the article, a second complement of the verb begins.
            clause.last_predicate, clause.by_prep = clause.predicate(tail=False), False
        clause.say(clause.last_predicate or clause.predicate(tail=False), phrase, near=False)
        if not clause.by_prep:
            clause.tail = short(c)


def _appose(clause: ClauseState, c: Chunk, phrase: str) -> bool:
    """Whether the phrase names or describes the phrase before the comma."""
    left = clause.left
    if left is None or not clause.left_phrase or c.date or left.date or _in_long_list(clause, c):
        return False
    if (
        (left.name or left.title or left.pronoun)
        and not c.name
        and (c.det in ("a", "an", "the") or c.owner or c.det in POSSESSIVE)
    ):
        clause.found.add_triple(clause.left_phrase, "is", phrase)
        owner = clause.owner(c)
        if owner:
            clause.found.add_triple(clause.left_phrase, f"is {c.text} of", owner)
        clause.appositive = (clause.left_phrase, c.text)
        return True
    if c.name and not left.name and (left.det in ("the", "a", "an") or left.owner or left.det in POSSESSIVE):
        owner = clause.owner(left)
        if owner:
            clause.found.add_triple(owner, left.text, phrase)
        else:
            clause.found.add_triple(phrase, "is", clause.left_phrase)
        if clause.subjects and clause.subjects[-1] == clause.left_phrase:
            clause.subjects = [*clause.subjects[:-1], phrase]
        elif owner and not clause.verb:
            # "Her brother, Emil Strand, plays": the subject is Emil Strand.
            clause.subjects, clause.lead = [phrase], ""
        return True
    return False


def _in_long_list(clause: ClauseState, c: Chunk) -> bool:
    """Whether `c` is one of four or more objects of a verb: "has a Memo, a pointer, a flag, and a frame"."""
    i = clause.chunks.index(c)
    begin = max((k for k in range(i) if clause.chunks[k].kind == VERB), default=i)
    end = next((k for k in range(i, len(clause.chunks)) if clause.chunks[k].kind == AND), i)
    return sum(b.kind == COMMA for b in clause.chunks[begin:end]) > 2 and clause.is_listed(i)


def _contains(clause: ClauseState, c: Chunk, i: int) -> bool:
    """Whether the phrase is the larger place after a comma ("Austin, Texas"), and not the next item of a list."""
    prep = clause.last_predicate.rpartition(" ")[2]
    if not (clause.left is not None and clause.left.name and c.name and prep in _PLACE):
        return False
    following = clause.chunks[i + 1 : i + 4]
    return not any(f.kind == AND for f in following[:2])


def _described(clause: ClauseState, description: Chunk, name: Chunk) -> None:
    """Adds the description in "psychologist Carl Rogers"; the next chunk is the name, which gets a role in the sentence."""
    phrase = clause.coref.resolve(name)
    owner = clause.owner(description)
    if owner:
        clause.found.add_triple(owner, description.text, phrase)
    else:
        clause.found.add_triple(phrase, "is", normalise_phrase(description.text))


def _object_relative(clause: ClauseState, phrase: str, verb: Chunk) -> None:
    """Adds the statement in "the book that Ann wrote", where the noun before the pronoun is the object."""
    clause.found.add_triple(phrase, " ".join([*verb.words, clause.relative_prep]), clause.relative)
    clause.subjects, clause.lead = [phrase], ""


def _weak(clause: ClauseState, c: Chunk) -> None:
    """A pronoun without a referent: it may be a subject, but gives no triple."""
    clause.prep = ""
    if not clause.verb:
        clause.subjects, clause.lead = [""], ""
    elif c.words[0].lower() in ("one", "some", "many", "two", "three", "several"):
        # "one of the earliest poets": the content follows in the next phrase.
        clause.tail, clause.objects = c.text, clause.objects + 1
