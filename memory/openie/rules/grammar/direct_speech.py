"""Removes direct speech and datelines, which the text itself does not state.

In "We sold it," said Ann Lee, the text does not state that it sold something, or that somebody sold Ann Lee.
"""

from collections.abc import Sequence

from memory.openie.rules.grammar.modality import REPORTS
from memory.openie.rules.grammar.pos_tagger import tagger
from memory.openie.rules.grammar.tokenizer import word_set

_CLOSING = {"“": "”", "``": "''", '"': '"', "«": "»"}
_SAYS = REPORTS | word_set(
    "tell tells told add adds added ask asks asked reply replies replied explain explains explained warn warns warned note "
    "notes noted"
)
_FIRST_PERSON = word_set("i we my our us me")
_FINITE_TAGS = frozenset({"VB", "VBD", "VBP", "VBZ", "MD"})
_DASHES = frozenset({"-", "–", "—", "--"})
_PAUSES = _DASHES | {",", ";", ":"}
_LEAST_WORDS = 3
"""A quotation with fewer words is a title, or a word that the text discusses."""
_DATELINE_WORDS = 12


class DirectSpeech:
    """Removes direct speech from the sentences of one paragraph, which must be given in order."""

    def __init__(self) -> None:
        self._until = ""
        """The mark that will end a speech that is still open after the last sentence; "" if no speech is open."""
        self._odd = False
        """Whether a straight quotation mark is still open; straight opening and closing marks look the same."""

    def take_out(self, words: Sequence[str]) -> tuple[list[str], list[list[str]]]:
        """Returns the words that the text itself states, and the words of each speech."""
        outside: list[str] = []
        speeches: list[list[str]] = []
        i, inside, self._until = 0, self._until, ""
        if inside:
            end = words.index(inside) if inside in words else len(words)
            speeches += [list(words[:end])] if end else []
            self._until = inside if end == len(words) else ""
            i = _behind(words, end + 1)
        elif words[0] == '"' and self._odd:
            i = 1
        while i < len(words):
            closing = _CLOSING.get(words[i])
            end = next((k for k in range(i + 1, len(words)) if words[k] == closing), len(words)) if closing else 0
            if closing and _is_speech(words, i, end):
                speeches.append(list(words[i + 1 : end]))
                self._until = closing if end == len(words) else ""
                i = _behind(words, end + 1)
                continue
            outside.append(words[i])
            i += 1
        self._odd ^= bool(words.count('"') % 2)
        while speeches and outside and outside[-1] in _PAUSES:
            outside.pop()
        return outside, speeches


def _is_speech(words: Sequence[str], begin: int, end: int) -> bool:
    """Whether the quotation from `begin` to `end` is direct speech and not a title."""
    content = words[begin + 1 : end]
    if len(content) < _LEAST_WORDS or not (content[0][0].isupper() or content[0][0].isdigit()):
        return False
    of_speaker = any(word.lower() in _FIRST_PERSON for word in content)
    if not of_speaker and not any(w.islower() and tagger().lexicon.get(w, "") in _FINITE_TAGS for w in content):
        return False
    if (begin == 0 and end >= len(words) - 1) or (of_speaker and content[-1] in (",", "?", "!", ".")):
        return True
    if content[-1] in (",", "?", "!") and any(word.lower() in _SAYS for word in words[end + 1 : end + 4]):
        return True
    before = [word.lower() for word in words[max(begin - 2, 0) : begin]]
    return bool(before) and (before[-1] in _SAYS or (before[-1] in (",", ":") and before[0] in _SAYS))


def _behind(words: Sequence[str], i: int) -> int:
    """Returns where the sentence continues after a speech; an inverted "said" (as in "…" said Ann Lee) is skipped."""
    while i < len(words) and not words[i][0].isalnum():
        i += 1
    inverted = i + 1 < len(words) and words[i].lower() in _SAYS
    return i + 1 if inverted and (words[i + 1][0].isupper() or words[i + 1] in ("the", "a", "an")) else i


def without_dateline(words: Sequence[str]) -> Sequence[str]:
    """Returns the words without a dateline, such as "OSLO, Jan 5 (Reuters) - "."""
    for i, word in enumerate(words[:_DATELINE_WORDS]):
        if word in _DASHES:
            stamp = words[:i]
            stamped = bool(stamp) and (stamp[-1] == ")" or ("," in stamp and stamp[0].isupper() and len(stamp[0]) > 2))
            return words[i + 1 :] if stamped and i + 1 < len(words) and words[i + 1][0].isupper() else words
        if not (word[0].isupper() or word[0].isdigit() or word in ("(", ")", ",", ".")):
            return words
    return words
