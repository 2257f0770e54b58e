"""Part-of-speech tagging by Brill's rules, with the English data of the TextBlob package.

Only TextBlob's data files are installed (`memory.packaged_data`). The package needs NLTK, and its tagger tries all 293 context
rules at each token, although only 5 to 25 can apply.
"""

from collections.abc import Callable, Sequence
from functools import cache
from sys import intern

from memory.packaged_data import packaged_data

# Brill (1992), "A simple rule-based part of speech tagger", section 3: a rule looks at most three tokens ahead or back.
_PAD = 3
_EDGE = "STAART"
_FINITE = frozenset({"VBD", "VBZ", "VBP", "MD"})
_AFTER_VERB = frozenset({"DT", "IN", "TO", "PRP$", "CD", "NNP"})
_OPEN = frozenset({"NN", "NNS", "VB", "VBP", "VBZ", "VBD", "VBN"})
_AGENTS = ("er", "or", "ist", "man", "woman", "maid", "law")
_NAMES = frozenset({"NNP", "NNPS"})
_NOT = frozenset({"not", "n't", "never"})
_DO = frozenset({"do", "does", "did"})
_NO_LONGER = {"NN": "VBP", "NNS": "VBZ"}
_CLAIMS = frozenset({"claims", "reports", "doubts", "fears", "hopes", "states"})
_CLOSED = frozenset({"DT", "IN", "PRP", "PRP$", "CC", "TO", "MD", "WDT", "WP", "WP$", "WRB", "EX", "PDT", "RB"})
_Applies = Callable[[list[str], list[str], int], bool]


def _rule(command: str, x: str, y: str) -> _Applies:
    """Returns a function (padded words `w`, tags `t`, token number i): whether the rule applies to the token."""
    rules: dict[str, _Applies] = {
        "PREVTAG": lambda _, t, i: t[i - 1] == x,
        "NEXTTAG": lambda _, t, i: t[i + 1] == x,
        "PREV2TAG": lambda _, t, i: t[i - 2] == x,
        "NEXT2TAG": lambda _, t, i: t[i + 2] == x,
        "PREV1OR2TAG": lambda _, t, i: t[i - 1] == x or t[i - 2] == x,
        "NEXT1OR2TAG": lambda _, t, i: t[i + 1] == x or t[i + 2] == x,
        "PREV1OR2OR3TAG": lambda _, t, i: x in t[i - 3 : i],
        "NEXT1OR2OR3TAG": lambda _, t, i: x in t[i + 1 : i + 4],
        "SURROUNDTAG": lambda _, t, i: t[i - 1] == x and t[i + 1] == y,
        "CURWD": lambda w, _, i: w[i] == x,
        "PREVWD": lambda w, _, i: w[i - 1] == x,
        "NEXTWD": lambda w, _, i: w[i + 1] == x,
        "PREV1OR2WD": lambda w, _, i: w[i - 1] == x or w[i - 2] == x,
        "NEXT1OR2WD": lambda w, _, i: w[i + 1] == x or w[i + 2] == x,
        "WDPREVTAG": lambda w, t, i: t[i - 1] == x and w[i] == y,
        "WDNEXTTAG": lambda w, t, i: w[i] == x and t[i + 1] == y,
        "WDAND2AFT": lambda w, _, i: w[i] == x and w[i + 2] == y,
        "WDAND2TAGBFR": lambda w, t, i: t[i - 2] == x and w[i] == y,
        "WDAND2TAGAFT": lambda w, t, i: w[i] == x and t[i + 2] == y,
        "LBIGRAM": lambda w, _, i: w[i - 1] == x and w[i] == y,
        "RBIGRAM": lambda w, _, i: w[i] == x and w[i + 1] == y,
        "PREVBIGRAM": lambda _, t, i: t[i - 2] == x and t[i - 1] == y,
        "NEXTBIGRAM": lambda _, t, i: t[i + 1] == x and t[i + 2] == y,
    }
    return rules[command]


