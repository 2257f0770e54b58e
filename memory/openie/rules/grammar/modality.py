"""Finds out how a statement is meant: denied, reported, doubted, asked or supposed. A mark is added to the verb's words, so
that no triple states the opposite of its sentence. Sentences that only ask or suppose are not read.

Marks are searched among the tokens, before clauses are parsed. If the scope of a "not" is unclear, the wider one is assumed: a
lost fact costs less than a false one.
"""

from collections.abc import Sequence

from memory.openie.rules.grammar.chunk import AND, BREAK, CLOSE, COMMA, NOUN, OPEN, PREP, VERB, WHICH, Chunk
from memory.openie.rules.grammar.tokenizer import word_set

NEGATIVE = word_set(
    "no not n't never neither nor none nobody nothing nowhere hardly scarcely seldom rarely barely without cannot"
)
_DOUBTS = word_set(
    "allegedly reportedly supposedly purportedly possibly perhaps probably maybe apparently presumably ostensibly rumored "
    "rumoured theoretically hypothetically almost nearly virtually falsely wrongly mistakenly"
)
_SUPPOSES = word_set("if unless lest suppose supposing assume assuming imagine provided")
_CONDITIONS = word_set("when whenever where while once until")
_OPEN_QUESTION = word_set("whether")
_REASONS = word_set("since because as although though while")
REPORTS = word_set(
    "say says said saying claim claims claimed claiming deny denies denied denying allege alleges alleged believe believes "
    "believed think thinks thought hope hopes hoped wish wishes wished doubt doubts doubted suggest suggests suggested argue "
    "argues argued assert asserts asserted insist insists insisted report reports reported state states stated announce "
    "announces announced predict predicts predicted expect expects expected fear fears feared suspect suspects suspected "
    "speculate speculates speculated propose proposes proposed maintain maintains maintained pretend pretends pretended "
    "dream dreams dreamed dreamt imagine imagines imagined imply implies implied rumoured rumored estimate estimates "
    "estimated assume assumes assumed conclude concludes concluded require requires required demand demands demanded "
    "ensure ensures ensured verify verifies verified indicate indicates indicated"
)
_UNSURE = word_set(
    "false untrue unlikely likely unclear uncertain doubtful disputed possible impossible probable wrong alleged unknown "
    "conceivable improbable myth rumor rumour lie claim allegation belief suggestion theory hope idea notion denial"
)
_WHO = word_set("who whom whose what which how why")
_ONLY = word_set("only just merely simply solely")
_ADJECTIVE_TO = 4
"""Maximum number of words between an adjective and its infinitive: "it is necessary in practice to"."""
_FINITE = frozenset({"finite", "be", "passive"})
AUXILIARY = word_set(
    "did do does has have had is are was were be been can could will would shall should may might must 's"
)


def supposed(words: Sequence[str]) -> bool:
    """Whether a sentence only supposes: "If X buys Y", "Unless", "Suppose that", "Had X known", "as if"."""
    if not words:
        return False
    first = words[0].lower()
    if first == "otherwise" or (words[0] in ("Had", "Should", "Were") and "," in words):
        return True
    for i, word in enumerate(words):
        lower = word.lower()
        # "LIMIT If it is set, Redbird waits": a capital may follow a label.
        if lower in _SUPPOSES and (i == 0 or any(other.islower() for other in words[i : i + 2])):
            if lower in ("if", "unless", "lest", "supposing", "assuming") or i == 0:
                return True
            if lower == "provided" and i + 1 < len(words) and words[i + 1].lower() == "that":
                return True
    return False


def asks(words: Sequence[str]) -> bool:
    """Whether a sentence without a question mark is a question by its word order: "Did X found Y", "Is X a Y"."""
    return len(words) > 2 and words[0].lower() in ("did", "do", "does") and words[1].lower() not in ("not", "n't")


def is_impersonal(words: Sequence[str], tags: Sequence[str]) -> bool:
    """Whether "it" represents a later infinitive: "It is possible to rearrange the list"."""
    at = next((i for i, word in enumerate(words[:3]) if word.lower() == "it"), -1)
    verb = at + 1 + (tags[at + 1 : at + 2] == ["MD"])
    if at < 0 or [word.lower() for word in words[verb : verb + 1]] not in (["is"], ["was"], ["be"]):
        return False
    adjective = verb + 1
    while tags[adjective : adjective + 1] in (["RB"], ["RBR"]):
        adjective += 1
    is_adjective = tags[adjective : adjective + 1] in (["JJ"], ["JJR"], ["JJS"])
    ahead = range(adjective + 1, min(adjective + 1 + _ADJECTIVE_TO, len(words) - 1))
    return is_adjective and any(words[i] == "to" and tags[i + 1] == "VB" for i in ahead)


