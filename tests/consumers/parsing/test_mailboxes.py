"""A mailbox is read message by message, as the standard library writes it."""

import mailbox
from email.message import EmailMessage
from pathlib import Path

from consumers.parsing import parse_file
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument

SETTINGS = SplitSettings(max_tokens=400, min_tokens=0)


def _read(path: Path) -> ParsedDocument:
    document, _ = parse_file(bytes(path), path.as_uri(), SETTINGS)
    assert isinstance(document, ParsedDocument)
    return document


def _message(subject: str, body: str) -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "Mara <mara@tarn.example>", "joss@tarn.example", subject
    message.set_content(body)
    return message


def test_each_message_stands_under_its_subject(tmp_path: Path) -> None:
    path = tmp_path / "letters.mbox"
    box = mailbox.mbox(str(path))
    first = _message("Tide gauge", "The gauge needs a float.\n\nFrom here it is a mile to Tarn.\n")
    first.add_attachment("# Parts\n\nOne brass float.", subtype="plain", filename="parts.md")
    box.add(first)
    box.add(_message("Mühle", "Die Mühle von Ternby wurde 1790 gebaut.\n"))
    box.add(_message("", "No subject.\n"))
    box.close()
    document = _read(path)
    assert document.error is None
    assert document.metadata["format"] == "mailbox" and document.metadata["messages"] == 3
    read = {passage.title: passage.text for passage in document.passages}
    assert list(read) == [
        "Tide gauge",
        "Tide gauge › parts.md",
        "Mühle",
        "Message 3",
    ]
    # The library quotes such a line.
    assert b"\n>From here" in path.read_bytes()
    assert "\n\nFrom here it is a mile" in read["Tide gauge"]
    assert read["Mühle"].startswith("From: Mara <mara@tarn.example>\nTo: joss@tarn.example")


def test_a_text_that_is_called_so_is_text(tmp_path: Path) -> None:
    path = tmp_path / "note.mbox"
    path.write_text("From the mill to the harbour it is a mile.\n")
    document = _read(path)
    assert document.metadata["format"] == "text"
    assert document.passages[0].text == "From the mill to the harbour it is a mile."


def test_a_line_that_is_nearly_a_separator_costs_no_more_than_its_length(tmp_path: Path) -> None:
    """With a pattern that goes back over every digit this would not end within the test's time."""
    path = tmp_path / "digits.mbox"
    path.write_bytes(
        b"From ann Sat Jan  3 01:05:34 2026\nSubject: Numbers\n\nOne.\n\nFrom " + b"1" * 1_000_000 + b"\rTwo.\n"
    )
    assert _read(path).metadata["messages"] == 1
