"""Words, parts of speech and sentences of Chinese, by jieba's dictionary and model (in Rust)."""

import re
from collections.abc import Iterator

from memory.openie.rules.languages import words as w
from memory.openie.rules.languages.words import Word

_STOP = re.compile("[。！？；!?;\n]+")
_QUESTION = frozenset("？?")
_SPACE = re.compile(r"(?<=[\u3400-\u9fff，。、；：（）《》“”])\s+|\s+(?=[\u3400-\u9fff，。、；：（）《》“”])")
_AUXILIARY = frozenset({"是", "为", "能", "能够", "可以", "可", "会", "应", "应该", "应当", "必须", "需要", "需", "将"})
_NEGATION = frozenset({"不", "没有", "没", "未", "无法", "不是", "并非", "不能", "不会", "不可"})
_PREPOSITION = frozenset(
    {"于", "在", "从", "由", "被", "把", "将", "对", "向", "用", "以", "给", "到", "自", "与", "和"}
)
_JOINS = frozenset({"和", "与", "及", "以及", "或", "或者", "、"})
_DETERMINERS = frozenset(
    ["该", "这", "那", "此", "本", "每", "各", "某", "这个", "那个", "这些", "那些", "该项", "一个", "本书"]
)
_PERSONS = frozenset(["他", "她", "它", "他们", "她们", "它们"])
_EXAMPLES = frozenset({"如", "例如", "比如", "即", "譬如", "诸如"})
_NO_VERBS = frozenset({"来", "去", "相关", "虚拟", "任意", "请", "主要", "独立", "守护", "初始", "默认"})
"""What jieba takes for verbs, and what states nothing."""
_ASPECTS = frozenset(["了", "着", "过"])
_SUBORDINATE = frozenset(
    {"如果", "因为", "虽然", "当", "若", "假如", "要是", "只要", "除非", "即使", "为了", "由于", "但"}
)
_NAME_TAGS = frozenset({"nr", "nrt", "nrfg", "ns", "nt", "nz"})
MAX_CHARS = 400
"""Of a sentence; a longer one is cut."""


def chinese_sentences(text: str) -> Iterator[tuple[list[Word], bool]]:
    """Each sentence's words with their tags, and whether it is a question."""
    import rjieba

    text = _SPACE.sub("", text)
    at = 0
    for stop in [*_STOP.finditer(text), None]:
        end = stop.start() if stop else len(text)
        asked = bool(stop and _QUESTION.intersection(stop.group()))
        for start in range(at, end, MAX_CHARS):
            yield _tagged(rjieba.tag(text[start : min(start + MAX_CHARS, end)])), asked
        at = stop.end() if stop else end


def _tagged(pairs: list[tuple[str, str]]) -> list[Word]:
    found: list[Word] = []
    for i, (text, tag) in enumerate(pairs):
        if not text.strip():
            continue
        word = Word(text, _tag(text, tag))
        previous = pairs[i - 1][0] if i else ""
        joined = previous in ("·", "-", ".", "_", "/", "+") and len(found) > 1 and found[-2].tag == w.NAME
        if joined and found[-1].text == previous and (word.tag == w.NAME or text.isalnum()):
            # "伊恩·默多克", "apt-get": one name in three pieces.
            found[-2:] = [Word(found[-2].text + previous + text, w.NAME)]
        else:
            found.append(word)
    for i, word in enumerate(found):
        after = found[i + 1].text if i + 1 < len(found) else ""
        if word.tag == w.NOUN and after == "于":
            found[i] = Word(word.text, w.VERB)  # "毕业于"
        elif word.tag == w.ADVERB and after == "的" and i and found[i - 1].tag != w.ADVERB:
            found[i] = Word(word.text, w.NOUN)  # "明朝的皇宫"
        elif word.tag in (w.ADVERB, w.VERB) and len(word.text) > 1 and i and found[i - 1].tag == w.OF and not after:
            found[i] = Word(word.text, w.NOUN)
    return found


def _tag(text: str, tag: str) -> str:
    if text == "，" or text == ",":
        return w.COMMA
    if text in _JOINS:
        return w.CONJUNCTION
    if text in _NEGATION:
        return w.PARTICLE
    if text in _SUBORDINATE:
        return w.SUBORDINATOR
    if text in _AUXILIARY and tag[0] in "vdp":
        return w.AUXILIARY
    if text in _EXAMPLES:
        return w.MARK
    if text in _ASPECTS or text in _NO_VERBS:
        return w.ADVERB
    if text in _DETERMINERS:
        return w.DETERMINER
    if tag == "r":
        return w.PRONOUN if text in _PERSONS else w.ADVERB
    if text == "的" or text == "之":
        return w.OF
    if text[0].isascii() and text[0].isalpha():
        return w.NAME
    if text[0].isdigit() or tag == "m":
        return w.NUMBER if text[0].isdigit() else w.DETERMINER
    if tag in _NAME_TAGS and len(text) > 1:
        return w.NAME
    if text in _PREPOSITION or tag == "p":
        return w.PREPOSITION
    return _BY_LETTER.get(tag[0], w.ADVERB) if tag != "x" else w.MARK


_BY_LETTER = {
    "n": w.NOUN,
    "v": w.VERB,
    "a": w.ADJECTIVE,
    "b": w.ADJECTIVE,
    "t": w.ADVERB,
    "q": w.DETERMINER,
    "c": w.CONJUNCTION,
    "u": w.PARTICLE,
    "d": w.ADVERB,
    "f": w.ADVERB,
    "s": w.NOUN,
    "j": w.NOUN,
    "l": w.NOUN,
    "i": w.NOUN,
    "z": w.ADJECTIVE,
    "h": w.ADJECTIVE,
    "k": w.NOUN,
    "e": w.ADVERB,
    "y": w.PARTICLE,
    "w": w.MARK,
}