def _content(name: str) -> str:
    """Returns a data file without the comment at its beginning."""
    text = (packaged_data("textblob") / name).read_text(encoding="utf-8")
    return text[text.rfind("\n;;;") + 1 :].partition("\n")[2]


def _lines(name: str) -> list[list[str]]:
    return [parts for line in _content(name).splitlines() if len(parts := line.split()) > 1]


def _lexicon() -> dict[str, str]:
    """Returns the most frequent tag of each word. All 94,000 lines are split in one call, because every extracting process
    reads them."""
    content = _content("en-lexicon.txt")
    words = content.split()
    if len(words) != 2 * len(content.strip().splitlines()):
        raise ValueError("a line of TextBlob's en-lexicon.txt is not a word and a tag")
    return dict(zip(words[::2], map(intern, words[1::2]), strict=True))


def _find_verb(w: list[str], t: list[str], lexicon: dict[str, str]) -> None:
    """Finds verbs among words tagged as plural nouns: "Ann Lee moves to Bergen", "is a chemist and lives in Tollmin"."""
    for i in range(_PAD + 1, len(t) - _PAD - 1):
        named = w[i - 1][0].isupper() and (t[i + 1] in ("DT", "PRP") or w[i + 1][0].isupper() or w[i + 1] == "that")
        if t[i] == "NNS" and w[i] in _CLAIMS and named:
            t[i] = "VBZ"
    finite = any(tag in _FINITE for tag in t)
    for i in range(_PAD + 1, len(t) - _PAD - 1):
        coordinated = t[i] == "NNS" and t[i - 1] == "CC" and t[i + 1] in ("IN", "DT", "PRP$", "TO")
        if finite and coordinated and lexicon.get(w[i][:-1]) in ("VB", "VBP"):
            t[i] = "VBZ"
    if finite:
        return
    for i in range(_PAD + 1, len(t) - _PAD - 1):
        if (
            t[i] == "NNS"
            and (t[i - 1][:2] == "NN" or w[i - 1][0].isupper())
            and t[i + 1] in _AFTER_VERB
            and w[i].islower()
        ):
            t[i] = "VBZ"
            return


def _mistaken(before: str, after: str, word: str) -> bool:
    """Whether a change does more harm than good outside Brill's corpus: a lower-case word becomes a name, or a function word a
    content word."""
    if after in _NAMES:
        return word[0].islower()
    return before in _CLOSED and after in _OPEN


