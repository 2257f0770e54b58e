"""Words that a line's end broke in two are joined; a compound that has its hyphen anyway keeps it.

Which it is, the document says: "exam-/ple" is joined where "example" stands elsewhere in it, "well-/known" keeps its hyphen
where "well-known" does. Where neither does, the word is joined if the text breaks words (others were joined so), and keeps its
hyphen if not. Soft hyphens and U+2010, which typesetting programs put at line ends, are joined unless the compound is known.
"""

import re
from collections.abc import Callable, Iterable

_LETTERS = r"[^\W\d_]"
_BREAK = re.compile(
    rf"(?<![^\W_])(?P<before>{_LETTERS}{{2,}}(?:[-\u2010]{_LETTERS}+)*)(?P<hyphen>[-\u2010\xad])"
    rf"\n[ \t]*(?P<after>{_LETTERS}{{2,}})(?P<tail>\S*)(?P<gap>[ \t]*\n|[ \t]+|)"
)
_WORD = re.compile(rf"{_LETTERS}+(?:[-\u2010]{_LETTERS}+)*")
Decision = Callable[[str, str, str], str]
"""From what stands before a break, its hyphen and what stands after it to the word."""


def join_broken_words(text: str, *, typeset: bool = False) -> str:
    """The text with broken words whole at the end of the line where they begin; lines are as many as before.

    `typeset`: a program broke the words, so that a hyphen of which nothing is known goes.
    """
    breaks = [(match["before"], match["hyphen"], match["after"]) for match in _BREAK.finditer(text)]
    if not breaks:
        return text
    joined = decision([text], breaks, typeset=typeset)

    def mended(match: re.Match[str]) -> str:
        word = joined(match["before"], match["hyphen"], match["after"])
        return f"{word}{match['tail']}" + ("\n" if match["gap"] else "")

    return _BREAK.sub(mended, text)


def decision(texts: Iterable[str], breaks: Iterable[tuple[str, str, str]], *, typeset: bool) -> Decision:
    """How the breaks of a document are joined, by the words that stand whole in its texts."""
    forms = {(before, hyphen, after): _forms(before, after) for before, hyphen, after in breaks}
    wanted = {form for pair in forms.values() for form in pair}
    known = {word for text in texts for found in _WORD.findall(text) if (word := _same(found)) in wanted}
    whole = sum(one in known for one, _ in forms.values())
    breaks_words = typeset or whole > sum(compound in known and one not in known for one, compound in forms.values())

    def joined(before: str, hyphen: str, after: str) -> str:
        one, compound = forms.get((before, hyphen, after)) or _forms(before, after)
        if compound in known and one not in known:
            return f"{before}-{after}"
        if one in known:
            return before + after
        if "-" in before or "\u2010" in before or not after[:1].islower():
            return f"{before}-{after}"
        return before + after if hyphen != "-" or breaks_words else f"{before}-{after}"

    return joined


def _forms(before: str, after: str) -> tuple[str, str]:
    return _same(before + after), _same(f"{before}-{after}")


def _same(word: str) -> str:
    return word.replace("\u2010", "-").lower()
