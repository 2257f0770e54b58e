"""Plain text: paragraphs, and a title if the first line looks like one."""

import re
from collections.abc import Callable

from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.decoding import decode
from consumers.parsing.embedded_data import without_embedded_data
from consumers.parsing.hyphenation import join_broken_words
from consumers.parsing.limits import Limits, TooLarge
from consumers.parsing.outline import Outline
from consumers.splitting import ParsedText, TextBlock, paragraphs
from consumers.splitting.sentences import sentence_starts

_MAX_TITLE_CHARS = 100
_INITIALS = re.compile(r"\b[A-Z]\.(?:[A-Z]\.)+\Z")
_NEVER_LAST = (",", ";", ":", "。", "，", "、", "：", "；")


def parse_text(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
    text = within_limits(without_embedded_data(decode(data), omissions), limits, omissions)
    title, blocks = take_title(list(paragraphs(join_broken_words(text))))
    return ParsedText(tuple(blocks), title)


def text_parser(parse: Callable[[str, Outline], ParsedText]) -> Callable[[bytes, Limits, Omissions], ParsedText]:
    """Decorator for a format's parser. `parse` gets the decoded text, within the limits, and an outline to fill."""

    def parser(data: bytes, limits: Limits, omissions: Omissions) -> ParsedText:
        return parse(within_limits(decode(data), limits, omissions), Outline(limits.text_chars, omissions))

    return parser


def within_limits(text: str, limits: Limits, omissions: Omissions) -> str:
    """Returns at most `text_chars` characters of the text. Replaces each line of more than `line_chars` characters by an empty
    line.

    Lines of that length are data, not prose. Raises TooLarge if all text is in such lines.
    """
    if len(text) > limits.text_chars:
        text = text[: text.rfind("\n", 0, limits.text_chars) + 1] or text[: limits.text_chars]
        omissions.add(OmissionKind.TOO_LARGE, f"text after the first {len(text):,} characters")
    if len(text) <= limits.line_chars:
        return text
    lines = text.split("\n")
    if max(map(len, lines)) <= limits.line_chars:
        return text
    for number, line in enumerate(lines):
        if len(line) > limits.line_chars:
            omissions.add(OmissionKind.TOO_LARGE, f"line {number + 1}, which has {len(line):,} characters")
            lines[number] = ""
    if not any(line.strip() for line in lines):
        raise TooLarge(
            f"its only text is in lines of more than {limits.line_chars:,} characters, which are data, not text; exclude "
            "it, or break it into lines"
        )
    return "\n".join(lines)


def take_title(blocks: list[TextBlock]) -> tuple[str, list[TextBlock]]:
    """Returns (first line, remaining blocks) if the first line looks like a title; otherwise ("", all blocks)."""
    if not blocks:
        return "", blocks
    first, *others = blocks
    line, _, below = first.text.partition("\n")
    line = " ".join(line.split())
    if not _could_be_title(line):
        return "", blocks
    if not below:
        return (line, others) if others else ("", blocks)
    lead = below.lstrip()
    ruled = lead.split("\n", 1)[0].strip()
    if len(ruled) >= 3 and not ruled.strip("=-~*_"):  # underlined
        lead = lead.partition("\n")[2].lstrip()
    # Lines of wrapped prose have similar lengths and continue in lower case.
    elif lead[0].islower() or len(ruled) < 1.5 * len(line):
        return "", blocks
    if not lead:
        return (line, others) if others else ("", blocks)
    skipped = first.text.count("\n", 0, len(first.text) - len(lead))
    return line, [TextBlock(lead, line=(first.line or 1) + skipped), *others]


def _could_be_title(line: str) -> bool:
    return (
        len(line) <= _MAX_TITLE_CHARS
        and not line.endswith(_NEVER_LAST)
        and not (line.endswith(".") and _ends_sentence(line))
        and line[:1] not in "-*•>|{[<"
        and any(char.isalpha() for char in line)
        and len(line.split()) <= 16
    )


def _ends_sentence(line: str) -> bool:
    """Whether the final full stop ends a sentence. The full stops of "Jr.", "& Co." and "U.S.A." do not."""
    return len(sentence_starts(f"{line} Next")) > 1 and not _INITIALS.search(line)
