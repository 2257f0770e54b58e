"""Files inside e-mails, PDFs and notes are documents of their own."""

import base64
from dataclasses import replace
from email.message import EmailMessage

import pytest

from consumers.omissions import Omissions
from consumers.parsing import Limits, parse_data
from consumers.parsing.formats.mail.tnef import parse_tnef
from consumers.parsing.repeated_failures import LISTED, with_summarised_failures
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument
from store.links.names import document_names
from store.types import Document
from tests.consumers.parsing.conservation.pdf_places import write as pdf
from tests.consumers.parsing.conservation.tnef_places import attribute, properties
from tests.consumers.parsing.office_samples import Storage, outlook
from tests.consumers.parsing.samples import docx

SETTINGS = SplitSettings(max_tokens=400, min_tokens=0)
PNG = b"\x89PNG\r\n\x1a\n\x00"
DATE = "2026-05-05T10:00:00+00:00"


def mail(subject: str = "Tide gauge", /, **files: bytes) -> EmailMessage:
    message = EmailMessage()
    message["From"], message["Subject"] = "Mara <mara@tarn.example>", subject
    message["Date"] = "Tue, 05 May 2026 10:00:00 +0000"
    message["Message-ID"] = f"<{subject.replace(' ', '')}@tarn.example>"
    message.set_content("The gauge needs a float.")
    for name, data in files.items():
        file_name = name.replace("__", " ").replace("_", ".")
        message.add_attachment(data, maintype="application", subtype="octet-stream", filename=file_name)
    return message


def read(data: bytes, name: str = "a.eml", limits: Limits | None = None) -> dict[str, ParsedDocument]:
    found = parse_data(data, name.encode(), f"file:///{name}", SETTINGS, limits or Limits())
    return {document.uri.removeprefix(f"file:///{name}"): document for document in found}


def text(document: ParsedDocument) -> str:
    assert document.error is None
    return "\n".join(passage.text for passage in document.passages)


def links(document: ParsedDocument) -> list[str]:
    return [link.target for link in document.passages[0].links]


def test_an_attachment_is_a_document_with_the_context_of_its_mail() -> None:
    files = {"parts__list_docx": docx([("", "One brass float.")]), "photo_png": PNG, "plan_txt": b"The weir is new."}
    documents = read(bytes(mail(**files)))
    letter, parts, plan = documents.values()
    assert list(documents) == ["", "#1/parts%20list.docx", "#3/plan.txt"]
    assert text(parts) == "One brass float." and text(plan) == "The weir is new."
    assert parts.metadata["format"] == "docx" and parts.title == "parts list"
    for attachment in (parts, plan):
        assert attachment.metadata["attached_to"] == "Tide gauge"
        assert attachment.metadata["from"] == "Mara <mara@tarn.example>"
        assert attachment.metadata["published_at"] == DATE
        assert "message_id" not in attachment.metadata, "a link to the message must not lead to its attachment"
    assert links(letter) == ["#1/parts%20list.docx", "#3/plan.txt"]
    assert letter.metadata["attachments"] == ["parts list.docx", "photo.png", "plan.txt"]
    assert [each.text for each in letter.left_out] == ["1 attachment not read: photo.png"]
    stored = Document(parts.uri, "drive", parts.title, metadata=dict(parts.metadata))
    assert document_names(stored).all == ("parts list", "a", "Tide gauge")


def test_date_and_title_of_an_attachment_override_those_of_its_mail() -> None:
    inner = mail("Older letter", note_txt=b"A note.")
    inner.replace_header("Date", "Mon, 04 May 2026 10:00:00 +0000")
    documents = read(bytes(mail(old_eml=bytes(inner))))
    assert list(documents) == ["", "#1/old.eml", "#1/old.eml/1/note.txt"]
    older, note = list(documents.values())[1:]
    assert older.title == "Older letter" and older.metadata["attached_to"] == "Tide gauge"
    assert links(older) == ["#1/old.eml/1/note.txt"]
    assert note.metadata["attached_to"] == "Older letter"
    assert str(note.metadata["published_at"]).startswith("2026-05-04")


def test_attachments_nest_up_to_a_depth() -> None:
    data = b"The bottom."
    for level in range(6):
        data = bytes(mail(f"Level {level}", **{"next_eml" if level else "bottom_txt": data}))
    documents = read(data)
    depth = Limits().attachment_depth
    assert [uri.count("next.eml") for uri in documents] == list(range(depth + 1))
    last = list(documents.values())[-1]
    assert [each.text for each in last.left_out] == ["1 attachment not read: next.eml"]
    assert len(read(data, limits=replace(Limits(), attachment_depth=6))) == 7


