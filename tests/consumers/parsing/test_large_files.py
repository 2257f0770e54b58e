"""A file that is too large is read as far as it may be, if its format can be cut, and says what is left out."""

import json
import os
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consumers.folder.tree.file_status import read_fingerprint
from consumers.omissions import OmissionKind
from consumers.openat import FileAccess
from consumers.parsing import Limits, ParseSummary, parse_file
from consumers.parsing.formats.registry import FORMATS, MAILBOX
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument
from tests.consumers.parsing.samples import SizeLimits, flowed, pdf

S = SplitSettings(400, 40)
BEGINNING = {
    "html": "<html><body><main>\n",
    "xml": "<book>\n",
    "mail": "From: ann@example.org\nSubject: one\nContent-Type: text/plain; charset=utf-8\n\n",
    "mailbox": "From ann@example.org Sat Jan  3 01:05:34 2026\nSubject: one\n\n",
    "latex": "\\begin{document}\n",
    "man": ".TH X 1\n.SH TEXT\n",
}
PART = {
    "html": "<p>The word {} stands here.</p>\n",
    "xml": "<para>The word {} stands here.</para>\n",
    "source": "# The word {} stands here alone.\n\nx = 1\n",
    "mailbox": "The word {} stands here.\n\nFrom ann@example.org Sat Jan  3 01:05:34 2026\nSubject: next\n\n",
    "csv": "the,word,{},here\n",
}
CUT = [each for each in FORMATS if each.cut_at is not None and each is not MAILBOX]


def parsed(
    path: Path, max_bytes: int | None, limits: Limits | None = None
) -> tuple[list[ParsedDocument], ParseSummary]:
    *documents, summary = parse_file(bytes(path), "u", S, limits or Limits(), FileAccess(max_bytes=max_bytes))
    assert isinstance(summary, ParseSummary)
    return [each for each in documents if isinstance(each, ParsedDocument)], summary


def words(document: ParsedDocument) -> set[str]:
    text = " ".join(f"{passage.title} {passage.text}" for passage in document.passages)
    return {word.strip(".,;:") for word in text.split() if word.startswith("ünik")}


@pytest.mark.parametrize("messages_read", [3, 5])
def test_a_mailbox_is_read_up_to_the_limit_message_by_message(tmp_path: Path, messages_read: int) -> None:
    messages = [
        f"From ann@example.org Sat Jan  3 01:05:34 2026\nMessage-ID: <{n}@x>\n\nThe word ünik{n} is here.\n\n".encode()
        for n in range(5)
    ]
    path = tmp_path / "large.mbox"
    path.write_bytes(b"".join(messages))
    documents, _summary = parsed(path, messages_read * len(messages[0]) + (20 if messages_read < 5 else 0))
    read = [each for each in documents if not each.skipped]
    assert set().union(*map(words, read)) == {f"ünik{n}" for n in range(messages_read)}
    told = [each for each in documents if each.skipped]
    assert [each.uri for each in told] == (["u"] if messages_read < 5 else [])
    assert all(each.left_out[0].kind is OmissionKind.TOO_LARGE for each in told)


@pytest.mark.parametrize("format", CUT, ids=lambda each: each.name)
@settings(max_examples=12, deadline=None)
@given(count=st.integers(3, 30), share=st.floats(0.5, 1.2))
def test_a_text_is_read_up_to_the_limit(
    tmp_path_factory: pytest.TempPathFactory, format, count: int, share: float
) -> None:
    """Every part that ends within the limit is read whole; of others at most the beginning; and the account says so."""
    begin, part = BEGINNING.get(format.name, ""), PART.get(format.name, "The word {} stands here.\n\n")
    content = (begin + "".join(part.format(f"ünik{n:04}") for n in range(count))).encode()
    max_bytes = max(int(share * len(content)), len(begin) + 3 * len(part))
    path = tmp_path_factory.getbasetemp() / f"large.{'py' if format.name == 'source' else format.endings[0]}"
    path.write_bytes(content)
    (document,), summary = parsed(path, max_bytes)
    within = {f"ünik{n:04}" for n in range(count) if begin_and_parts(begin, part, n + 1) <= max_bytes}
    assert document.error is None
    assert words(document) >= within
    assert len(words(document) - within) <= 1
    told = [each for each in document.left_out if each.kind is OmissionKind.TOO_LARGE]
    assert bool(told) == (len(content) > max_bytes)
    assert words(document) == {f"ünik{n:04}" for n in range(count)} or "the file after its first" in told[0].text
    watched, steady = read_fingerprint(os.fsencode(path), os.fsencode(path.parent), follow=False, max_bytes=max_bytes)
    assert (watched.digest, steady, summary.changed) == (summary.digest, True, False), "reader and watcher agree"


