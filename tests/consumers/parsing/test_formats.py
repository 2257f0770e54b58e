"""What parsing promises of every format: the text in reading order, its title, its headings and where things stood."""

import io
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from consumers.parsing import ParseSummary, parse_file
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument
from tests.consumers.parsing.samples import docx, epub, flowed, pdf

S = SplitSettings(max_tokens=400, min_tokens=0)
LONG = "Mara Quill repaired the seismograph before the autumn expedition set out from Tarn Harbour. " * 3


@pytest.fixture
def read(tmp_path: Path) -> Any:
    """Writes a file, parses it, and gives its one document."""

    def parse(name: str, data: bytes | str) -> ParsedDocument:
        path = tmp_path / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        *documents, summary = parse_file(bytes(path), path.as_uri(), S)
        assert isinstance(summary, ParseSummary) and summary.size == path.stat().st_size and not summary.changed
        (document,) = documents
        assert isinstance(document, ParsedDocument)
        assert document.uri == path.as_uri()
        assert document.modified_at == pytest.approx(path.stat().st_mtime)
        return document

    return parse


def texts(document: ParsedDocument) -> list[tuple[str, str]]:
    assert document.error is None
    return [(p.title, p.text) for p in document.passages]


# Plain text


def test_first_line_of_a_text_followed_by_a_blank_line_is_its_title(read: Any) -> None:
    document = read("a.txt", f"\nThe Tarn Survey\n\n{LONG}\n\nSecond paragraph.\n")
    assert texts(document) == [("The Tarn Survey", f"{LONG.strip()}\n\nSecond paragraph.")]
    assert document.title == "The Tarn Survey"
    assert document.passages[0].location == {"line": 4}


def test_first_line_without_a_blank_line_is_recognised_as_title(read: Any) -> None:
    for title in ("Move (1970 film)", "Theodore Woolsey Jr.", "Back in the U.S.A.", "Who's That Girl?"):
        assert texts(read("a.txt", f"{title}\n{LONG}")) == [(title, LONG.strip())]


def test_text_without_a_title_has_its_file_name_as_document_title_only(read: Any) -> None:
    wrapped = "the survey went on for most of the summer and\nended only when the weather turned."
    document = read("field notes.txt", wrapped)
    assert document.title == "field notes"
    assert texts(document) == [("", wrapped)]


@pytest.mark.parametrize(
    "text", ["A single sentence.", "One line", "- item\n- other item of the list", "Dear all,\n\nyes."]
)
def test_what_is_no_title_stays_in_the_text(read: Any, text: str) -> None:
    assert texts(read("x.txt", text)) == [("", text)]


def test_renaming_a_file_changes_no_passage(read: Any) -> None:
    for ending, data in {"txt": "plain words.", "md": "no heading", "csv": "a,b\n1,2\n", "html": "<p>words"}.items():
        assert read(f"one.{ending}", data).passages == read(f"two.{ending}", data).passages


@pytest.mark.parametrize(
    ("encoding", "mark"),
    [
        ("utf-8", b""),
        ("utf-8", b"\xef\xbb\xbf"),
        ("utf-16-le", b"\xff\xfe"),
        ("utf-16-be", b"\xfe\xff"),
        ("utf-16-le", b""),
        ("utf-16-be", b""),
        ("utf-32-le", b"\xff\xfe\x00\x00"),
        ("cp1252", b""),
    ],
)
def test_text_in_every_common_encoding_is_decoded(read: Any, encoding: str, mark: bytes) -> None:
    text = "Łódź and Zürich" if encoding.startswith("utf") else "Zürich and Besançon"
    text += " are cities.\nThe café is über die Straße, près de la forêt; it’s small.\n"
    assert texts(read("a.txt", mark + text.encode(encoding))) == [("", text.strip())]


def test_chinese_utf_16_without_byte_order_mark_is_decoded(read: Any) -> None:
    text = "东京塔是日本的地标。\n它建于一九五八年。\n今天仍在使用。"
    assert texts(read("a.txt", text.encode("utf-16-le"))) == [("", text)]


def test_a_little_damage_in_utf_8_costs_only_the_damaged_characters(read: Any) -> None:
    ((_, text),) = texts(read("a.txt", "Übergröße naïve café — ".encode() * 20 + b"\xff end."))
    assert text.startswith("Übergröße naïve café") and text.endswith("\ufffd end.")


def test_unknown_endings_are_text_when_they_read_as_text(read: Any) -> None:
    assert texts(read("Makefile", "all:\n\techo hello")) == [("", "all:\n\techo hello")]
    assert texts(read("notes.xyz", "Some words.")) == [("", "Some words.")]