def mark_clauses(chunks: list[Chunk], words: Sequence[str], conditions: bool = False) -> list[Chunk]:
    """Adds each mark to the words of the verbs that it applies to, and returns the chunks. Changes the given chunks.

    `conditions`: "when" means "if", as in technical text.
    """
    chunks, set_aside = _without_contrasts(chunks, words)
    _mark_reports(chunks, words, conditions)
    for i in range(len(words)):
        lower = words[i].lower()
        if i in set_aside:
            continue
        if lower in NEGATIVE and lower != "without":
            if not _affirms(words, i):
                _negate(chunks, words, i, lower)
        elif lower in _DOUBTS and (words[i].islower() or i == 0):
            _attach(chunks, i, lower)
        elif words[i] == "too" and words[i + 1 : i + 2] and words[i + 1].isalpha():
            _attach(chunks, i, lower)  # "is too big for"
        elif lower == "according" and i + 1 < len(words) and words[i + 1].lower() == "to":
            for c in _segment(chunks, i):
                _put(c, "reportedly")
    return chunks


def _affirms(words: Sequence[str], i: int) -> bool:
    """Whether the negative word at `i` denies nothing: "not only", "No. 5", "no doubt", the name "No Doubt"."""
    lower = words[i].lower()
    after = words[i + 1].lower() if i + 1 < len(words) else ""
    if lower in ("not", "n't") and after in _ONLY:
        return True
    if lower == "no" and (after in ("doubt", "sooner") or after[:1].isdigit() or after == "."):
        return True
    if (
        i + 1 < len(words)
        and words[i][0].isupper()
        and words[i + 1][0].isupper()
        and lower in ("no", "never", "nothing")
    ):
        # In a title: "No Country for Old Men".
        return True
    return i > 0 and words[i][0].isupper() and words[i - 1][0].isupper()


def _negate(chunks: list[Chunk], words: Sequence[str], i: int, lower: str) -> None:
    inside = next((c for c in chunks if c.start <= i < c.end), None)
    if inside is not None and inside.kind == VERB:
        if not any(word in NEGATIVE for word in inside.words):
            _put(inside, "not")
        _invert(chunks, inside, "not")
        _share(chunks, inside)
        return
    if inside is not None and (inside.title or (inside.name and lower == "n't")):
        # "Don't Stop Now": a negative word in a name denies nothing.
        return
    if inside is not None and inside.kind == NOUN and not _after_verb(chunks, inside):
        # "No man who loved X founded Y": every verb of this part of the sentence is denied.
        for c in _segment(chunks, i) or _segment(chunks, i + 2):
            _put(c, "not")
        return
    if lower in ("neither", "nor", "none", "nobody", "nothing") and not any(
        c.kind == VERB and c.end <= i for c in _segment(chunks, i)
    ):
        # "Nobody but Ann": the verbs are denied, because they are about everybody else.
        for c in _segment(chunks, i) or _segment(chunks, i + 2):
            _put(c, "not")
        return
    if lower == "no" and i + 1 < len(words) and words[i + 1].lower() in ("longer", "more"):
        lower = "no longer"
    _attach(chunks, i, "not" if lower in ("n't", "nor", "neither") else lower)


def _after_verb(chunks: list[Chunk], c: Chunk) -> bool:
    return any(other.kind == VERB and other.end <= c.start for other in _segment(chunks, c.start))


def _attach(chunks: list[Chunk], i: int, mark: str) -> None:
    """Adds the mark to the verb that the word at `i` applies to: the verb directly before it, otherwise the next verb,
    otherwise the last."""
    verbs = _segment(chunks, i)
    before = [c for c in verbs if c.end <= i]
    after = [c for c in verbs if c.start > i]
    inside = [c for c in verbs if c.start <= i < c.end]
    near = next((c for c in chunks if c.start <= i < c.end and c.kind == NOUN), None)
    start = near.start if near else i
    if inside:
        verb = inside[0]
        if mark in verb.words:
            return
    elif before and before[-1].end >= start - 1 and not (after and after[0].start <= i + 2):
        _append(before[-1], mark)
        _share(chunks, before[-1])
        return
    elif after:
        verb = after[0]
    elif before:
        _append(before[-1], mark)
        return
    else:
        return
    mark = "not" if mark == "no" else mark
    _put(verb, mark)
    _invert(chunks, verb, mark)
    _share(chunks, verb)