def test_a_mailbox_gives_each_attachment_the_uri_of_its_message() -> None:
    box = b"".join(
        b"From ann Sat Jan  3 01:05:34 2026\n" + bytes(mail(name, a_txt=b"Words.")) + b"\n" for name in ("x", "y")
    )
    documents = read(box, "Inbox")
    assert list(documents) == [
        "#x@tarn.example",
        "#x@tarn.example/1/a.txt",
        "#y@tarn.example",
        "#y@tarn.example/1/a.txt",
    ]
    assert links(documents["#y@tarn.example"]) == ["#y@tarn.example/1/a.txt"]


def test_documents_in_an_attached_file_have_uris_below_it() -> None:
    lines = b'{"id": "a", "text": "One."}\n{"id": "b", "text": "Two."}\n'
    corpus = b'[{"idx": 7, "title": "T", "text": "Seven."}]'
    documents = read(bytes(mail(notes_jsonl=lines, corpus_json=corpus)))
    assert list(documents) == ["", "#1/notes.jsonl/a", "#1/notes.jsonl/b", "#2/corpus.json/7"]
    assert documents["#1/notes.jsonl/b"].metadata["attached_to"] == "Tide gauge"


def test_a_damaged_attachment_fails_alone() -> None:
    documents = read(bytes(mail(bad_pdf=b"%PDF-1.7 and nothing more", good_txt=b"Words.")))
    assert text(documents["#2/good.txt"]) == "Words."
    bad = documents["#1/bad.pdf"]
    assert bad.error is not None and not bad.skipped and "cut short" in bad.error
    assert text(documents[""])


def test_many_failed_attachments_leave_their_mail_as_it_is() -> None:
    damaged = {f"f{number}_pdf": b"%PDF-1.7" for number in range(LISTED + 1)}
    found = parse_data(bytes(mail(**damaged)), b"a.eml", "file:///a.eml", SETTINGS)
    letter, failed = with_summarised_failures(found, "file:///a.eml", "a")
    assert isinstance(letter, ParsedDocument) and isinstance(failed, ParsedDocument)
    assert letter.error is None and failed.uri == "file:///a.eml#1/f0.pdf"
    assert str(failed.error).startswith(f"{LISTED + 1} of its documents are not read")


def test_named_text_body_is_mail_text_and_a_file_body_is_an_attachment() -> None:
    head = b"Subject: Plan\r\nFrom: ann@tarn.example\r\n"
    kind = b'Content-Type: text/plain; name="body.txt"\r\n\r\nThe weir is new.'
    assert list(read(head + kind)) == [""]
    scan = (
        head + b'Content-Type: text/csv; name="table"\r\nContent-Disposition: attachment\r\n\r\nName,Year\r\nWeir,1980'
    )
    documents = read(
        scan.replace(b"text/csv", b"application/x-ndjson").replace(b"Name,Year\r\nWeir,1980", b'{"id": 1, "text": "A"}')
    )
    assert list(documents) == ["", "#1/table.jsonl/1"]


def test_signatures_are_no_documents() -> None:
    message = mail()
    message.add_attachment(
        b"-----BEGIN PGP SIGNATURE-----", maintype="application", subtype="pgp-signature", filename="s.asc"
    )
    [letter] = read(bytes(message)).values()
    assert [each.text for each in letter.left_out] == ["1 attachment not read: s.asc"]


def test_an_attached_text_has_the_encoding_that_the_mail_states() -> None:
    data = (
        b"From: a@x.example\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n"
        b"Content-Type: text/plain; charset=koi8-r; name=a.txt\nContent-Transfer-Encoding: 8bit\n\n"
        + "Ключ".encode("koi8-r") + b"\n--b--\n"
    )  # fmt: skip
    assert text(read(data)["#1/a.txt"]) == "Ключ"


def test_an_encrypted_body_is_no_document() -> None:
    data = (
        b"From: a@x.example\nSubject: Key\nMIME-Version: 1.0\nContent-Type: multipart/encrypted; boundary=b\n\n--b\n"
        b"Content-Type: application/pgp-encrypted\n\nVersion: 1\n--b\nContent-Type: application/octet-stream\n\n"
        b"-----BEGIN PGP MESSAGE-----\n\nhQEMA\n-----END PGP MESSAGE-----\n--b--\n"
    )
    [letter] = read(data).values()
    assert [each.text for each in letter.left_out] == [
        "2 attachments not read: application/pgp-encrypted; encrypted message"
    ]


