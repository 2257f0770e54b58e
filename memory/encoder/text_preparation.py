"""Prepares texts for encoding: truncates them, makes them valid Unicode, adds the models' prefixes, and groups them by length.

A text that is longer than its model's maximum is encoded in windows that cover the whole text. Its vector is the mean of the
windows' vectors, weighted by their numbers of tokens (docs/decisions/0005-passages-longer-than-the-encoder-reads.md).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from memory.types import Matrix

MAX_QUERY_CHARS = 8192
"""Maximum number of characters of a query for a local model; the rest is cut off before tokenising."""
MAX_INDEXED_CHARS = 1 << 18
"""Maximum number of characters of an indexed text: 8,192 tokens, the largest `[passages] max_tokens`, of 32 characters each."""
_TASK = "Given a question, retrieve passages that answer it"
_TRIPLE_TASK = "Given a question, retrieve facts that match it"
_PHRASE_TASK = "Given a question, retrieve phrases that it mentions or that matter to it"
_NAME_TASK = "Given a phrase, retrieve phrases that mean the same or nearly the same"
MODEL_PREFIXES: tuple[tuple[str, str, str], ...] = (
    ("e5-mistral", f"Instruct: {_TASK}\nQuery: ", ""),
    ("multilingual-e5-large-instruct", f"Instruct: {_TASK}\nQuery: ", ""),
    ("e5-", "query: ", "passage: "),
    ("nv-embed", f"Instruct: {_TASK}\nQuery: ", ""),
    ("gritlm", f"<|user|>\n{_TASK}\n<|embed|>\n", "<|embed|>\n"),
    ("gte-qwen2", f"Instruct: {_TASK}\nQuery: ", ""),
    ("qwen3-embedding", f"Instruct: {_TASK}\nQuery:", ""),
    ("nomic-embed", "search_query: ", "search_document: "),
    ("snowflake-arctic-embed", "Represent this sentence for searching relevant passages: ", ""),
    ("mxbai-embed", "Represent this sentence for searching relevant passages: ", ""),
    ("bge-m3", "", ""),
    ("bge-", "Represent this sentence for searching relevant passages: ", ""),
    ("embeddinggemma", "task: search result | query: ", "title: none | text: "),
)
"""(part of the model's name in lower case, prefix of a query, prefix of a text), as the models' makers document them. The first
matching row applies."""

SLACK = 0.25
"""Maximum share of a window that may be omitted so that the window ends between two words."""
Span = tuple[int, int]
"""Offsets of a token in its text: first character, and end (exclusive)."""


def prefixes_of(model: str) -> tuple[str, str]:
    """Returns (prefix of a query, prefix of a text) for `model`; empty strings for an unknown model."""
    name = model.lower()
    return next(((query, text) for part, query, text in MODEL_PREFIXES if part in name), ("", ""))


def triple_query_prefix_of(model: str) -> str:
    """Returns the prefix of a query that is compared with triples. A model that takes instructions gets an instruction for
    facts, as HippoRAG 2's authors use for NV-Embed and GritLM; other models get the prefix of any query."""
    return prefixes_of(model)[0].replace(_TASK, _TRIPLE_TASK)


def phrase_query_prefix_of(model: str, is_name: bool) -> str:
    """Returns the prefix of a query, or of a name in a query, that is compared with phrases. Like `triple_query_prefix_of`."""
    return prefixes_of(model)[0].replace(_TASK, _NAME_TASK if is_name else _PHRASE_TASK)


def rows_of_equal_length(lengths: Sequence[int], max_rows: Callable[[int], int]) -> Iterator[list[int]]:
    """Yields groups of rows of equal length, shortest first, at most `max_rows(length)` rows each. Rows of length 0 are
    omitted."""
    by_length: dict[int, list[int]] = {}
    for row, length in enumerate(lengths):
        if length:
            by_length.setdefault(length, []).append(row)
    for length, rows in sorted(by_length.items()):
        size = max_rows(length)
        yield from (rows[at : at + size] for at in range(0, len(rows), size))


def rows_of_similar_length(lengths: Sequence[int], max_rows: int) -> Iterator[list[int]]:
    """Yields groups of rows by increasing length, at most `max_rows` rows each. Rows of length 0 are omitted."""
    rows = sorted((row for row, length in enumerate(lengths) if length), key=lengths.__getitem__)
    yield from (rows[at : at + max_rows] for at in range(0, len(rows), max_rows))


def tokenizable(text: str, limit: int) -> str:
    """Returns the first `limit` characters of `text` as valid Unicode.

    It is cut before tokenising, because a tokeniser processes all of a text and then drops most of it. Tokenisers refuse
    surrogates: a surrogate pair becomes its character, a lone surrogate becomes U+FFFD.
    """
    text = text[:limit]
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def text_windows(text: str, spans: Sequence[Span], room: int) -> list[str]:
    """Returns windows of `text` of nearly equal length with at most `room` tokens each, or `[text]` if the text has at most
    `room` tokens.

    `spans`: the spans of the text's tokens, in order. A window ends before a word, if a word begins near its end.
    """
    if len(spans) <= room:
        return [text]
    starts = [0, *_starts(text, spans, room), len(text)]
    return [text[start:end] for start, end in pairwise(starts)]


def _starts(text: str, spans: Sequence[Span], room: int) -> Iterator[int]:
    """Yields the first character of each window except the first window."""
    at = 0
    while len(spans) - at > room:
        left = len(spans) - at
        length = -(-left // -(-left // room))
        end, shortest = at + length, at + max(1, math.ceil(length * (1 - SLACK)))
        while end > shortest and not _begins_word(text, spans[end]):
            end -= 1
        if not _begins_word(text, spans[end]):
            end = at + length
        yield spans[end][0]
        at = end


def _begins_word(text: str, span: Span) -> bool:
    start = span[0]
    return text[start : start + 1].isspace() or text[start - 1 : start].isspace()


def pooled(vectors: Matrix, counts: Sequence[Sequence[int]]) -> Matrix:
    """Returns the vector of each text, L2-normalised; zero for a text without windows.

    `vectors`: the vectors of all windows, text by text. `counts`: for each text, the token counts of its windows.
    """
    of_texts = np.zeros((len(counts), vectors.shape[1]), np.float32)
    at = 0
    for row, each in enumerate(counts):
        if len(each) == 1:
            of_texts[row] = vectors[at]
        elif each:
            mean = np.array(each, np.float32) @ vectors[at : at + len(each)]
            of_texts[row] = mean / np.linalg.norm(mean)
        at += len(each)
    return of_texts