def _append(verb: Chunk, mark: str) -> None:
    if not any(word in NEGATIVE for word in verb.words):
        verb.words = [*verb.words, *mark.split()]


def _invert(chunks: list[Chunk], verb: Chunk, mark: str) -> None:
    """Adds the mark to the verb after the subject if `verb` is only its auxiliary: "Never did Ann found it"."""
    k = chunks.index(verb)
    alone = all(word in AUXILIARY or word == mark for word in verb.words)
    if alone and [c.kind for c in chunks[k + 1 : k + 3]] == [NOUN, VERB]:
        _put(chunks[k + 2], mark)


def _put(verb: Chunk, mark: str) -> None:
    """Adds the mark to the verb's words: "not" after an auxiliary, other marks before all words."""
    if mark in verb.words or (mark.split()[0] in NEGATIVE and any(word in NEGATIVE for word in verb.words)):
        return
    at = int(mark == "not" and verb.words[0] in AUXILIARY)
    verb.words = [*verb.words[:at], *mark.split(), *verb.words[at:]]


def _share(chunks: list[Chunk], verb: Chunk) -> None:
    """Also denies verbs that are joined to a denied verb by "or" or "nor", or have no finite form: "did not write or direct",
    "never sang, danced or acted"."""
    mark = next((word for word in verb.words if word in NEGATIVE), "")
    if not mark:
        return
    place = chunks.index(verb)
    rest = chunks[place + 1 :]
    joined = _disjoined(rest)
    previous = place
    for k, c in enumerate(rest, place + 1):
        if c.kind == BREAK or c.words == ["but"] or (c.kind == WHICH and not joined):
            return
        if c.kind != VERB or chunks[k - 1] is verb:
            continue
        if len(c.words) > 1 and c.words[0] in AUXILIARY:
            # "will not hold files, and will only hold names": the second auxiliary ends the scope of the "not".
            return
        own = any(
            other.kind == NOUN and chunks[j - 1].kind in (AND, COMMA)
            for j, other in enumerate(chunks[:k])
            if j > previous
        )
        bare = c.tag in ("VB", "VBP", "VBN", "VBG")
        if (joined or (bare and any(x.kind in (AND, COMMA) for x in chunks[previous + 1 : k]))) and not (
            own and not joined
        ):
            _put(c, mark)
        previous = k


def _disjoined(chunks: Sequence[Chunk]) -> bool:
    """Whether "or" or "nor" joins words here before the clause ends."""
    for c in chunks:
        if c.kind == BREAK or c.words == ["but"]:
            return False
        if c.kind == AND and c.words[0] in ("or", "nor"):
            return True
    return False


def _segment(chunks: Sequence[Chunk], i: int) -> list[Chunk]:
    """Returns the verbs in the part of the sentence that contains token `i`. A semicolon, a dash or "but" ends a part.

    Text in brackets is a part too, and so is a reason that opens the sentence: "Since no option is set, Ann Lee ...".
    """
    found: list[Chunk] = []
    for c in _part(chunks, i):
        if c.kind == BREAK or c.words == ["but"]:
            if c.start > i:
                break
            found = []
        elif c.kind == VERB:
            found.append(c)
    return found


def _part(chunks: Sequence[Chunk], i: int) -> Sequence[Chunk]:
    """Returns the chunks in the brackets around token `i`, or on its side of the comma after an opening reason; otherwise all
    chunks."""
    opened = 0
    for k, c in enumerate(chunks):
        if c.kind == OPEN:
            opened = k + 1
        elif c.kind == CLOSE and opened:
            if chunks[opened - 1].start < i < c.start:
                return chunks[opened:k]
            opened = 0
    if chunks and chunks[0].words[-1].lower() in _REASONS:
        comma = next((k for k, c in enumerate(chunks) if c.kind == COMMA), 0)
        kinds = [c.kind for c in chunks[:comma]]
        if VERB in kinds:
            return chunks[:comma] if i < chunks[comma].start else chunks[comma:]
    return chunks


