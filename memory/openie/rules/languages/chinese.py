"""Finds names and nouns in Chinese with the dictionary and the model of jieba (in Rust)."""

import re
from collections.abc import Iterator
from itertools import accumulate

from memory.openie.rules.languages.words import NAME, NOUN, NUMBER, OTHER, Word

_STOP = re.compile("[。！？；!?;\n]+")
_SPACE = re.compile(r"(?<=[\u3400-\u9fff，。、；：（）《》“”])\s+|\s+(?=[\u3400-\u9fff，。、；：（）《》“”])")
_SOUNDS = (
    "阿埃艾爱愛安昂奥奧巴拜班邦贝貝本比彼毕宾賓波伯博勃布查昌楚茨达達戴丹当道德邓鄧迪蒂丁东杜顿頓多厄恩尔爾法凡范方菲费費芬丰佛弗夫福"
    "富盖蓋甘冈岡高戈格根贡古瓜圭哈海汉漢豪赫黑亨洪胡华華怀惠霍基吉加佳贾賈简簡杰金京居喀卡凯凱坎康考科克肯孔库庫夸奎拉莱萊兰蘭朗劳勞勒"
    "雷黎李里理莉利丽麗连連列林琳龙龍隆卢盧鲁魯伦倫罗羅洛吕玛瑪马馬麦麥迈邁曼芒毛梅门門蒙米密明缪摩莫墨默姆穆纳納娜奈南瑙内嫩尼妮宁寧纽"
    "紐农努诺諾欧歐帕派潘庞佩彭皮平珀普蒲奇齐齊契恰强乔喬切钦琼瓊丘让讓热仁荣榮儒若撒萨薩塞赛賽桑瑟森沙山珊尚绍舍申圣聖盛施什史士朔斯絲丝"
    "司松苏蘇索孙孫塔泰坦汤湯唐陶特滕廷通图圖托瓦万萬旺威韦韋维維魏温溫翁沃乌烏武芙西希席夏香肖谢謝辛欣休许許雪逊遜雅亚亞延扬楊耶叶葉伊依易"
    "因英尤约約赞泽澤扎詹张張章哲珍芝朱卓兹茲祖佐连冯馮"
)
"""Characters with which foreign names are written by their sound."""
_FOREIGN = re.compile("[\u3400-\u9fff]{1,8}(?:[·•‧・][\u3400-\u9fff]{1,8}){1,4}")
_DOTS = "·•‧・"
_NAME_TAGS = frozenset({"nr", "nrt", "nrfg", "ns", "nt", "nz"})
_WITHIN = frozenset("-._/+")
MAX_CHARS = 400
"""Maximum number of characters of a sentence; a longer sentence is divided."""


def chinese_sentences(text: str) -> Iterator[list[Word]]:
    import rjieba

    text = _SPACE.sub("", text)
    for sentence in _STOP.split(text):
        for start in range(0, len(sentence), MAX_CHARS):
            part = sentence[start : start + MAX_CHARS]
            words: list[Word] = []
            at = 0
            for found in _FOREIGN.finditer(part):
                begin, end = _bounds_of_name(part, found)
                words += [*_tagged(rjieba.tag(part[at:begin])), Word(part[begin:end], NAME)]
                at = end
            yield [*words, *_tagged(rjieba.tag(part[at:]))]


def _bounds_of_name(text: str, found: re.Match[str]) -> tuple[int, int]:
    """Returns where a foreign name in `text` begins and ends. `found`: its parts; the first and the last part may be too long.

    They contain at least the words next to the first and the last dot. Both parts grow while characters of foreign names
    follow, but no word is divided: in "卡特拉·隆德维护", "维护" is a word.
    """
    import rjieba

    dots = [found.start() + i for i, char in enumerate(found.group()) if char in _DOTS]
    begin = dots[0] - len(rjieba.cut(text[found.start() : dots[0]])[-1])
    while begin > found.start() and text[begin - 1] in _SOUNDS:
        begin -= 1
    last = dots[-1] + 1
    sounds = last
    while sounds < found.end() and text[sounds] in _SOUNDS:
        sounds += 1
    ends = list(accumulate(map(len, rjieba.cut(text[last : sounds + 3])), initial=last))[1:]
    return begin, max((end for end in ends if end <= sounds), default=min(ends[0], found.end()))


def _tagged(pairs: list[tuple[str, str]]) -> list[Word]:
    found: list[Word] = []
    for i, (text, tag) in enumerate(pairs):
        if not text.strip():
            continue
        word = Word(text, _tag(text, tag))
        previous = pairs[i - 1][0] if i else ""
        joins = previous in _WITHIN and len(found) > 1 and found[-2].tag == NAME and found[-1].text == previous
        if joins and text.isalnum():
            found[-2:] = [Word(found[-2].text + previous + text, NAME)]  # "apt-get"
        else:
            found.append(word)
    return found


def _tag(text: str, tag: str) -> str:
    if text[0].isascii() and text[0].isalpha():
        return NAME
    if text[0].isdigit():
        return NUMBER
    if tag in _NAME_TAGS and len(text) > 1:
        return NAME
    return NOUN if (tag[0] in "nsjl" or tag == "vn") and len(text) > 1 else OTHER
