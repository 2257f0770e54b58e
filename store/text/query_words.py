"""The content words of a query, without function words.

"How" and "which" are common in questions and rare in passages, so BM25 would give them a high weight: the query
"怎样创建交换空间" would find a passage that contains "怎样". A Chinese query is first segmented into words, so that no pair
of characters contains half of a function word. English queries keep all words, because removing function words did
not improve the results.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from store.text.function_words import IDLE_TAGS, IDLE_WORDS
from store.text.language import FUNCTION_WORDS, detect_language
from store.text.scripts import is_unspaced
from store.text.word_split import split_words

MIN_VOTES = 2
"""Minimum number of function words of one language that override the detector. CLD2 often mistakes a few words for a
related language."""
SEGMENTED_CHARS = 4_000
"""Number of characters of a Chinese query that are segmented into words. The rest is split into pairs."""
_ENGLISH = "en"


def content_words(query: str) -> list[str]:
    """Returns the query's words in order, as `split_words` yields them, without function words. Returns all words if all
    are function words."""
    everything = list(split_words(query))
    code = query_language(query)
    if code == "zh":
        kept = list(_chinese_content(query))
    else:
        idle = IDLE_WORDS.get(code, frozenset())
        kept = [word for word in everything if word not in idle]
    return kept or everything


@lru_cache(64)
def query_language(query: str) -> str:
    """Returns the code of the query's language: the detector's, unless the function words show another one; "" if unknown."""
    code = detect_language(query)
    words = list(split_words(query))
    votes = {each: sum(word in idle for word in words) for each, idle in IDLE_WORDS.items()}
    votes[_ENGLISH] = sum(word in _ENGLISH_WORDS for word in words)
    best = max(votes, key=lambda each: (votes[each], each == code))
    return best if votes[best] >= MIN_VOTES and votes[best] > votes.get(code, 0) else code


_ENGLISH_WORDS = FUNCTION_WORDS[_ENGLISH] | frozenset(
    re.findall(
        r"\w+",
        "who whom whose what when where why how can could do does did has had i me my you your we one a if so there this "
        "these those would will should",
    )
)


def _chinese_content(query: str) -> Iterator[str]:
    """Yields the pairs of characters of each run of content words, and the words written in letters."""
    import rjieba  # imported here because the import loads the dictionary

    run = ""
    for word, tag in rjieba.tag(query[:SEGMENTED_CHARS]):
        if is_unspaced(word) and tag not in IDLE_TAGS["zh"] and word not in IDLE_WORDS["zh"]:
            run += word
            continue
        yield from split_words(run)
        run = ""
        if not is_unspaced(word):
            yield from split_words(word)
    yield from split_words(run)
    yield from split_words(query[SEGMENTED_CHARS:])
