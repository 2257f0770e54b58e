"""A mailbox is read as one document for each message, whatever wrote it and whatever it is called."""

import mailbox
from email.message import EmailMessage
from pathlib import Path

import pytest

from consumers.parsing import parse_data, parse_file
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument
from tests.consumers.parsing.office_samples import outlook

SETTINGS = SplitSettings(max_tokens=400, min_tokens=0)
HEADERS = b"From: Mara <mara@tarn.example>\nTo: joss@tarn.example\nSubject: Tide gauge\n"


def _read(path: Path) -> list[ParsedDocument]:
    *documents, _ = parse_file(bytes(path), path.as_uri(), SETTINGS)
    assert all(isinstance(document, ParsedDocument) for document in documents)
    return [document for document in documents if isinstance(document, ParsedDocument)]


def _message(subject: str, body: str) -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "Mara <mara@tarn.example>", "joss@tarn.example", subject
    message.set_content(body)
    return message


@pytest.mark.parametrize("name", ["letters.mbox", "Inbox", "archive.txt"])
def test_each_message_is_a_document(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    box = mailbox.mbox(str(path))
    first = _message("Tide gauge", "The gauge needs a float.\n\nFrom here it is a mile to Tarn.\n")
    first["Message-ID"] = "<a#1@tarn.example>"
    first.add_attachment("# Parts\n\nOne brass float.", subtype="plain", filename="parts.md")
    box.add(first)
    box.add(_message("Mühle", "Die Mühle von Ternby wurde 1790 gebaut.\n"))
    box.add(_message("", "No subject.\n"))
    box.close()
    documents = {document.uri: document for document in _read(path)}
    uri = path.as_uri()
    assert {f"{uri}#a%231@tarn.example", f"{uri}#2", f"{uri}#3"} <= documents.keys()
    first_read, second = documents[f"{uri}#a%231@tarn.example"], documents[f"{uri}#2"]
    assert first_read.title == "Tide gauge" and first_read.metadata["format"] == "mail"
    # The library quotes such a line.
    assert b"\n>From here" in path.read_bytes()
    assert "\n\nFrom here it is a mile" in first_read.passages[0].text
    assert second.title == "Mühle"
    assert second.passages[0].text.startswith("From: Mara <mara@tarn.example>\nTo: joss@tarn.example")
    assert any("One brass float." in passage.text for each in documents.values() for passage in each.passages)


@pytest.mark.parametrize(
    ("headers", "target"),
    [
        (b"In-Reply-To: <a#1@tarn.example>\nReferences: <z@tarn.example> <y@tarn.example>\n", "mid:a%231@tarn.example"),
        (b"References: <z@tarn.example>\n <a@tarn.example>\n", "mid:a@tarn.example"),
        (b"In-Reply-To: Your message of Monday\n", None),
        (b"", None),
    ],
)
def test_an_answer_links_to_the_message_that_it_answers(headers: bytes, target: str | None) -> None:
    data = headers + HEADERS + b"\nIt has a float.\n"
    (document,) = parse_data(data, b"mail.eml", "file:///mail.eml", SETTINGS)
    links = [link.target for passage in document.passages for link in passage.links]
    assert links == ([] if target is None else [target])


def test_an_answer_in_outlooks_format_links_to_its_message() -> None:
    texts = {
        "0037001F": "Re: Tide gauge",
        "0C1A001F": "Mara",
        "1000001F": "It has a float.",
        "1042001F": "<a@tarn.example>",
    }
    streams = {f"__substg1.0_{name}": text.encode("utf-16-le") for name, text in texts.items()}
    data = outlook(streams | {"__properties_version1.0": bytes(32)}, {})
    (document,) = parse_data(data, b"letter.msg", "file:///letter.msg", SETTINGS)
    assert [link.target for link in document.passages[0].links] == ["mid:a@tarn.example"]


def test_messages_with_one_id_stay_apart_and_deleted_ones_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "Sent"
    line = b"From - Mon May  6 09:00:00 2024\n"
    kept = b"X-Mozilla-Status: 0001\nMessage-ID: <x@y>\n" + HEADERS + b"\nThe float is here.\n\n"
    deleted = b"X-Mozilla-Status: 0009\n" + HEADERS + b"\nThe float is lost.\n\n"
    path.write_bytes(line + kept + line + kept + line + deleted)
    read = {document.uri.partition("#")[2]: document for document in _read(path)}
    assert list(read) == ["x@y", "x@y-2", "3"]
    assert read["x@y-2"].passages == read["x@y"].passages
    assert read["3"].skipped and not read["3"].passages


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("1715155200.M1P2.host:2,S", HEADERS + b"\nThe float.\n"),
        (
            "4711.emlx",
            b"%d\n" % (len(HEADERS) + 12) + HEADERS + b"\nThe float.\n<?xml version='1.0'?><plist>flags</plist>",
        ),
        ("letter", HEADERS + b"\nThe float.\n"),
    ],
)
def test_message_without_a_mail_ending_is_detected_as_mail(name: str, data: bytes) -> None:
    (document,) = parse_data(data, name.encode(), "file:///m", SETTINGS)
    assert document.title == "Tide gauge" and document.metadata["format"] == "mail"
    assert document.passages[0].text.endswith("joss@tarn.example\n\nThe float.")


@pytest.mark.parametrize(
    "text", ["From: the mill\nto the harbour it is a mile.\n", "Name: Ann\nRole: pilot\n\nWords.\n"]
)
def test_a_text_with_names_and_values_is_no_mail(text: str) -> None:
    (document,) = parse_data(text.encode(), b"note", "file:///m", SETTINGS)
    assert document.metadata["format"] == "text"


def test_plain_text_with_the_ending_mbox_is_text(tmp_path: Path) -> None:
    path = tmp_path / "note.mbox"
    path.write_text("From the mill to the harbour it is a mile.\n")
    (document,) = _read(path)
    assert document.metadata["format"] == "text"
    assert document.passages[0].text == "From the mill to the harbour it is a mile."


def test_line_that_resembles_a_separator_is_parsed_in_linear_time(tmp_path: Path) -> None:
    """With a pattern that goes back over every digit this would not end within the test's time."""
    path = tmp_path / "digits.mbox"
    path.write_bytes(
        b"From ann Sat Jan  3 01:05:34 2026\nSubject: Numbers\n\nOne.\n\nFrom " + b"1" * 1_000_000 + b"\rTwo.\n"
    )
    assert len(_read(path)) == 1
