"""Text that the author hid is not in passages but in `left_out`, as the hidden parts of a web page are."""

import io

import openpyxl
import pytest
from docx import Document

from consumers.parsing import parse_data
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument
from tests.consumers.parsing.office_samples import opendocument


def word() -> bytes:
    """A document in which "secret words" is hidden by its own properties, and "more secrets" by its paragraph's style."""
    document = Document()
    paragraph = document.add_paragraph("Shown ")
    for text in ("secret ", "words"):
        paragraph.add_run(text).font.hidden = True
    paragraph.add_run(" here.")
    hidden = document.styles.add_style("Whispered", 1)
    hidden.font.hidden = True
    kept = document.add_paragraph("", "Whispered")
    kept.add_run("more secrets")
    kept.add_run("Kept.").font.hidden = False
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


ODF = (
    "<text:section text:name='a' text:display='none'><text:p>secret words</text:p></text:section>"
    "<text:p>Shown <text:hidden-text text:is-hidden='true' text:string-value='more secrets'/>here.</text:p>"
    "<text:p>not<text:hidden-paragraph text:is-hidden='true'/> this</text:p>"
    "<text:p>Kept<text:conditional-text text:string-value-if-true='.' text:string-value-if-false='other'>."
    "</text:conditional-text></text:p>"
)
STYLES = (
    "<office:automatic-styles xmlns:style='urn:oasis:names:tc:opendocument:xmlns:style:1.0'>"
    "<style:style style:name='T1' style:family='text'><style:text-properties text:display='none'/></style:style>"
    "<style:style style:name='T2' style:family='text' style:parent-style-name='T1'/></office:automatic-styles>"
)
RTF = rb"{\rtf1 Shown {\v secret }\v words\v0  here.\par {\v more secrets{\footnote \plain Kept.}}\par}"


def parsed(name: str, data: bytes) -> tuple[str, str]:
    (document,) = parse_data(data, name.encode(), f"file:///{name}", SplitSettings())
    assert isinstance(document, ParsedDocument)
    assert document.error is None
    hidden = [each.text for each in document.left_out if each.kind == "hidden"]
    return " ".join(" ".join(passage.text for passage in document.passages).split()), " ".join(hidden)


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.docx", word()), ("a.rtf", RTF), ("a.odt", opendocument("text", ODF)), ("a.html", (
        b"<p>Shown <span hidden>secret words</span>here.</p><p hidden>more secrets</p><p>Kept.</p>"
    ))],
)  # fmt: skip
def test_hidden_text_is_left_out_and_reported(name: str, data: bytes) -> None:
    text, hidden = parsed(name, data)
    assert text == "Shown here. Kept."
    assert "secret words" in hidden
    assert "more secrets" in hidden


def test_styles_of_opendocument_hide_text() -> None:
    body = f"{STYLES}<text:p>Shown <text:span text:style-name='T2'>secret</text:span> here.</text:p>"
    assert parsed("a.odt", opendocument("text", body)) == ("Shown here.", "1 hidden part: secret")


def test_rows_columns_and_sheets_that_a_sheet_does_not_show_are_read() -> None:
    book = openpyxl.Workbook()
    book.active.append(["Name", "Price"])
    book.active.append(["lamp", 12])
    book.active.row_dimensions[2].hidden = True
    book.create_sheet("Old").append(["oil", 7])
    book["Old"].sheet_state = "hidden"
    out = io.BytesIO()
    book.save(out)
    assert parsed("a.xlsx", out.getvalue()) == ("Sheet Name: lamp; Price: 12 Old oil; 7", "")