@pytest.mark.parametrize("letters", ["BM", "MZ", "ID3", "RIFF", "PAR1", "BZh", "II*", "GIF8"])
def test_a_text_may_begin_with_the_letters_of_a_binary_format(read: Any, letters: str) -> None:
    text = letters + " begins a text about Łódź, " * 30 + "and it ends here."
    assert texts(read("a.txt", text)) == [("", text)]


# Markdown


def test_markdown_headings_lists_tables_and_front_matter(read: Any) -> None:
    document = read(
        "a.md",
        '---\ntitle: "Tide Log"\ntags: [sea, log]\nby:\n  - Ada\n---\n\n# Station\n\nFirst *line*,\nsee [map](http://x).\n\n'
        "## Crew\n\n- Mara\n  - junior\n- Joss\n\n| name | role |\n|---|---|\n| Kara | pilot |\n| Bo | cook |\n",
    )
    assert document.title == "Tide Log"
    assert document.metadata == {"format": "markdown", "title": "Tide Log", "tags": ["sea", "log"], "by": ["Ada"]}
    assert texts(document) == [
        ("Tide Log › Station", "First line,\nsee map."),
        ("Tide Log › Station › Crew", "- Mara\n- junior\n- Joss\n\nname: Kara; role: pilot\nname: Bo; role: cook"),
    ]
    assert [p.location["line"] for p in document.passages] == [10, 15]


def test_markdown_is_titled_by_its_first_heading(read: Any) -> None:
    document = read("a.md", f"# Quill Observatory\n\n{LONG}\n\n## History\n\n{LONG}\n")
    assert [title for title, _ in texts(document)] == ["Quill Observatory", "Quill Observatory › History"]


def test_code_html_and_lone_headings_in_markdown_are_kept(read: Any) -> None:
    document = read(
        "a.md", "Intro\n\n```py\nx = 1\n```\n\n<div>raw <b>html</b></div>\n\n## Questions?\n\n## Answers\n\nNone.\n"
    )
    whole = "\n".join(text for _, text in texts(document))
    assert all(part in whole for part in ("Intro", "x = 1", "raw", "html", "Questions?", "None."))
    assert "<b>" not in whole


def test_a_rule_at_the_top_of_markdown_is_no_front_matter(read: Any) -> None:
    assert "words below" in texts(read("a.md", "---\n\nwords below\n\n---\n\nmore"))[0][1]


def test_front_matter_in_toml_is_metadata_too(read: Any) -> None:
    document = read(
        "a.md", '+++\ntitle = "Tide Log"\ndate = 2020-01-02\nlabels = ["sea"]\n[more]\nx = 1\n+++\n\nWords below.\n'
    )
    assert texts(document) == [("Tide Log", "Words below.")]
    assert document.passages[0].location["line"] == 9
    assert {key: document.metadata[key] for key in ("title", "date", "labels")} == {
        "title": "Tide Log",
        "date": "2020-01-02",
        "labels": ["sea"],
    }


@pytest.mark.parametrize(
    "text", ["+++\nno toml\n+++\nwords", "+++\n+++\nwords", "+++\na = " + "[" * 9999 + "\n+++\nwords"]
)
def test_invalid_toml_between_plus_signs_is_text(read: Any, text: str) -> None:
    assert texts(read("a.md", text))[-1][1].endswith("words")


def test_footnote_marks_are_removed_and_footnotes_kept(read: Any) -> None:
    ((_, text),) = texts(
        read(
            "a.md",
            "The dam[^1] was raised[^raise], they say[^u]. A class [^abc] of letters.\n\n| by |\n|--|\n| Brand[^1] |\n\n"
            "`x[^1]`\n\n[^1]: Ilka Brand was born in Kessel.\n[^raise]: Later.\n\n[^u]: https://example.com\n",
        )
    )
    assert text.startswith("The dam was raised, they say. A class [^abc] of letters.")
    assert "by: Brand" in text
    assert "x[^1]" in text
    assert text.endswith("Ilka Brand was born in Kessel.\nLater.")


# HTML


def test_html_gives_its_visible_text(read: Any) -> None:
    document = read(
        "a.html",
        "<!doctype html><html lang=en><head><title>Zeppelin - The Encyclopedia</title><meta name=author content=Ada>"
        "<style>p{}</style><script>var x='no'</script></head><body><nav>Menu</nav><h1>Zeppelin</h1>\n<p>A <b>rigid</b>"
        "\n airship.<!-- no --></p><p hidden>no</p>\n<h2>Types</h2><ul><li>LZ 1<li>LZ 2</ul>"
        "<table><tr><th>name<th>year</tr><tr><td>LZ 1<td>1900</tr></table>after<br>break</body></html>",
    )
    assert document.title == "Zeppelin"
    assert texts(document) == [
        ("Zeppelin", "A rigid airship."),
        ("Zeppelin › Types", "- LZ 1\n- LZ 2\n\nname: LZ 1; year: 1900\n\nafter\nbreak"),
    ]
    assert document.metadata == {"format": "html", "author": "Ada", "language": "en"}
    assert document.passages[0].location["line"] == 2


