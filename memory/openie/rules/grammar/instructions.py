"""Recognises instructions: sentences that tell the reader what to do and state nothing."""

from collections.abc import Sequence

from memory.openie.rules.grammar.pos_tagger import tagger
from memory.openie.rules.grammar.tokenizer import word_set

_BEFORE_ORDER = word_set(
    "please then now next first second third finally just simply also and or optionally always never not do n't"
)
_OPENS_ADVERBIAL = frozenset({"IN", "TO", "WRB"})
_OBJECTS = frozenset({"DT", "PRP", "PRP$", "CD", "PDT", "WDT", "WP", "WRB"})
_FINITE = frozenset({"VBD", "VBZ", "MD"})
_AUXILIARIES = word_set("are have do were")
_MODIFIES = frozenset({"JJ", "JJR", "JJS", "DT", "CD", "PRP$"})
_ARTICLES = word_set("a an the your its this")
_SUBJECTS = frozenset({"DT", "PRP", "PRP$", "WDT", "WP", "EX", "TO", "CC", ",", "NNS", "NNPS"})
_PLACES = word_set("under in on at from within inside above below for with")
_DAYS = word_set("today yesterday tomorrow tonight once twice")
_AFTER_LABEL = word_set(": – — --")
_LABEL_WORDS = 8
"""Maximum number of words before the colon or dash of an instruction."""


def instructs(words: Sequence[str], tags: Sequence[str]) -> bool:
    """Whether a sentence is an instruction: "Select the card", "To open a page, press Ctrl", "Under Help, select it", "On a
    phone: Go to Help"."""
    colon = next((i for i, word in enumerate(words[:_LABEL_WORDS]) if word in _AFTER_LABEL), -1)
    if 0 <= colon < len(words) - 1 and _is_order(words, tags, colon + 1, opens=True):
        return True
    if words[0] == "[" and "]" in words[2:_LABEL_WORDS]:
        end = words.index("]") + 1  # "[Docs] Fill out the table"
        return end < len(words) and instructs(words[end:], tags[end:])
    start = 0
    if (tags[0] in _OPENS_ADVERBIAL or words[0].lower() in _PLACES) and not _is_order(words, tags, 0):
        comma = next((i for i, word in enumerate(words) if word == ","), 0)
        if not comma:
            return _orders_within(words, tags)
        start = comma + 1
    while start < len(words) and words[start].lower() in _BEFORE_ORDER | {","}:
        start += 1
    return start < len(words) and _is_order(words, tags, start)


def _orders_within(words: Sequence[str], tags: Sequence[str]) -> bool:
    """Whether a verb in its base form, without a subject, follows a prepositional phrase: "Under Format choose Text"."""
    lexicon = tagger().lexicon
    verb = next((i for i, word in enumerate(words) if i > 1 and lexicon.get(word) in ("VB", "VBP")), 0)
    if not verb or words[0].lower() not in _PLACES or any(_is_finite(words, tags, k) for k in range(1, len(words))):
        return False
    return _SUBJECTS.isdisjoint(tags[2:verb])


def _is_order(words: Sequence[str], tags: Sequence[str], i: int, opens: bool = False) -> bool:
    """Whether the word at `i` is a verb without a subject, and its object or complement follows. `opens`: the sentence begins
    at `i`."""
    word, known = words[i].lower(), tagger()
    opens = opens or not i
    following = words[i + 1] if i + 1 < len(words) else ""
    if opens and following in _ARTICLES and known.is_common(word) and tags[i][:2] in ("NN", "VB") and word not in _DAYS:
        # "Sync your notes": no article stands between a noun and its verb, so the first word is a verb.
        return not word.endswith(("ing", "ed"))
    finite = tags[i] in _FINITE and (tags[i] != "VBD" or known.lexicon.get(word) in ("VBD", "VBN"))  # not "open"
    if not known.is_base_verb(word) or finite or (not opens and words[i][0].isupper()):
        return False
    if i + 1 == len(words):
        return i > 0
    if tags[i + 1] in _OBJECTS and words[i + 1][0].islower():
        return True
    # "Plans have changed": the first word is a noun; its verb may follow much later.
    mostly_verb = known.lexicon.get(word) in ("VB", "VBP") and known.lexicon.get(words[i]) not in ("NNP", "NNPS")
    ends = (k for k in range(i + 1, len(words)) if words[k] == "," or tags[k] in ("WDT", "WP", "WRB"))
    end = next(ends, len(words)) if mostly_verb else len(words)
    return not any(_is_finite(words, tags, k) for k in range(i + 1, end))


def _is_finite(words: Sequence[str], tags: Sequence[str], i: int) -> bool:
    if tags[i] == "VBZ" and tags[i - 1] in _MODIFIES:
        return False  # "more options": a noun
    return tags[i] in _FINITE or (tags[i] == "VBP" and (words[i] in _AUXILIARIES or tags[i - 1] in ("NNS", "NNPS")))
