"""Instructions: sentences that tell the reader what to do, and state nothing."""

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


def instructs(words: Sequence[str], tags: Sequence[str]) -> bool:
    """Whether a sentence is an instruction: "Select the card", "To open a page, press Ctrl", "Under Help, select it"."""
    start = 0
    if tags[0] in _OPENS_ADVERBIAL and not _is_order(words, tags, 0):
        comma = next((i for i, word in enumerate(words) if word == ","), 0)
        if not comma:
            return False
        start = comma + 1
    while start < len(words) and words[start].lower() in _BEFORE_ORDER | {","}:
        start += 1
    return start < len(words) and _is_order(words, tags, start)


def _is_order(words: Sequence[str], tags: Sequence[str], i: int) -> bool:
    """Whether the word at `i` is a verb without a subject whose object or complement follows."""
    word, known = words[i].lower(), tagger()
    if not known.is_base_verb(word) or tags[i] in _FINITE or (i and words[i][0].isupper()):
        return False
    if i + 1 == len(words):
        return i > 0
    if tags[i + 1] in _OBJECTS and words[i + 1][0].islower():
        return True
    # "Plans have changed": a noun and its verb, which may stand far behind.
    mostly_verb = known.lexicon.get(word) in ("VB", "VBP") and known.lexicon.get(words[i]) not in ("NNP", "NNPS")
    ends = (k for k in range(i + 1, len(words)) if words[k] == "," or tags[k] in ("WDT", "WP", "WRB"))
    end = next(ends, len(words)) if mostly_verb else len(words)
    return not any(_is_finite(words, tags, k) for k in range(i + 1, end))


def _is_finite(words: Sequence[str], tags: Sequence[str], i: int) -> bool:
    return tags[i] in _FINITE or (tags[i] == "VBP" and (words[i] in _AUXILIARIES or tags[i - 1] in ("NNS", "NNPS")))