def _without_contrasts(chunks: list[Chunk], words: Sequence[str]) -> tuple[list[Chunk], set[int]]:
    """Returns the chunks without rejected alternatives ("not X but Y", ", not X,", "rather than X"), and the position of each
    "not" in them."""
    kept: list[Chunk] = []
    places: set[int] = set()
    k = 0
    while k < len(chunks):
        c = chunks[k]
        before = words[c.start - 1].lower() if c.start else ""
        if (
            c.kind == NOUN
            and c.start
            and before == "not"
            and not (kept and kept[-1].kind == VERB and kept[-1].end >= c.start - 1)
        ):
            if k + 1 < len(chunks) and chunks[k + 1].words == ["but"]:
                places.add(c.start - 1)
                k += 2
                continue
            if (kept and kept[-1].kind == COMMA) or (len(kept) > 1 and kept[-2].kind == COMMA):
                places.add(c.start - 1)
                k += 1
                continue
        if c.kind == PREP and c.words[0] == "not" and kept and kept[-1].kind == COMMA and chunks[k + 1 : k + 2]:
            # "works on Windows, not on Linux"
            places.add(c.end - len(c.words))
            k += 2
            continue
        if c.kind == NOUN and kept and kept[-1].kind == PREP and _sets_aside(kept, words):
            kept.pop()
            k += 1
            continue
        kept.append(c)
        k += 1
    return kept, places


def _sets_aside(kept: list[Chunk], words: Sequence[str]) -> bool:
    prep = kept[-1]
    last, first = prep.words[-1], words[prep.end - 2].lower() if prep.end > 1 else ""
    return (
        (last == "than" and first in ("rather", "other")) or (last == "of" and first == "instead") or last == "unlike"
    )


def _mark_reports(chunks: Sequence[Chunk], words: Sequence[str], conditions: bool) -> None:
    """Marks what somebody said, believed or denied: the verb in "Bo denied that he killed Al" becomes "denied that killed".

    With `conditions`, words after "when" are marked too.
    """
    mark: list[str] = []
    for k, c in enumerate(chunks):
        if c.kind == BREAK:
            mark = []
        elif c.kind == VERB and mark:
            c.words = [*mark, *c.words]
        elif c.kind == VERB:
            following = chunks[k + 1] if k + 1 < len(chunks) else None
            if following is not None and following.kind == WHICH and following.words[0].lower() in _WHO:
                mark = [*c.words[-3:], following.words[0].lower()]
            elif _quotes(chunks, k):
                mark = [*c.words[-3:], "that"]
        elif conditions and c.words[-1].lower() in _CONDITIONS:
            mark = [c.words[-1].lower()]
        elif c.kind == COMMA and mark and mark[0] in _CONDITIONS:
            mark = []
        elif c.kind == PREP and c.words[-1] in _OPEN_QUESTION:
            mark = ["whether"]
        elif c.words == ["that"] and not mark and (doubt := _doubt(chunks, k, words)):
            # The "that" does not refer to the noun before it.
            c.kind, mark = PREP, doubt


def _doubt(chunks: Sequence[Chunk], k: int, words: Sequence[str]) -> list[str]:
    """Returns the mark of the clause after the "that" at chunk `k`: words of negation, doubt or report that precede "that".

    Returns [] if the words before "that" affirm the clause.
    """
    if [c.kind for c in chunks[k + 1 : k + 3]] != [NOUN, VERB]:
        return []
    begin = max((c.end for c in chunks[:k] if c.kind == BREAK), default=0)
    before = [word.lower() for word in words[begin : chunks[k].start]]
    reported = [word for word in before if word in REPORTS or word in _UNSURE]
    denied = [word for word in before if word in NEGATIVE]
    if not reported and not denied:
        return []
    verb = next((c for c in reversed(chunks[:k]) if c.kind == VERB and c.start >= begin), None)
    mark = list(verb.words[-3:]) if verb is not None else []
    return [*dict.fromkeys([*("not" for _ in denied[:1]), *mark, *reported[-1:], "that"])]


def _quotes(chunks: Sequence[Chunk], k: int) -> bool:
    """Whether a clause without "that" follows the verb: "claims Alice founded Y"."""
    ahead = chunks[k + 1 : k + 3]
    return (
        any(word in REPORTS for word in chunks[k].words)
        and [c.kind for c in ahead] == [NOUN, VERB]
        and ahead[1].tag in _FINITE
    )
