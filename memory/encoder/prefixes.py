"""What models want before a query and before a text to be indexed, as their makers document it, by the model's name."""

_TASK = "Given a question, retrieve passages that answer it"

PREFIXES: tuple[tuple[str, str, str], ...] = (
    # part of the model's name in small letters, before a query, before a text; the first that fits counts
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


def prefixes(model: str) -> tuple[str, str]:
    """What stands before a query and before a text for `model`; nothing for one that is not known."""
    name = model.lower()
    return next(((query, text) for part, query, text in PREFIXES if part in name), ("", ""))
