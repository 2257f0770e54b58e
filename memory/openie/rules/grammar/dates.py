"""Recognises dates and years among a sentence's tokens."""

from collections.abc import Sequence

from memory.openie.rules.grammar.tokenizer import word_set

MONTHS = word_set(
    "january february march april may june july august september october november december jan feb mar apr jun jul aug "
    "sep sept oct nov dec"
)
CALENDAR = MONTHS | word_set("monday tuesday wednesday thursday friday saturday sunday spring autumn")


def is_year(word: str) -> bool:
    return len(word) == 4 and word.isdigit() and "1000" <= word <= "2199"


def noun_follows(words: Sequence[str], tags: Sequence[str], i: int) -> bool:
    return (
        i + 1 < len(words) and (tags[i + 1] in ("NN", "NNS", "JJ") or words[i + 1][0].isupper()) and tags[i + 1] != "IN"
    )


def date_end(words: Sequence[str], tags: Sequence[str], i: int) -> int:
    """Returns the end of the date that starts at `i`; 0 if there is none."""
    n = len(words)
    if i >= n:
        return 0
    word = words[i]
    if word.lower() in MONTHS and word[0].isupper():
        if i + 1 < n and words[i + 1][0].isdigit():
            if i + 3 < n and words[i + 2] == "," and is_year(words[i + 3]):
                return i + 4
            if i + 2 < n and is_year(words[i + 2]):
                return i + 3
            return i + 2
        return 0
    if (
        word[0].isdigit()
        and len(word) <= 4
        and i + 1 < n
        and words[i + 1].lower() in MONTHS
        and words[i + 1][0].isupper()
    ):
        if i + 2 < n and words[i + 2][0].isdigit() and len(words[i + 2]) <= 4:
            return i + 3
        return i + 2
    if is_year(word) or (len(word) == 5 and word[:4].isdigit() and word[4] == "s"):
        if i + 2 < n and words[i + 1] in ("-", "–") and words[i + 2].isdigit():
            return i + 3
        return 0 if noun_follows(words, tags, i) else i + 1
    return 0