def test_files_in_a_pdf_are_documents() -> None:
    documents = read(pdf({"text of an embedded file": "weir", "title": "Invoice"}), "a.pdf")
    assert list(documents) == ["", "#1/a.txt"]
    assert text(documents["#1/a.txt"]) == "The weir turns."
    assert documents["#1/a.txt"].metadata["attached_to"] == "Invoice"
    assert links(documents[""]) == ["#1/a.txt"]


def test_files_and_messages_attached_to_an_outlook_message_are_documents() -> None:
    def wide(number: str, value: str) -> dict[str, bytes]:
        return {f"__substg1.0_{number}001F": value.encode("utf-16-le")}

    def file(name: str, data: bytes) -> dict[str, bytes]:
        return {**wide("3707", name), "__substg1.0_37010102": data}

    inner: Storage = {
        "__properties_version1.0": bytes(24), **wide("0037", "Older"), **wide("1000", "An older letter."),
        "__attach_version1.0_#00000000": file("note.txt", b"A note.".ljust(4096)),
    }  # fmt: skip
    streams = {"__properties_version1.0": bytes(32), **wide("0037", "Plan"), **wide("1000", "See below.")}
    data = outlook(
        streams,
        {
            "__attach_version1.0_#00000000": file("a.html", b"<p>The weir.</p>".ljust(4096)),
            "__attach_version1.0_#00000001": {"__substg1.0_3701000D": inner},
        },
    )
    documents = read(data, "a.msg")
    assert list(documents) == ["", "#1/a.html", "#2/note.txt"]
    assert text(documents["#1/a.html"]) == "The weir."
    assert [passage.title for passage in documents[""].passages] == ["Plan", "Plan › Older"]
    assert "An older letter." in text(documents[""])
    assert documents["#2/note.txt"].passages[0].text.startswith("A note.")


def test_each_note_of_evernote_is_a_document_with_its_files() -> None:
    resource = f"<resource><data>{base64.b64encode(b'Boil it.').decode()}</data><mime>text/markdown</mime></resource>"
    body = "<content><![CDATA[<en-note><en-todo/>Birch<br/>leaves</en-note>]]></content><created>20240501T075321Z</created>"
    notes = "".join(f"<note><title>Wool dye</title>{body}{more}</note>" for more in (f"<tag>craft</tag>{resource}", ""))
    documents = read(f"<en-export>{notes}</en-export>".encode(), "notes.enex")
    assert list(documents) == ["#Wool%20dye", "#Wool%20dye/1/attachment.md", "#Wool%20dye-2"]
    note, file, _ = documents.values()
    assert note.title == "Wool dye" and text(note) == "[ ] Birch\nleaves"
    assert note.metadata["tags"] == ["craft"] and note.metadata["published_at"] == "2024-05-01T07:53:21+00:00"
    assert links(note) == ["#Wool%20dye/1/attachment.md"]
    assert text(file) == "Boil it." and file.metadata["attached_to"] == "Wool dye"


def test_each_note_of_evernote_has_a_uri_of_its_own_whatever_the_titles() -> None:
    titles = ["scan-3", "scan", "scan", "scan"]
    notes = "".join(
        f"<note><title>{title}</title><content>Text {n}.</content></note>" for n, title in enumerate(titles)
    )
    documents = read(f"<en-export>{notes}</en-export>".encode(), "notes.enex")
    assert [text(each) for each in documents.values()] == [f"Text {n}." for n in range(4)]


def test_every_file_of_a_message_of_outlook_keeps_its_own_content() -> None:
    files = [attribute(2, 0x69002, bytes(14)) + attribute(2, 0x6800F, b"%d" % number) for number in range(1002)]
    parsed = parse_tnef(b"\x78\x9f\x3e\x22\x01\x00" + b"".join(files), Limits(), Omissions())
    assert [each.data for each in parsed.attachments] == [b"%d" % number for number in range(1002)]


@pytest.mark.parametrize(("kind", "before"), [(0x0102, b""), (0x000D, bytes(16))])
def test_a_file_among_the_properties_of_an_outlook_message_keeps_its_first_bytes(kind: int, before: bytes) -> None:
    file = attribute(2, 0x69002, bytes(14)) + attribute(
        2, 0x69005, properties((0x3701, kind, before + b"%PDF-1.4 gauge"))
    )
    parsed = parse_tnef(b"\x78\x9f\x3e\x22\x01\x00" + file + b"\0", Limits(), Omissions())
    assert [each.data for each in parsed.attachments] == [b"%PDF-1.4 gauge"]
