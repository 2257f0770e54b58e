"""Exact match and token F1 between an answer and the known answers, as in the evaluations of MuSiQue and SQuAD."""

import re
import string
from collections import Counter
from collections.abc import Sequence

_PUNCTUATION = frozenset(string.punctuation)
KEYWORD_RECALL = 0.2
"""LV-Eval's minimum share of the keywords' words in a scored answer, for English."""
KEYWORD_RECALL_CHINESE = 0.4
_HAN = re.compile(r"[\u3400-\u9fff]")
_CHINESE_PUNCTUATION = re.compile(r"[\u3000-\u303f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65‐-‧]")
_ENGLISH = (
    "and to of in her was with for it from is that his he by she they or at because be on are their what as had were about "
    "being this who but have has when which does"
)
_CHINESE = (
    "的 和 是 等 在 年 可以 为 与 了 或 一种 月 至 日 有 进行 于 不 中 根据 "
    "小 由 也 要 指 法 会 元 主要 以及 通过 首先 对 然后 号 以 所 后 包括 无 "
    "将 用 能 形 方面 因素 位于 而 从 到 一定 用于 但 使用 让 具有 并 上 类 基于 "
    "才 来 地 片 其他 个 或者 变得 时 给 你 使 条 受 已经 带 度"
)
_COMMON_ENGLISH = frozenset(_ENGLISH.split())
"""Words that LV-Eval does not count among keywords."""
_COMMON_CHINESE = frozenset(_CHINESE.split())
_ARTICLES = frozenset({"a", "an", "the"})


def words(text: str) -> list[str]:
    """Returns the words in lower case, without punctuation and articles."""
    bare = "".join(char for char in text.lower() if char not in _PUNCTUATION)
    return [word for word in bare.split() if word not in _ARTICLES]


def exact(answer: str, known: Sequence[str]) -> float:
    return float(any(words(answer) == words(each) for each in known))


def f1(answer: str, known: Sequence[str]) -> float:
    """Returns the best F1 over the known answers."""
    return max((_f1(words(answer), words(each)) for each in known), default=0.0)


def keyword_f1(answer: str, known: Sequence[str], keywords: str) -> float:
    """Returns LV-Eval's F1: 0 if the answer has too few words of the keywords, not counting common words."""
    said, wanted = _tokens(answer), _tokens(keywords)
    is_chinese = bool(_HAN.search(keywords))
    same = Counter(said) & Counter(wanted)
    common = _COMMON_CHINESE if is_chinese else _COMMON_ENGLISH
    recall = sum(count for word, count in same.items() if word not in common) / len(wanted) if wanted else 1.0
    if recall < (KEYWORD_RECALL_CHINESE if is_chinese else KEYWORD_RECALL):
        return 0.0
    return max((_f1(said, _tokens(each)) for each in known), default=0.0)


def _tokens(text: str) -> list[str]:
    """Returns `words` of the text; the words that jieba finds if it is Chinese."""
    if not _HAN.search(text):
        return words(text)
    import rjieba

    return [word for each in rjieba.cut(text.lower()) for word in words(_CHINESE_PUNCTUATION.sub("", each))]


def _f1(predicted: list[str], gold: list[str]) -> float:
    if not predicted or not gold:
        return float(predicted == gold)
    same = sum((Counter(predicted) & Counter(gold)).values())
    return 2 * same / (len(predicted) + len(gold))
