"""The words of a query that say what it is about: without those that only make a question of it.

"How" and "which" are everywhere in questions and seldom in what answers them, so among passages they are rare and count for
much: "怎样创建交换空间" would find a passage that says "怎样". Chinese is cut into words first, so that no pair of characters
counts which is half a function word. English questions keep all of their words: without the function words they found no more.
"""

import re
from collections.abc import Iterator

from store.text.function_words import IDLE_TAGS, IDLE_WORDS
from store.text.language import FUNCTION_WORDS, detect_language
from store.text.scripts import is_unspaced
from store.text.word_split import split_words

LEAST_VOTES = 2
"""Function words of one language that outvote the detector. A few words are often taken for a neighbouring language."""
SEGMENTED_CHARS = 4_000
"""Of a Chinese query that is cut into words; the rest is read by pairs."""
_ENGLISH = "en"


def content_words(query: str) -> list[str]:
    """The query's words in order, as `split_words` gives them, without function words; all of them if it has no others."""
    everything = list(split_words(query))
    code = query_language(query)
    if code == "zh":
        kept = list(_chinese_content(query))
    else:
        idle = IDLE_WORDS.get(code, frozenset())
        kept = [word for word in everything if word not in idle]
    return kept or everything


def query_language(query: str) -> str:
    """The detector's code for the query's language, unless its function words are another's; "" where nobody can tell."""
    code = detect_language(query)
    words = list(split_words(query))
    votes = {each: sum(word in idle for word in words) for each, idle in IDLE_WORDS.items()}
    votes[_ENGLISH] = sum(word in _ENGLISH_WORDS for word in words)
    best = max(votes, key=lambda each: (votes[each], each == code))
    return best if votes[best] >= LEAST_VOTES and votes[best] > votes.get(code, 0) else code


_ENGLISH_WORDS = FUNCTION_WORDS[_ENGLISH] | frozenset(
    re.findall(
        r"\w+",
        "who whom whose what when where why how can could do does did has had i me my you your we one a if so there this "
        "these those would will should",
    )
)


def _chinese_content(query: str) -> Iterator[str]:
    """Pairs of characters of each run of words that are of no closed class, and what is written in letters."""
    import rjieba  # reads its dictionary when it is loaded

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
