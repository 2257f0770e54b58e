"""Measures of one question, and their averages.

Exact match and token F1 are computed as in the evaluations of MuSiQue and SQuAD.
"""

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, quantiles
from typing import Any, Protocol

from cli.evaluation.gold import FoundPassage
from cli.evaluation.questions import EvalQuestion
from daemon.contract.evaluation import FilterStatistics, ModelCost, Percentiles
from daemon.contract.query import QueryResponse

_PUNCTUATION = frozenset(string.punctuation)
KEYWORD_RECALL = 0.2
"""Minimum share of the keywords' words that an English answer must contain to score above 0 (LV-Eval)."""
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
    """Returns LV-Eval's F1; 0 if the answer contains too few of the keywords' words. Common words are not counted."""
    answer_words, keyword_words = _tokens(answer), _tokens(keywords)
    is_chinese = bool(_HAN.search(keywords))
    same = Counter(answer_words) & Counter(keyword_words)
    common = _COMMON_CHINESE if is_chinese else _COMMON_ENGLISH
    recall = (
        sum(count for word, count in same.items() if word not in common) / len(keyword_words) if keyword_words else 1.0
    )
    if recall < (KEYWORD_RECALL_CHINESE if is_chinese else KEYWORD_RECALL):
        return 0.0
    return max((_f1(answer_words, _tokens(each)) for each in known), default=0.0)


def _tokens(text: str) -> list[str]:
    """Returns the text's words: by jieba if it is Chinese, otherwise by `words`."""
    if not _HAN.search(text):
        return words(text)
    import rjieba

    return [word for each in rjieba.cut(text.lower()) for word in words(_CHINESE_PUNCTUATION.sub("", each))]


def _f1(predicted: list[str], gold: list[str]) -> float:
    if not predicted or not gold:
        return float(predicted == gold)
    same = sum((Counter(predicted) & Counter(gold)).values())
    return 2 * same / (len(predicted) + len(gold))


class Question(Protocol):
    """A question with `gold` passages or documents; `found(ranked)` returns the number of them among `ranked`."""

    @property
    def gold(self) -> int: ...
    def found(self, ranked: Sequence[Any]) -> int: ...


def recalls_at(ks: Sequence[int], question: Question, ranked: Sequence[Any]) -> list[float]:
    """Returns, for each k, the share of the question's gold among the first k passages."""
    return [question.found(ranked[:k]) / question.gold for k in ks]


def recall_by_k(ks: Sequence[int], question: Question, found: Sequence[Any]) -> dict[str, float]:
    return {str(k): round(share, 6) for k, share in zip(ks, recalls_at(ks, question, found), strict=True)}


def documents_of(found: Sequence[FoundPassage], k: int) -> list[str]:
    """Returns the documents of the first k passages, each once."""
    return list(dict.fromkeys(passage.document for passage in found[:k]))


def compared(question: EvalQuestion, short: str | None) -> dict[str, Any]:
    """Returns the scores of a short answer; 0 if it is None, and no scores if no answer is known."""
    if question.holds is not None:
        return {"correct": short == ("true" if question.holds else "false")}
    if not question.answers:
        return {}
    given = short or ""
    scores: dict[str, Any] = {"em": 0.0, "f1": 0.0}
    if short is not None:
        scores = {"em": exact(given, question.answers), "f1": round(f1(given, question.answers), 6)}
    if question.keywords:
        scores["keyword_f1"] = round(keyword_f1(given, question.answers, question.keywords), 6)
    return scores


def mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(fmean(known), 4) if known else None


def means(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Returns the mean by key, over the rows that have the key."""
    keys = dict.fromkeys(key for row in rows for key in row)
    return {key: round(fmean(row[key] for row in rows if key in row), 4) for key in keys}


@dataclass
class FilterTally:
    """Effects of recognition memory on the queries so far."""

    linked: list[tuple[int, int]] = field(default_factory=list)
    """(number of linked triples, number of triples that recognition memory kept) of each query."""
    unfiltered: int = 0

    def add(self, answer: QueryResponse) -> None:
        if answer.note is not None and answer.note.startswith("unfiltered"):
            self.unfiltered += 1
        elif answer.triples:
            self.linked.append((len(answer.triples), sum(triple.kept for triple in answer.triples)))

    def result(self) -> FilterStatistics | None:
        """Returns the statistics; None if the filter removed no triple and never failed."""
        offered, kept = (sum(part) for part in zip(*self.linked, strict=True)) if self.linked else (0, 0)
        if offered == kept and not self.unfiltered:
            return None
        emptied = sum(not left for _, left in self.linked)
        share = round(kept / offered, 4) if offered else 0.0
        return FilterStatistics(queries=len(self.linked), kept=share, emptied=emptied, unfiltered=self.unfiltered)


def mean_cost(costs: Sequence[tuple[int, int, int]]) -> ModelCost:
    calls, prompt, completion = (round(fmean(part), 4) for part in zip(*costs, strict=True))
    return ModelCost(calls=calls, prompt_tokens=prompt, completion_tokens=completion)


def percentiles(times: Sequence[float]) -> Percentiles:
    """Returns p50 and p95 by linear interpolation between the nearest two values."""
    cuts = quantiles(times, n=20, method="inclusive") if len(times) > 1 else [times[0]] * 19
    return Percentiles(p50=round(cuts[9], 3), p95=round(cuts[18], 3))
