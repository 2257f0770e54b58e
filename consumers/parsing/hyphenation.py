"""Joins words that are divided at a line end. A compound keeps its hyphen.

The rest of the document decides: "exam-/ple" is joined if "example" occurs there; "well-/known" keeps its hyphen if
"well-known" occurs. If neither form occurs, the word is joined if line ends divide more words than compounds. Typesetting
programs divide with a soft hyphen or U+2010, which is removed unless the compound occurs.
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
"""Returns the joined word. Arguments: text before the line end, hyphen, text after the line end."""


def join_broken_words(text: str, *, typeset: bool = False) -> str:
    """Moves the second part of each divided word to the line of the first part. The number of lines does not change.

    `typeset`: a typesetting program divided the words, so the hyphen is removed if neither form of the word occurs.
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
    """Returns a function that joins divided words. The function decides by the undivided words in `texts`."""
    forms = {(before, hyphen, after): _forms(before, after) for before, hyphen, after in breaks}
    relevant = {form for pair in forms.values() for form in pair}
    known = {word for text in texts for found in _WORD.findall(text) if (word := _normalised(found)) in relevant}
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
    return _normalised(before + after), _normalised(f"{before}-{after}")


def _normalised(word: str) -> str:
    return word.replace("\u2010", "-").lower()