def test_html_is_decoded_with_its_declared_encoding(read: Any) -> None:
    page = "<html><head><meta charset='iso-8859-2'></head><body><p>Łódź</p></body></html>".encode("iso-8859-2")
    assert texts(read("a.htm", page)) == [("", "Łódź")]


# PDF


def test_pdf_paragraphs_headings_and_pages(read: Any) -> None:
    first = ["The harbour was dredged in 1911 by the Tarn company. " * 4, "A second paragraph follows it. " * 4]
    data = pdf([flowed(first, "Harbour Works"), flowed(["On the next page the works went on. " * 3], "Later Years")])
    document = read("a.pdf", data)
    assert document.title == "Harbour Works"
    assert [p.location["page"] for p in document.passages] == [1, 2]
    assert [title for title, _ in texts(document)] == ["Harbour Works", "Harbour Works › Later Years"]
    assert document.passages[0].text.count("\n\n") == 1
    assert document.metadata["pages"] == 2


def test_pdf_broken_words_are_joined_and_stated_titles_used(read: Any) -> None:
    document = read("a.pdf", pdf([[(60, 700, 11, "This is an exam-"), (60, 687, 11, "ple of it.")]], title="Stated"))
    assert texts(document) == [("Stated", "This is an example of it.")]


def test_generated_pdf_titles_are_ignored(read: Any) -> None:
    document = read("paper.pdf", pdf([[(60, 700, 11, "Words.")]], title="Microsoft Word - draft.docx"))
    assert document.title == "paper"
    assert texts(document) == [("", "Words.")]


def test_pdf_running_headers_are_kept_once_and_page_numbers_removed(read: Any) -> None:
    pages = [
        [(60, 810, 9, "Annual Report"), *flowed([f"Page text of number {n}. " * 20]), (300, 30, 9, f"{n}")]
        for n in range(1, 6)
    ]
    document = read("a.pdf", pdf(pages))
    whole = "\n".join(text for _, text in texts(document))
    assert whole.count("Annual Report") == 1
    assert not any(line.isdigit() for line in whole.split("\n"))
    assert [(each.kind, each.count) for each in document.left_out] == [("running_header", 9)]
    assert "Page text of number 5." in whole


def test_sentence_across_two_pdf_pages_is_joined(read: Any) -> None:
    pages = [
        [(60, 60, 11, "The ship sailed from the old harbour and")],
        [(60, 780, 11, "reached the island at night.")],
    ]
    ((_, text),) = texts(read("a.pdf", pdf(pages)))
    assert text == "The ship sailed from the old harbour and\nreached the island at night."


# Office


def test_docx_headings_lists_and_tables(read: Any) -> None:
    body = [
        ("Title", "Field Report"),
        ("", LONG),
        ("Heading1", "Findings"),
        ("", "Basalt was found."),
        ("", "And chalk."),
    ]
    document = read("a.docx", docx(body, [["rock", "depth"], ["basalt", "40 m"]]))
    assert document.title == "Field Report"
    assert texts(document) == [
        ("Field Report", LONG.strip()),
        ("Field Report › Findings", "Basalt was found.\n\nAnd chalk.\n\nrock: basalt; depth: 40 m"),
    ]
    assert document.passages[0].location == {"heading": "Field Report"}


def test_docx_titles_come_from_its_properties(read: Any) -> None:
    assert read("a.docx", docx([("", "Words here.")], title="Stated Title")).title == "Stated Title"


@pytest.mark.slow
def test_pptx_slides_tables_and_notes(read: Any) -> None:
    from pptx import Presentation
    from pptx.util import Inches

    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "The Route"
    slide.placeholders[1].text = "From Tarn\nto Skerry"
    table = slide.shapes.add_table(2, 2, Inches(1), Inches(1), Inches(4), Inches(1)).table
    for row, cells in enumerate((("port", "day"), ("Skerry", "4 May"))):
        for column, cell in enumerate(cells):
            table.cell(row, column).text = cell
    slide.notes_slide.notes_text_frame.text = "Mention the storm."
    other = deck.slides.add_slide(deck.slide_layouts[6])
    box = other.shapes.add_textbox(0, 0, Inches(2), Inches(1))
    box.text_frame.text = "No title here"
    out = io.BytesIO()
    deck.core_properties.title = "Expedition"
    deck.save(out)
    document = read("a.pptx", out.getvalue())
    assert document.title == "Expedition"
    assert texts(document) == [
        ("Expedition › The Route", "From Tarn\nto Skerry\n\nport: Skerry; day: 4 May\n\nMention the storm."),
        ("Expedition › Slide 2", "No title here"),
    ]
    assert [p.location["page"] for p in document.passages] == [1, 2]


