"""Prepares texts for encoding: truncates them, makes them valid Unicode, knows the prefixes of models, and groups by length."""

from collections.abc import Callable, Iterator, Sequence

MAX_QUERY_CHARS = 8192
"""Maximum length of a query, before tokenising by a local model."""
MAX_INDEXED_CHARS = 1 << 18
"""Maximum length of an indexed text: 8,192 tokens of 32 characters, the largest `[passages] max_tokens`."""

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
matching row counts."""


def prefixes_of(model: str) -> tuple[str, str]:
    """Returns (prefix of a query, prefix of a text) for `model`; two empty strings for an unknown model."""
    name = model.lower()
    return next(((query, text) for part, query, text in MODEL_PREFIXES if part in name), ("", ""))


def triple_query_prefix_of(model: str) -> str:
    """Returns the prefix of a query that is compared with triples: for a model that takes instructions one for facts, as
    HippoRAG 2's authors use for NV-Embed and GritLM, otherwise the prefix of any query."""
    return prefixes_of(model)[0].replace(_TASK, _TRIPLE_TASK)


def phrase_query_prefix_of(model: str, is_name: bool) -> str:
    """Returns the prefix of a query, or of a name in a query, that is compared with phrases; as `triple_query_prefix_of`."""
    return prefixes_of(model)[0].replace(_TASK, _NAME_TASK if is_name else _PHRASE_TASK)


def rows_of_equal_length(lengths: Sequence[int], most: Callable[[int], int]) -> Iterator[list[int]]:
    """Yields rows of one length, shortest first, at most `most(length)` together. Rows of length 0 are left out."""
    by_length: dict[int, list[int]] = {}
    for row, length in enumerate(lengths):
        if length:
            by_length.setdefault(length, []).append(row)
    for length, rows in sorted(by_length.items()):
        size = most(length)
        yield from (rows[at : at + size] for at in range(0, len(rows), size))


def rows_of_similar_length(lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """Yields rows by increasing length, at most `most` together. Rows of length 0 are left out."""
    rows = sorted((row for row, length in enumerate(lengths) if length), key=lengths.__getitem__)
    yield from (rows[at : at + most] for at in range(0, len(rows), most))


def tokenizable(text: str, limit: int) -> str:
    """Returns the first `limit` characters of `text` as valid Unicode.

    Truncated before tokenising, because a tokeniser reads all of a megabyte and then drops everything but a page. A surrogate
    pair becomes its character, a lone surrogate U+FFFD, because a tokeniser refuses surrogates.
    """
    text = text[:limit]
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
