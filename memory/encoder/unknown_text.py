"""Whether a model's tokeniser knows anything of a text, and how many of its words. Where it knows nothing, the vector is zero.

A model that never saw a language still gives its texts vectors. Its tokeniser makes most characters the unknown token, or cuts
words into single letters, and nearly all such texts come out alike. Cosines between them mean nothing, however high.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

LEAST_WORD_PIECES = 100
"""Pieces of two letters or more that the vocabulary has of a script that the model was made for. That of the packaged model has
26,587 of Latin letters, 8 of Cyrillic ones, 4 of Greek ones and none of any other script."""

LEAST_PIECES = 2_000
"""Pieces of any length that do as well, for a script in which a character is a word or half of one. The packaged model's
vocabulary has 488 Chinese characters, models for many languages have thousands."""

UNKNOWN_SHARE = 0.5
"""Beyond this share of tokens that say nothing, a text is unknown."""

_SAYS_NOTHING, _SAYS_SOMETHING, _NOT_COUNTED = 0, 1, 2


class Vocabulary:
    """What each token of a tokeniser says of a text. Immutable, so thread-safe."""

    def __init__(self, pieces: Mapping[str, int], unknown: str | None, special: Iterable[int]) -> None:
        """`pieces`: the vocabulary with its numbers; `unknown`: the piece that stands for what is in none of them; `special`:
        numbers that stand for no text."""
        letters = {piece: _letters(piece) for piece in pieces}
        scripts = {piece: _script_of(found[0]) if found else None for piece, found in letters.items()}
        every = Counter(script for script in scripts.values() if script is not None)
        words = Counter(scripts[piece] for piece, found in letters.items() if len(found) > 1)
        self._says = bytearray([_NOT_COUNTED]) * (max(pieces.values(), default=0) + 1)
        for piece, number in pieces.items():
            script = scripts[piece]
            if script is not None:
                known = words[script] >= LEAST_WORD_PIECES or every[script] >= LEAST_PIECES
                self._says[number] = _SAYS_SOMETHING if known else _SAYS_NOTHING
            elif any(character.isdigit() for character in piece):
                self._says[number] = _SAYS_SOMETHING
        for number in special:
            self._says[number] = _NOT_COUNTED
        if unknown is not None and unknown in pieces:
            self._says[pieces[unknown]] = _SAYS_NOTHING

    def knows(self, tokens: Iterable[int]) -> bool:
        """Whether at most half of the tokens that stand for words, letters or digits say nothing. True where there are none."""
        counts = [0, 0, 0]
        for token in tokens:
            counts[self._says[token]] += 1
        nothing, something, _ = counts
        return nothing <= UNKNOWN_SHARE * (nothing + something)

    def whole_words(self, tokens: Sequence[int], words: Sequence[int | None]) -> float:
        """The share of a text's words that are one token which says something; 1 where there are none.

        `words`: which word each token is a part of, None for one that stands for no text. A model that never met a word has it
        in pieces of a few letters. So of a text in the language that it was made for most words are whole, of others few.
        """
        parts = Counter(word for word, token in zip(words, tokens, strict=True) if self._counts(word, token))
        whole = sum(
            parts[word] == 1 and self._says[token] == _SAYS_SOMETHING
            for word, token in zip(words, tokens, strict=True)
            if self._counts(word, token)
        )
        return whole / len(parts) if parts else 1.0

    def _counts(self, word: int | None, token: int) -> bool:
        return word is not None and self._says[token] != _NOT_COUNTED


def _letters(piece: str) -> str:
    return "".join(filter(str.isalpha, piece))


@cache
def _script_of(letter: str) -> str:
    """As Unicode's names begin: "LATIN", "CJK", "HANGUL"."""
    return unicodedata.name(letter, "?").split(maxsplit=1)[0]
