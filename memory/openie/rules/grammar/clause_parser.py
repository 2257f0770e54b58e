"""Converts sentences to triples in one pass from left to right."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from memory.openie.rules.grammar.arguments import place_noun
from memory.openie.rules.grammar.brackets import read_bracket
from memory.openie.rules.grammar.chunk import ADVERB, AND, BREAK, CLOSE, COMMA, NOUN, OPEN, PREP, VERB, WHICH, Chunk
from memory.openie.rules.grammar.chunker import chunk_sentence
from memory.openie.rules.grammar.clause_state import FINITE, ClauseState
from memory.openie.rules.grammar.direct_speech import DirectSpeech, without_dateline
from memory.openie.rules.grammar.direct_statements import note_names, read_direct
from memory.openie.rules.grammar.embedded_clauses import (
    begin_free_clause,
    begin_relative_clause,
    end_embedded_clause,
    ends_embedded_clause,
    subject_of_participle,
    without_cleft,
)
from memory.openie.rules.grammar.instructions import instructs
from memory.openie.rules.grammar.modality import asks, is_impersonal, mark_clauses, supposed
from memory.openie.rules.grammar.pos_tagger import tagger
from memory.openie.rules.grammar.time_phrases import without_time_phrases
from memory.openie.rules.grammar.tokenizer import CONTINUED, word_set
from memory.openie.rules.triple_collector import TripleCollector

_SUBORDINATE = word_set(
    "because while although though when if as until unless since whereas that than whether once after before"
)
_RESTRICTED = frozenset({"", "any", "every", "each", "all", "some"})
_DEMONSTRATIVES = word_set("these those")
_QUESTION_WORDS = word_set("what which whose whether how why")
_TEMPORAL_CONJUNCTIONS = word_set("after before once until till")
_ANY = word_set("any anything anyone anybody anywhere no nothing nobody none")


def parse_sentences(sentences: Iterable[Sequence[str]], found: TripleCollector) -> None:
    """Reads the tokens of each sentence of English prose into `found`."""
    tag = tagger().tag
    speech = DirectSpeech()
    for place, sentence in enumerate(sentences):
        if sentence[0] == CONTINUED:
            note_names(ClauseState(found, chunk_sentence(sentence, tag(sentence), found.coref.title_words)))
            continue
        words: Sequence[str] = sentence
        if not found.technical:
            words, quoted = speech.take_out(sentence if place else without_dateline(sentence))
            for said in quoted:
                note_names(ClauseState(found, chunk_sentence(said, tag(said), found.coref.title_words)))
            words = without_time_phrases(words) if words else []
        if not words:
            continue
        tags = tag(words)
        if instructs(words, tags):
            continue
        before = len(found.triples)
        chunks = without_cleft(chunk_sentence(words, tags, found.coref.title_words))
        clause = ClauseState(found, mark_clauses(chunks, words, found.coref.strict), "respectively" in words)
        states_nothing = asks(words) or supposed(words) or is_impersonal(words, tags)
        if words[-1] == "?" or states_nothing or (found.direct_only and _is_loose(chunks, words)):
            note_names(clause)
        elif found.technical or not found.direct_only:
            _read(clause)
        elif sentence[0].islower() and tagger().is_common(sentence[0]):
            note_names(clause)  # the end of a sentence that began in an earlier block
        else:
            read_direct(clause)
        found.drop_vague_triples(before)
        found.coref.past_first_sentence = True


def _is_loose(chunks: Sequence[Chunk], words: Sequence[str]) -> bool:
    """Whether a sentence is a heading ("How Corruption Can Occur"), an indirect question ("What clients are allowed"), a
    setting ("contains=NONE"), conditional ("Once it is set") or restricted ("Only Ann Lee can write")."""
    verbs = [c for c in chunks if c.kind == VERB]
    if words[0].lower() in _QUESTION_WORDS or words[0].lower() in ("once", "until"):
        return True
    if verbs and all(c.start and words[c.start].istitle() for c in verbs):
        return True
    return "only" in (word.lower() for word in words[:2]) or any(words[c.end : c.end + 1] == ["="] for c in verbs)


def _read(clause: ClauseState) -> None:
    chunks, i = clause.chunks, 0
    while i < len(chunks):
        c = chunks[i]
        if c.kind == OPEN:
            end = next((k for k in range(i + 1, len(chunks)) if chunks[k].kind == CLOSE), len(chunks))
            if clause.left is not None and end - i < 24:
                read_bracket(clause, chunks[i + 1 : end])
                i = end + 1
                continue
        elif c.kind == NOUN:
            place_noun(clause, c, i)
            if c.tag != "desc":
                # A description and the name after it are one noun phrase.
                clause.since = []
        else:
            if c.kind == VERB:
                _verb(clause, c, i)
            elif c.kind == PREP:
                _prep(clause, c, i)
            elif c.kind == WHICH:
                _which(clause, c, i)
            elif c.kind == COMMA:
                clause.appositive = None
            elif c.kind == BREAK and c.words != [":"]:
                _break(clause, i)
            # Text after a colon continues the words before it, as after a comma: "three engineers: Ann Lee, Bo Ek".
            if c.kind == AND and c.words == ["but"]:
                _but(clause, i)
            clause.since.append(COMMA if c.words == [":"] else c.kind)
        i += 1


def _break(clause: ClauseState, i: int) -> None:
    outer, following = clause.outer, clause.following(i)
    if following is not None and following.kind == WHICH and clause.subjects and not clause.verb:
        # "Lantern - which Ann founded": the relative clause describes the noun before the dash.
        return
    clause.close()
    if outer and following is not None and following.kind == VERB and following.tag in FINITE:
        # "Lantern - which Ann founded - ended": the verb's subject is the noun before the first dash.
        clause.subjects, clause.lead = outer.subjects, outer.lead


def _verb(clause: ClauseState, c: Chunk, i: int) -> None:
    text = " ".join(c.words)
    before = clause.chunks[i - 1].kind if i else ""
    if ends_embedded_clause(clause, c, i):
        end_embedded_clause(clause)
    elif not (clause.subjects or clause.verb or clause.prep) and c.tag in ("VBG", "VBN") and c.start == 0:
        clause.subjects = subject_of_participle(clause, c, i)
    listed = clause.verb and clause.objects == 0 and not clause.prep and before in (COMMA, AND)
    clause.peers = [*clause.peers, clause.verb][-4:] if listed else []
    if clause.prep:
        clause.verb = f"{clause.verb} {clause.tail} {clause.prep} {text}".strip()
        clause.prep = clause.tail = ""
        if not clause.subjects:
            clause.subjects = [clause.coref.resolve_pronoun()]
    elif clause.relative and WHICH in clause.since:
        clause.subjects, clause.lead, clause.verb, clause.relative = [clause.relative], "", text, ""
        clause.tail = ""
    elif c.words[0] == "to" and clause.verb:
        clause.verb, clause.tail = f"{clause.verb} {clause.tail} {text}".strip(), ""
    elif clause.verb and before == NOUN and c.tag not in FINITE:
        # "a film directed by Ann Lee based on a novel": the second participle also describes the film.
        agent = clause.last_predicate.endswith(" by")
        if not clause.copula and not agent and clause.left is not None and not clause.left.date:
            clause.subjects, clause.lead = [clause.left_phrase], ""
        clause.verb, clause.tail = text, ""
    elif clause.verb and before == VERB and c.tag in FINITE:
        # "The highest temperature ever recorded is": both verbs have the same subject.
        clause.verb, clause.tail = text, ""
    elif clause.verb and (COMMA in clause.since or AND in clause.since or before == ADVERB):
        if clause.main[0]:
            clause.subjects, clause.lead = clause.main
        clause.verb, clause.tail = text, ""
    elif clause.verb and before == NOUN and clause.left and not clause.left.date and not clause.copula:
        clause.subjects, clause.lead, clause.verb, clause.tail = [clause.left_phrase], "", text, ""
    elif clause.verb and c.tag in FINITE and clause.main[0]:
        (clause.subjects, clause.lead), clause.verb, clause.tail = clause.main, text, ""
    elif clause.verb:
        clause.verb, clause.tail = f"{clause.verb} {text}", ""
    else:
        clause.verb, clause.tail = text, ""
    clause.near = _beside_subject(clause, c, i)
    clause.by_participle = _is_participle(clause, c, i)
    _begin(clause, c, i)


def _beside_subject(clause: ClauseState, c: Chunk, i: int) -> bool:
    """Whether the subject is directly before the verb: a noun phrase, a relative pronoun, or a verb with the same subject."""
    before = next((b for b in reversed(clause.chunks[:i]) if b.kind != ADVERB), None)
    if before is None or not clause.subjects or clause.verb != " ".join(c.words):
        return False
    if before.kind == NOUN:
        place = clause.chunks.index(before)
        place -= place and clause.chunks[place - 1].tag == "desc"
        if place and clause.chunks[place - 1].kind == VERB:
            # "Setting the flag is privileged": the subject is the setting, not the flag.
            return False
        if place > 1 and [b.kind for b in clause.chunks[place - 2 : place]] == [VERB, PREP]:
            return False  # "Files named by users open": the subject of "open" is the files.
        if _joins_complement(clause.chunks, place) or (
            before.det in _DEMONSTRATIVES and clause.subjects[-1] != clause.coref.title
        ):
            return False
        if place and clause.found.direct_only and _TEMPORAL_CONJUNCTIONS.issuperset(clause.chunks[place - 1].words):
            return tagger().lexicon.get(c.words[0]) == "VBD"  # "after the log is moved" states nothing about the log
        if clause.chunks[0].kind == VERB and COMMA not in (c.kind for c in clause.chunks[:place]):
            # "Using Redbird in a project can make files": the subject is "using Redbird", not the project.
            return False
        return before is clause.left and clause.left_phrase == clause.subjects[-1] and c.tag in FINITE | {"VBN"}
    if before.kind == COMMA and clause.left is not None and clause.left.name:
        return clause.left_phrase == clause.subjects[-1]
    if before.kind == WHICH:
        left = clause.left
        # "Programs that read the log", "any program that": the statement is not about all programs.
        restricts = (
            before.words == ["that"] and left is not None and left.end == before.start and left.det in _RESTRICTED
        )
        # "The size of the log, which can grow": either the log or its size may grow.
        unclear = clause.found.direct_only and left is not None and not (left.name and left.end == before.start)
        return not restricts and not (unclear and left is not None and _is_complement(clause.chunks, left))
    if before.kind == CLOSE:
        return clause.left_phrase == clause.subjects[-1]
    return before.kind == AND and clause.near


def _is_complement(chunks: Sequence[Chunk], c: Chunk) -> bool:
    """Whether a preposition is directly before the noun phrase `c`."""
    return any(before.kind == PREP and behind is c for before, behind in pairwise(chunks))


def _joins_complement(chunks: Sequence[Chunk], place: int) -> bool:
    """Whether "and" or "or" joins the noun at `place` to the complement of a preposition: "Files of users or groups"."""
    if not place or chunks[place - 1].kind != AND:
        return False
    begin = max((k for k in range(place) if chunks[k].kind in (VERB, COMMA, BREAK, WHICH)), default=-1)
    return any(c.kind == PREP for c in chunks[begin + 1 : place])


def _is_participle(clause: ClauseState, c: Chunk, i: int) -> bool:
    """Whether the verb is a participle by its tag in a sentence with other verbs, or by its form next to a finite verb."""
    if c.tag == "VBN":
        return sum(other.kind == VERB for other in clause.chunks) > 1
    looks = len(c.words) == 1 and c.words[0].endswith("ed") and clause.chunks[i - 1].kind == NOUN
    # "The list generated on a host should not contain names"
    follows = looks and _meets_verb(clause.chunks[i + 1 :])
    return follows or (looks and any(other.kind == VERB and other.tag in FINITE for other in clause.chunks[:i]))


def _meets_verb(chunks: Sequence[Chunk]) -> bool:
    """Whether only nouns, prepositions and adverbs precede the next finite verb; the earlier verb is then a participle."""
    for c in chunks:
        if c.kind == VERB:
            return c.tag in FINITE
        if c.kind not in (NOUN, PREP, ADVERB):
            return False
    return False


def _begin(clause: ClauseState, c: Chunk, i: int) -> None:
    if not clause.subjects:
        nobody = c.tag == "VBG" or _hides_subject(clause, c) or _is_fragment(c) or _leaves_gap(clause.chunks, i)
        clause.subjects = [""] if nobody else [clause.coref.resolve_pronoun()]
    if not clause.main[0]:
        clause.main = (clause.subjects, clause.lead)
        # "No new gauge is supported. The installer ...": a noun with "no" is not the topic of later sentences.
        if clause.subjects[0] and not (clause.left and clause.left.det in ("no", "neither")):
            clause.coref.note_subject(clause.subjects[0], clause.subjects[0] in clause.found.names)
    clause.copula = c.tag == "be"
    clause.objects = 0
    clause.appositive = None
    for prep, phrase in clause.adverbials:
        clause.say(f"{clause.predicate()} {prep}", phrase, near=False)
    clause.adverbials = []


def _leaves_gap(chunks: Sequence[Chunk], i: int) -> bool:
    """Whether the subject of the verb at `i` may be a word in no chunk: "Some also fail"."""
    while i and chunks[i - 1].kind == ADVERB and chunks[i - 1].end == chunks[i].start:
        i -= 1
    return chunks[i].start > (chunks[i - 1].end if i else 0)


def _is_fragment(c: Chunk) -> bool:
    """Whether a verb in the present tense opens the sentence: "Matches any file". Its subject is then outside the text."""
    return not c.start and tagger().lexicon.get(c.words[0]) in ("VB", "VBP", "VBZ")


def _hides_subject(clause: ClauseState, c: Chunk) -> bool:
    """Whether the previous phrase contains the subject of verb `c`: "At the age of 20 Ann Lee moved"."""
    left = clause.left
    if not clause.adverbials or left is None or left.end != c.start:
        return False
    return not set(clause.left_phrase.split()) & set(clause.coref.title.split())


def _prep(clause: ClauseState, c: Chunk, i: int) -> None:
    word = " ".join(c.words)
    following = clause.following(i)
    if word in _SUBORDINATE and following is not None and clause.clause_ahead(i + 1):
        first = clause.left is None and not clause.subjects
        clause.close()
        if first and word == "whether":
            begin_free_clause(clause, c, i)
        return
    clause.prep = word if not clause.prep else f"{clause.prep} {word}"


def _but(clause: ClauseState, i: int) -> None:
    """Removes a negation before a "but" that affirms: "was not founded by X but by Y"."""
    following, before = clause.following(i), clause.chunks[max(i - 1, 0)]
    if following is None or following.kind not in (NOUN, PREP) or clause.clause_ahead(i + 1):
        return
    if before.words[0].lower() in _ANY or before.det in _ANY:
        # "has not seen anything but Rome"
        return
    clause.verb = _affirmed(clause.verb)
    clause.last_predicate = _affirmed(clause.last_predicate)


def _affirmed(predicate: str) -> str:
    return " ".join(w for w in predicate.replace("no longer", "").split() if w not in ("not", "never"))


def _which(clause: ClauseState, c: Chunk, i: int) -> None:
    clause.relative_prep, clause.prep = clause.prep, ""
    following = clause.following(i)
    free = clause.left is None and not clause.verb
    if clause.left is not None:
        begin_relative_clause(clause, i)
    is_question = i and clause.chunks[i - 1].kind == VERB and following is not None and following.kind == NOUN
    if c.tag == "WRB" or clause.left is None or is_question:
        # "Ann knows what Bo wrote" does not state that Bo wrote Ann.
        clause.verb, clause.tail, clause.subjects, clause.lead = "", "", [], ""
        if free:
            begin_free_clause(clause, c, i)
        return
    of_subject = clause.copula and clause.subjects and clause.objects
    if clause.by_prep and clause.found.direct_only:
        of_subject = False  # "is the size of the structure that defines a file"
    clause.relative = clause.subjects[0] if of_subject else clause.left_phrase
    if c.words[0].lower() == "whose":
        clause.whose, clause.subjects, clause.verb, clause.relative = clause.relative, [], "", ""
    elif following is not None and following.kind == NOUN:
        clause.verb = ""