def test_xlsx_rows_carry_their_columns_and_sheets(read: Any) -> None:
    from openpyxl import Workbook

    book = Workbook()
    sheet = book.active
    sheet.title = "Readings"
    for row in (["station", "depth", "seen"], ["Alpha", 12.0, None], ["Beta", 7.5, "gulls"]):
        sheet.append(row)
    plain = book.create_sheet("Sheet2")
    plain.append([1, 2, 3])
    out = io.BytesIO()
    book.save(out)
    document = read("a.xlsx", out.getvalue())
    assert texts(document) == [
        ("Readings", "station: Alpha; depth: 12\nstation: Beta; depth: 7.5; seen: gulls"),
        ("Sheet2", "1; 2; 3"),
    ]
    assert document.passages[0].location == {"heading": "Readings", "sheet": "Readings", "row": 2}
    assert document.passages[1].location == {"heading": "Sheet2", "sheet": "Sheet2", "row": 1}


# The others


def test_epub_chapters_in_the_order_of_the_spine(read: Any) -> None:
    document = read("a.epub", epub("The Skerry", [f"<h1>One</h1><p>{LONG}</p>", f"<h1>Two</h1><p>{LONG}</p>"]))
    assert document.title == "The Skerry"
    assert document.metadata["creator"] == "Ada Writer"
    assert [title for title, _ in texts(document)] == ["The Skerry › One", "The Skerry › Two"]
    assert [p.location["page"] for p in document.passages] == [1, 2]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_csv_rows_carry_their_columns(read: Any, delimiter: str) -> None:
    rows = [["name", "role", "note"], ["Kara", "pilot", f'says "hi{delimiter}you"'], ["Bo", "", "line\nbreak"]]
    data = "".join(delimiter.join('"' + cell.replace('"', '""') + '"' for cell in row) + "\r\n" for row in rows)
    document = read("a.csv", data)
    said = " ".join(f"hi{delimiter}you".split())
    assert texts(document) == [("", f'name: Kara; role: pilot; note: says "{said}"\nname: Bo; note: line break')]
    assert document.passages[0].location["row"] == 2


def test_csv_without_a_header_gives_plain_rows(read: Any) -> None:
    assert texts(read("a.csv", "1,2\n3,4\n")) == [("", "1; 2\n3; 4")]
    assert texts(read("b.csv", "only,header\n")) == [("", "only; header")]


def test_mail_headers_and_body(read: Any) -> None:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = (
        "Mara <mara@tarn.example>",
        "joss@tarn.example",
        "Tide gauge – spare parts",
    )
    mail["Date"] = "Tue, 05 May 2026 10:00:00 +0000"
    mail.set_content("The gauge needs a new float.\n\nMara\n")
    mail.add_alternative("<p>The gauge needs a <b>new</b> float.</p>", subtype="html")
    document = read("a.eml", bytes(mail))
    assert document.title == "Tide gauge – spare parts"
    assert texts(document) == [
        (
            "Tide gauge – spare parts",
            "From: Mara <mara@tarn.example>\nTo: joss@tarn.example\nDate: Tue, 05 May 2026 10:00:00 +0000\n\n"
            "The gauge needs a new float.\n\nMara",
        )
    ]


def test_mail_in_html_and_forwarded_mail_are_parsed(read: Any) -> None:
    inner = EmailMessage()
    inner["Subject"], inner["From"] = "Inner", "a@b.example"
    inner.set_content("Inner words.")
    mail = EmailMessage()
    mail["Subject"], mail["From"] = "Outer", "c@d.example"
    mail.set_content("<p>Outer <b>words</b>.</p>", subtype="html")
    mail.add_attachment(inner)
    whole = texts(read("a.eml", bytes(mail)))
    assert ("Outer › Inner", "From: a@b.example\n\nInner words.") in whole
    assert "Outer words." in whole[0][1]


def test_a_format_is_detected_by_content_where_the_name_is_wrong(read: Any) -> None:
    assert read("a.txt", pdf([[(60, 700, 11, "In a PDF.")]])).metadata["format"] == "pdf"
    assert read("b.bin", docx([("", "In a document.")])).metadata["format"] == "docx"
    assert read("c.docx", epub("B", ["<p>x</p>"])).metadata["format"] == "epub"