def begin_and_parts(begin: str, part: str, count: int) -> int:
    return len((begin + part.format("ünik0000") * count).encode())


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
def test_no_character_is_cut(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(("Wörter und Zeilen.\n" * 50).encode(encoding))
    for max_bytes in range(401, 405):
        (document,), _ = parsed(path, max_bytes)
        assert document.passages
        assert "\ufffd" not in "".join(passage.text for passage in document.passages)


def test_json_lines_within_the_limit_are_documents(tmp_path: Path) -> None:
    lines = [json.dumps({"id": str(n), "text": f"words {n}"}) for n in range(100)]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(lines))
    size = len("\n".join(lines[:40])) + 1
    for max_bytes in (size, size + 7):
        (*found, rest), _ = parsed(path, max_bytes)
        assert [each.uri for each in found] == [f"u#{n}" for n in range(40)]
        assert (rest.uri, rest.skipped, rest.code) == ("u", True, "too large")
        assert rest.left_out[0].text.endswith(f"the file after its first {max_bytes:,} bytes")
    path.write_text("\n".join([*['{"no": "text"}'] * 20, *lines]))
    (*_, rest), _ = parsed(path, size)
    assert not rest.skipped and rest.left_out
    assert (rest.error or "").startswith('20 of its documents are not read: "text" is missing')
    assert f"read up to its first {size:,} bytes" in (rest.error or "")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.pdf", pdf([flowed(["x"])])),
        ("a.docx", b"PK\x03\x04" + bytes(200)),
        ("a.log.gz", zlib.compress(b"x y\n" * 100, wbits=31)),
        ("a.json", b'{"text": "' + b"x y " * 100 + b'"}'),
        ("a.ipynb", b'{"cells": []}' + b" " * 100),
        ("a.rtf", b"{\\rtf1 " + b"x y " * 100 + b"}"),
    ],
)
def test_large_file_that_needs_complete_parsing_is_skipped_with_the_reason(
    tmp_path: Path, name: str, content: bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    found = list(parse_file(bytes(path), "u", S, access=FileAccess(max_bytes=len(content) - 1)))
    assert isinstance(found[0], ParsedDocument)
    assert found[0].skipped and found[0].code == "too large"
    assert (found[0].error or "").startswith(
        f"larger than {len(content) - 1:,} bytes, and it can be read only as a whole"
    )


@pytest.mark.parametrize(
    ("name", "content", "limits", "read", "left_out"),
    [
        ("a.txt", "one two\n\n" * 9, {"text_chars": 20}, 2, "text after the first 18 characters"),
        ("a.md", "one two\n\n" * 9, {"text_chars": 20}, 2, "text after the first 18 characters"),
        ("a.html", "<p>one two</p>" * 9, {"text_chars": 20}, 2, "text after the first 20 characters"),
        ("a.csv", "one,two\n" * 9, {"cells": 5}, 1, "rows after row 2"),
        ("a.txt", "one two\n" + "x" * 50 + "\none two\n", {"line_chars": 40}, 2, "line 2, which has 50 characters"),
        ("a.md", "one two\n\n" + "x" * 50 + "\n\none two\n", {"line_chars": 40}, 2, "line 3, which has 50 characters"),
    ],
)
def test_content_beyond_other_limits_is_left_out_and_listed(
    tmp_path: Path, name: str, content: str, limits: SizeLimits, read: int, left_out: str
) -> None:
    """A log that outgrows one of them must not be forgotten."""
    path = tmp_path / name
    path.write_text(content)
    (document,), _ = parsed(path, None, Limits(**limits))
    assert "".join(f"{passage.title} {passage.text}" for passage in document.passages).count("two") == read
    assert left_out in document.left_out[0].text


def test_log_that_grows_beyond_the_limit_is_not_reported_as_changed(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("one line\n" * 20)
    found = parse_file(bytes(path), "u", S, access=FileAccess(max_bytes=90))
    document = next(found)
    with path.open("a") as log:
        log.write("another line\n")
    summary = next(found)
    assert isinstance(document, ParsedDocument) and isinstance(summary, ParseSummary)
    assert not summary.changed
    found = parse_file(bytes(path), "u", S)
    next(found)
    with path.open("a") as log:
        log.write("another line\n")
    summary = next(found)
    assert isinstance(summary, ParseSummary) and summary.changed