class Tagger:
    """`tag` is deterministic and takes linear time in the number of tokens."""

    def __init__(self) -> None:
        self.lexicon = _lexicon()
        self._context: dict[str, list[tuple[int, str, _Applies]]] = {}
        for order, (before, after, command, x, *rest) in enumerate(_lines("en-context.txt")):
            self._context.setdefault(before, []).append((order, after, _rule(command, x, rest[0] if rest else "")))
        # Rules about the next word ("good" rules) are omitted, because they need a dictionary of word pairs.
        self._suffixes = [
            (line[0], line[1], line[2].removeprefix("f"), line[-2])
            if line[2][0] == "f"
            else ("", line[0], line[1], line[-2])
            for line in _lines("en-morphology.txt")
            if "good" not in line[1] + line[2]
        ]

    def is_common(self, word: str) -> bool:
        """Whether English has this lower-case word, except as a name."""
        return self.lexicon.get(word, "NNP") not in _NAMES

    def opens_name(self, word: str) -> bool:
        """Whether a sentence's first word is a name, although its position requires a capital."""
        lower = word.lower()
        return not self.is_common(lower) or (
            self.lexicon.get(word) in _NAMES and self.lexicon.get(lower) not in ("NN", "NNS")
        )

    def is_base_verb(self, word: str) -> bool:
        """Whether a lower-case word can be the base form of a verb: the lexicon has it as one, or has its past or -ing form as
        a verb."""
        tag = self.lexicon.get(word, "")
        if tag in ("VB", "VBP"):
            return True
        if tag[:2] not in ("NN", "JJ", "VB", "RB") or not word.isalpha():
            return False
        stem = word.removesuffix("e")
        forms = (f"{stem}ed", f"{word}{word[-1]}ed", f"{stem}ing", f"{word}{word[-1]}ing")
        return any(self.lexicon.get(form, "")[:2] == "VB" for form in forms)

    def _may_be_past(self, word: str) -> bool:
        return word.endswith(("ed", "n")) or self.is_base_verb(word)

    def tag(self, words: Sequence[str]) -> list[str]:
        """Returns the Penn Treebank tag of each token of a sentence."""
        lexicon = self.lexicon
        found = ["CD" if word[0].isdigit() else lexicon.get(word) or self._guess(word) for word in words]
        if words and words[0][:1].isupper():
            lower = lexicon.get(words[0].lower())
            if lower and (words[0] not in lexicon or (lower in _CLOSED and lower != "RB")):
                found[0] = lower
            elif not lower and words[0].endswith("ing") and found[1:2] == ["DT"]:
                found[0] = "VBG"  # "Configuring a cache is"
        for i in range(1, len(found)):
            if words[i] == "I" and words[i - 1][0].isupper() and found[i - 1] != "CC":
                found[i] = "NNP"
        return self._in_context(words, found)

    def _in_context(self, words: Sequence[str], found: list[str]) -> list[str]:
        edge = [_EDGE] * _PAD
        w, t = [*edge, *words, *edge], [*edge, *found, *edge]
        context = self._context
        for i in range(_PAD, len(w) - _PAD):
            done = -1
            rules = context.get(t[i])
            while rules:
                for order, after, applies in rules:
                    if order > done and applies(w, t, i) and not _mistaken(t[i], after, w[i]):
                        t[i], done = after, order
                        break
                else:
                    break
                rules = context.get(t[i])
            if w[i] == "'s" and w[i - 1].lower() == "it":
                t[i] = "VBZ"  # "it's represented by"
            if t[i] == "VBN" and self.lexicon.get(w[i], "NN") == "NN" and not self._may_be_past(w[i]):
                t[i] = "NN"  # "will have database dependencies"
            if w[i] in _NOT or (w[i] == "longer" and w[i - 1].lower() == "no"):
                t[i] = "RB"
            if w[i - 1] == "longer" and w[i - 2].lower() == "no" and t[i - 3][:2] != "VB" and t[i] in _NO_LONGER:
                # "Ann no longer works": after "no longer", a noun needs a verb before it ("is no longer news").
                t[i] = _NO_LONGER[t[i]]
            # "will also mark", "to found": after a modal or "to" comes a base form, whatever the most frequent tag.
            if (
                t[i] in ("NN", "VBP", "VBD", "VBN")
                and w[i].islower()
                and (
                    t[i - 1] == "MD"
                    or (t[i - 1] == "RB" and (t[i - 2] == "MD" or (w[i - 1] in _NOT and w[i - 2] in _DO)))
                )
            ):
                t[i] = "VB"
        _find_verb(w, t, self.lexicon)
        return t[_PAD:-_PAD]

    def _guess(self, word: str) -> str:
        first = word[0]
        if first.isupper():
            return "NNP"
        if first.isdigit():
            return "CD"
        if not word[-1].isalnum():
            return word if len(word) == 1 else ":"
        if "-" in word and self.lexicon.get(word.rpartition("-")[2]) == "NN" and word.endswith(_AGENTS):
            return "NN"
        tag = "NN"
        # No suffix rule applies to extremely long words, and testing each rule is slow.
        for before, x, command, after in self._suffixes if len(word) < 40 else ():
            if before and tag != before:
                continue
            if (
                (command == "hassuf" and word.endswith(x))
                or (command == "char" and x in word)
                or (command == "haspref" and word.startswith(x))
                or (command == "addsuf" and word + x in self.lexicon)
                or (command == "deletepref" and word.startswith(x) and word[len(x) :] in self.lexicon)
                or (command == "deletesuf" and word.endswith(x) and word[: -len(x)] in self.lexicon)
            ):
                tag = after
        return tag


@cache
def tagger() -> Tagger:
    """Returns the tagger of this process, loaded at first use."""
    return Tagger()
