"""The unit of passage sizes: a token is a word, a CJK character, or a punctuation mark.

A word is a run of letters, digits and underscores. A run of more than 32 characters counts as one token per started 32
characters, so that text without spaces is measured too. Chinese and Japanese are written without spaces, so each of their
characters is a token.
"""

import re

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
TOKEN = re.compile(rf"[{_CJK}]|[^\W{_CJK}]{{1,32}}|[^\w\s]")


def count_tokens(text: str) -> int:
    if len(text) < 100_000:
        return len(TOKEN.findall(text))
    return sum(1 for _ in TOKEN.finditer(text))  # a list of tens of millions of strings would not fit into memory
