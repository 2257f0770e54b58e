"""Decides whether a model's tokeniser knows a text, and which share of the text's words it knows. The vector of an unknown text
is zero.

A model also gives vectors to texts in languages on which it was not trained. Its tokeniser then produces mostly unknown tokens
or single letters. Nearly all such texts get similar vectors, so their cosines mean nothing.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

MIN_WORD_PIECES = 100
"""A vocabulary knows a script if it has this many pieces with two or more of its letters. The packaged model's vocabulary has
26,587 such pieces of Latin letters, 8 of Cyrillic letters, 4 of Greek letters, and none of other scripts."""

MIN_PIECES = 2_000
"""A vocabulary also knows a script if it has this many pieces of any length, for scripts in which a character is a word or half
a word. The packaged model's vocabulary has 488 Chinese characters; multilingual models have thousands."""

UNKNOWN_SHARE = 0.5
"""A text is unknown if more than this share of its tokens is meaningless."""

_MEANINGLESS, _MEANINGFUL, _NOT_COUNTED = 0, 1, 2


class Vocabulary:
    """Knows which tokens of a tokeniser have a meaning. Immutable, hence thread-safe."""

    def __init__(self, pieces: Mapping[str, int], unknown: str | None, special: Iterable[int]) -> None:
        """`pieces`: the number of each piece of the vocabulary. `unknown`: the piece for characters outside the vocabulary.
        `special`: numbers of tokens that represent no text."""
        letters = {piece: _letters(piece) for piece in pieces}
        scripts = {piece: _script_of(found[0]) if found else None for piece, found in letters.items()}
        every = Counter(script for script in scripts.values() if script is not None)
        words = Counter(scripts[piece] for piece, found in letters.items() if len(found) > 1)
        self._kinds = bytearray([_NOT_COUNTED]) * (max(pieces.values(), default=0) + 1)
        for piece, number in pieces.items():
            script = scripts[piece]
            if script is not None:
                known = words[script] >= MIN_WORD_PIECES or every[script] >= MIN_PIECES
                self._kinds[number] = _MEANINGFUL if known else _MEANINGLESS
            elif any(character.isdigit() for character in piece):
                self._kinds[number] = _MEANINGFUL
        for number in special:
            self._kinds[number] = _NOT_COUNTED
        if unknown is not None and unknown in pieces:
            self._kinds[pieces[unknown]] = _MEANINGLESS

    def knows(self, tokens: Iterable[int]) -> bool:
        """Whether at most half of the tokens with letters or digits are meaningless."""
        counts = [0, 0, 0]
        for token in tokens:
            counts[self._kinds[token]] += 1
        nothing, something, _ = counts
        return nothing <= UNKNOWN_SHARE * (nothing + something)

    def whole_words(self, tokens: Sequence[int], words: Sequence[int | None]) -> float:
        """Returns the share of a text's words that are one meaningful token; 1 for a text without words.

        `words`: for each token, the number of its word; None for tokens that represent no text. Tokenisers split words outside
        the vocabulary into pieces of a few letters. So most words of a text in the model's language are whole, but few words of
        other texts.
        """
        parts = Counter(word for word, token in zip(words, tokens, strict=True) if self._counts(word, token))
        whole = sum(
            parts[word] == 1 and self._kinds[token] == _MEANINGFUL
            for word, token in zip(words, tokens, strict=True)
            if self._counts(word, token)
        )
        return whole / len(parts) if parts else 1.0

    def _counts(self, word: int | None, token: int) -> bool:
        return word is not None and self._kinds[token] != _NOT_COUNTED


def _letters(piece: str) -> str:
    return "".join(filter(str.isalpha, piece))


@cache
def _script_of(letter: str) -> str:
    """Returns the first word of the letter's Unicode name, such as "LATIN", "CJK" or "HANGUL"."""
    return unicodedata.name(letter, "?").split(maxsplit=1)[0]
