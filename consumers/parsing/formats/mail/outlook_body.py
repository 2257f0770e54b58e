"""The body of an Outlook message: plain text, HTML, packed RTF, or several of these forms."""

from consumers.omissions import Omissions
from consumers.parsing.formats.mail.versions import has_most_words, report_version, text_of
from consumers.parsing.formats.markup.html_text import add_page
from consumers.parsing.limits import Limits, TooLarge
from consumers.parsing.outline import Outline
from consumers.splitting import paragraphs


def add_body(outline: Outline, plain: str, page: bytes, packed_rtf: bytes, limits: Limits) -> None:
    """Adds the most complete form of a body to the outline; reports the words that only another form contains."""
    rich = Outline(limits.text_chars, Omissions())
    if page:
        add_page(rich, page)
    shown = text_of(rich)
    if plain.strip() and has_most_words(plain, shown):
        for block in paragraphs(plain):
            outline.text(block.text, block.joint)
        report_version(shown, plain, outline.omissions)
    elif shown:
        add_page(outline, page)
        report_version(plain, shown, outline.omissions)
    elif packed_rtf:
        import compressed_rtf

        from consumers.parsing.formats.office.rtf import parse_rtf

        if int.from_bytes(packed_rtf[4:8], "little") > limits.unpacked_bytes:
            raise TooLarge("its body unpacks to more than is read; exclude it")
        for block in parse_rtf(compressed_rtf.decompress(packed_rtf), limits, outline.omissions).blocks:
            outline.text(block.text, block.joint)


def encoding_of(code_page: int) -> str:
    """Returns Python's name of a Windows code page."""
    names = {65001: "utf-8", 20127: "ascii", 28591: "latin-1", 936: "gbk", 932: "cp932", 949: "cp949", 950: "cp950"}
    name = names.get(code_page, f"cp{code_page}")
    try:
        "".encode(name)
    except LookupError:
        return "cp1252"
    return name
