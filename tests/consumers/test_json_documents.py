"""JSON documents: their shape is validated, their text kept, their triples assigned, and no input causes a crash."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consumers.json_documents import (
    is_corpus,
    parse_json,
    read_corpus,
    read_json_document,
    read_json_line,
    read_json_lines,
)
from consumers.parsing import ParseSummary, parse_file
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument

S = SplitSettings()
SMALL = SplitSettings(max_tokens=20, min_tokens=2)
BASE = "kafka://topic/"


def read(value: object, default_id: str | None = None, split: SplitSettings = S) -> ParsedDocument:
    return read_json_document(value, BASE, default_id, split)


def test_a_document_keeps_title_and_text_to_the_letter() -> None:
    document = read({"id": "a 1", "title": " T ", "text": " two\n\nlines ", "url": "http://x", "stars": 3})
    assert document.uri == "kafka://topic/a%201"
    assert (document.title, document.error) == (" T ", None)
    assert [(p.title, p.text, p.triples) for p in document.passages] == [(" T ", " two\n\nlines ", None)]
    assert document.metadata == {"id": "a 1", "url": "http://x", "stars": 3}


def test_ids_may_be_numbers_and_default_where_they_are_missing() -> None:
    assert read({"id": 7, "text": "x"}).uri == BASE + "7"
    assert read({"text": "x"}, "key").uri == BASE + "key"
    assert read({"id": None, "text": "x"}, "key").uri == BASE + "key"
    assert '"id" is missing' in (read({"text": "x"}).error or "")


def test_a_deleted_document_needs_nothing_else() -> None:
    document = read({"id": "a", "deleted": True})
    assert document.deleted and document.error is None and document.uri == BASE + "a"
    assert not read({"id": "a", "deleted": False, "text": "x"}).deleted


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([], "must be a JSON object"),
        (None, "not null"),
        ("text", "not a string"),
        ({"id": "a"}, '"text" is missing'),
        ({"id": "a", "text": 3}, '"text" must be a string, not a number'),
        ({"id": "a", "text": None}, '"text" must be a string, not null'),
        ({"id": "a", "text": "x", "title": ["t"]}, '"title" must be a string, not a list'),
        ({"id": "a", "text": "x", "title": "t" * 3000}, '"title" has 3,000 characters'),
        ({"id": "a", "text": "x", "triples": "s p o"}, '"triples" must be a list'),
        ({"id": "a", "text": "x", "url": {}}, '"url" must be a string, not an object'),
        ({"id": "a", "text": "x", "deleted": "yes"}, '"deleted" must be true or false'),
        ({"id": True, "text": "x"}, '"id" must be a string or a whole number'),
        ({"id": 1.5, "text": "x"}, '"id" must be a string or a whole number'),
        ({"id": " ", "text": "x"}, '"id" must have between'),
        ({"id": 10**5000, "text": "x"}, '"id" must have between'),
    ],
)
def test_errors_name_the_key_and_what_is_allowed(value: object, reason: str) -> None:
    document = read(value, "key")
    assert reason in (document.error or "") and document.passages == () and not document.skipped


def test_failed_document_keeps_its_own_id() -> None:
    assert read({"id": "own"}, "key").uri == BASE + "own"
    assert read({"id": []}, "key").uri == BASE + "key"


def test_blank_text_is_skipped() -> None:
    document = read({"id": "a", "text": " \n "})
    assert document.skipped and '"text" is blank' in (document.error or "")


def test_given_triples_are_assigned_to_passages_and_none_is_extracted() -> None:
    text = "Ada built the engine in Tarn.\n\nThe engine measured tides at Skerry.\n\nNothing else happened that year at all."
    triples = [
        ["The Engine", "measured tides at", "SKERRY"],
        ["Ada", "built", "engine"],
        ["engine", "is a", "machine"],
        ["Nobody", "knows", "Zanzibar"],
    ]
    passages = read({"id": "a", "text": text, "triples": triples}, split=SplitSettings(12, 2)).passages
    assert len(passages) == 3
    assert [p.triples for p in passages] == [
        (("Ada", "built", "engine"), ("engine", "is a", "machine"), ("Nobody", "knows", "Zanzibar")),
        (("The Engine", "measured tides at", "SKERRY"),),
        (),
    ]


def test_no_triples_at_all_and_an_empty_list_differ() -> None:
    assert read({"id": "a", "text": "x"}).passages[0].triples is None
    assert read({"id": "a", "text": "x", "triples": None}).passages[0].triples is None
    assert read({"id": "a", "text": "x", "triples": []}).passages[0].triples == ()


def test_malformed_triples_are_dropped_and_counted() -> None:
    bad: list[Any] = [["a", "b"], ["a", "b", ""], ["a", "b", 3], "abc", None, ["a", "b", "c", "d"], {"s": 1}]
    document = read({"id": "a", "text": "x", "triples": [["s", "p", "o"], *bad]})
    assert document.passages[0].triples == (("s", "p", "o"),)
    assert document.metadata["dropped_triples"] == len(bad)


def test_unpaired_surrogates_nan_and_huge_numbers_are_replaced() -> None:
    line = (
        '{"id": "a", "title": "\\ud800", "text": "x\\udc00y", "n": NaN, "i": -Infinity, "big": 12345678901234567890123}'
    )
    document = read_json_line(line, 1, BASE, S)
    assert document.error is None
    assert (document.title, document.passages[0].text) == ("\ufffd", "x\ufffdy")
    assert document.metadata == {"id": "a", "n": None, "i": None, "big": "12345678901234567890123"}


def test_nesting_depth_of_metadata_is_limited() -> None:
    deep: Any = "core"
    for _ in range(500):
        deep = [deep]
    encoded = json.dumps(read({"id": "a", "text": "x", "deep": deep}).metadata)
    assert encoded.count("[") <= 40


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"{", "not JSON at column 2"),
        (b'{"a": 1,\n}', "not JSON at line 2"),
        (b"[" * 200_000, "nested too deeply"),
        (b"1" * 5000, "cannot be read"),
        (b'{"a": "\xff"}', "not UTF-8 at byte"),
        (b"", "not JSON"),
    ],
)
def test_text_that_is_no_json_is_refused_in_one_sentence(data: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as caught:
        parse_json(data)
    assert type(caught.value) is ValueError


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
KEYS = ["id", "title", "text", "url", "published_at", "triples", "deleted", "other"]


@pytest.mark.slow
@given(st.one_of(JSON_VALUES, st.dictionaries(st.sampled_from(KEYS), JSON_VALUES | st.text(), max_size=8)))
@settings(max_examples=300, deadline=None)
def test_any_json_value_gives_a_serialisable_document(value: object) -> None:
    document = read(value, "key", SMALL)
    assert document.uri.startswith(BASE)
    assert document.passages or document.error or document.deleted
    json.dumps(document.metadata, allow_nan=False).encode()
    "".join([document.uri, document.title, *(p.title + p.text for p in document.passages)]).encode()


# Many documents


def test_a_hipporag_corpus_gives_documents_by_idx() -> None:
    corpus = [
        {"idx": 0, "title": "A", "text": "x"},
        {"idx": 12, "title": "B", "text": "y"},
        {"title": "C", "text": "z"},
    ]
    assert is_corpus(corpus) and not is_corpus([]) and not is_corpus([{"question": "?"}])
    documents = list(read_corpus(corpus, "file:///c.json#", S))
    assert [(d.uri, d.title) for d in documents] == [
        ("file:///c.json#0", "A"),
        ("file:///c.json#12", "B"),
        ("file:///c.json#2", "C"),
    ]


def test_json_lines_from_bytes_give_documents_and_errors_by_line() -> None:
    data = b'\xef\xbb\xbf{"id": "a", "text": "x"}\n\n{"text": "y"}\nnot json\n[1]\r\n{"id": "e", "text": "z"}'
    documents = list(read_json_lines(data, "add:", S))
    assert [d.uri for d in documents] == ["add:a", "add:line-3", "add:line-4", "add:line-5", "add:e"]
    assert [bool(d.error) for d in documents] == [False, False, True, True, False]
    assert "line 4: not JSON" in (documents[2].error or "")


def parse(tmp_path: Path, name: str, data: bytes) -> tuple[str, list[ParsedDocument], ParseSummary]:
    path = tmp_path / name
    path.write_bytes(data)
    *found, summary = parse_file(bytes(path), path.as_uri(), S)
    assert isinstance(summary, ParseSummary)
    documents = [document for document in found if isinstance(document, ParsedDocument)]
    assert documents == found
    return path.as_uri(), documents, summary


def test_json_lines_file_gives_a_document_for_each_valid_line(tmp_path: Path) -> None:
    lines = [b'{"id": "n%d", "title": "T%d", "text": "words %d"}' % (n, n, n) for n in range(500)]
    lines[100], lines[200] = b"{broken", b"\xff\xfe not utf-8"
    uri, documents, summary = parse(tmp_path, "many.jsonl", b"\n".join(lines) + b"\n")
    assert len(documents) == 500 and not summary.changed
    assert documents[7].uri == f"{uri}#n7" and documents[7].modified_at
    assert [d.uri for d in documents if d.error] == [f"{uri}#line-101", f"{uri}#line-201"]


def test_a_line_that_is_too_long_costs_only_itself(tmp_path: Path) -> None:
    from consumers.parsing import Limits

    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "' + b"x" * 3_000_000 + b'"}\n{"id": "b", "text": "fine"}')
    good, long, _ = parse_file(bytes(path), "u", S, Limits(json_line_bytes=1_000_000))
    assert isinstance(long, ParsedDocument) and "line 1 is longer than" in (long.error or "") and long.uri == "u#line-1"
    assert isinstance(good, ParsedDocument) and good.uri == "u#b" and not good.error


def test_json_lines_in_another_encoding_fail_and_an_empty_file_is_skipped(tmp_path: Path) -> None:
    uri, (document,), _ = parse(tmp_path, "a.jsonl", '{"text": "x"}'.encode("utf-16"))
    assert document.uri == uri and "save it as UTF-8" in (document.error or "")
    _, (document,), _ = parse(tmp_path, "b.jsonl", b"\n\n")
    assert document.skipped and "empty" in (document.error or "")


def test_a_json_file_is_a_document_or_a_corpus(tmp_path: Path) -> None:
    uri, (document,), _ = parse(tmp_path, "one.json", b'{"id": "x", "title": "One", "text": "words"}')
    assert (document.uri, document.title) == (uri, "One")
    _, (untitled,), _ = parse(tmp_path, "two.json", b'{"text": "words"}')
    assert (untitled.title, untitled.passages[0].title) == ("two", "")
    corpus = json.dumps([{"idx": n, "title": f"T{n}", "text": "x"} for n in range(3)])
    uri, documents, _ = parse(tmp_path, "corpus.json", corpus.encode())
    assert [d.uri for d in documents] == [f"{uri}#{n}" for n in range(3)]
    _, (bad,), _ = parse(tmp_path, "bad.json", b'{"text": 5}')
    assert '"text" must be a string' in (bad.error or "") and not bad.skipped


def test_uris_of_lines_hold_no_blanks_or_controls(tmp_path: Path) -> None:
    uri, documents, _ = parse(tmp_path, "a.jsonl", json.dumps({"id": "a\nb c\ud800", "text": "x"}).encode())
    assert documents[0].uri == f"{uri}#a%0Ab%20c%3F"
    assert os.linesep not in documents[0].uri
