"""`add` and `import`: everything good is sent, everything else is named with its place, and nothing is lost in silence."""

import base64
import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from cli.client import uploads
from cli.client.uploads import record_files
from cli.document_files import (
    MAX_FILE_BYTES,
    TOO_LARGE,
    ReadyDocument,
    RejectedDocument,
    encode_document,
    read_file,
    read_json_lines,
)
from cli.errors import CommandError
from tests.cli.sample_answers import IMPORTED
from tests.cli.scripted_daemon import Here, ReceivedRequest, Reply, Scripted, problem


def accept(asked: ReceivedRequest) -> dict[str, Any]:
    documents = asked.body["documents"]
    return {"accepted": len(documents), "documents": [f"added:{document.get('id')}" for document in documents]}


def sent(scripted: Scripted) -> list[Any]:
    posted = [asked for asked in scripted.asked if asked.method == "POST" and asked.path == "/v1/documents"]
    return [document for asked in posted for document in asked.body["documents"]]


def test_document_with_an_infinite_number_is_rejected_and_others_are_sent(
    here: Here, scripted: Scripted, tmp_path: Path
) -> None:
    scripted.answers["POST /v1/documents"] = accept
    (tmp_path / "one.json").write_text('[{"id": "a", "text": "One.", "n": 1e999}, {"id": "b", "text": "Two."}]')
    ended = here("--json", "add", "one.json")
    assert ended.code == 1
    assert "one.json[1]: contains a number that JSON cannot represent" in ended.err
    assert [document["id"] for document in sent(scripted)] == ["b"]


def test_json_files_hold_one_document_or_many(here: Here, scripted: Scripted, tmp_path: Path) -> None:
    scripted.answers |= {"POST /v1/documents": accept, "GET /v1/documents": {"documents": []}}
    (tmp_path / "one.json").write_text('\ufeff{"id": "a", "text": "One.", "colour": "red"}')
    (tmp_path / "corpus.json").write_text('[{"idx": 7, "title": "T", "text": "Two."}]')
    (tmp_path / "lines.jsonl").write_text('{"id": "c", "text": "Three."}\n\n{"id": "d", "deleted": true}\n')
    ended = here("--json", "add", "one.json", "corpus.json", "lines.jsonl")
    assert ended.code == 0
    assert ended.json == {"accepted": 4, "documents": ["added:a", "added:None", "added:c", "added:d"]}
    assert sent(scripted) == [
        {"id": "a", "text": "One.", "colour": "red"},
        {"idx": 7, "title": "T", "text": "Two."},
        {"id": "c", "text": "Three."},
        {"id": "d", "deleted": True},
    ]


CORPUS = [{"idx": at, "title": f"T{at}", "text": f"Text {at}."} for at in range(100)]


def listed(titles: dict[str, str], **states: str) -> Any:
    def answer(asked: ReceivedRequest) -> dict[str, Any]:
        uri = parse_qs(asked.query)["prefix"][0]
        entry = {"uri": uri, "title": titles.get(uri, ""), "state": states.get(uri.replace(":", "_"), "indexed")}
        return {"documents": [entry] if uri in titles else []}

    return answer


def test_corpus_that_would_replace_documents_of_another_is_refused(
    here: Here, scripted: Scripted, tmp_path: Path
) -> None:
    (tmp_path / "second.json").write_text(json.dumps(CORPUS))
    scripted.answers |= {"POST /v1/documents": accept, "GET /v1/documents": listed({"added:99": "Other"})}
    ended = here("--json", "add", "second.json")
    assert (ended.code, ended.json["accepted"], sent(scripted)) == (1, 0, [])
    assert 'would replace other documents: added:99 is "Other", and here it is "T99"' in ended.err
    assert "--id-prefix second" in ended.err
    assert here("add", "second.json", "--replace").code == 0
    assert sent(scripted) == CORPUS
    scripted.asked.clear()
    assert here("add", "second.json", "--id-prefix", "second").code == 0
    assert sent(scripted) == [each | {"idx": f"second/{each['idx']}"} for each in CORPUS]
    # The same corpus again: equal titles.
    scripted.answers["GET /v1/documents"] = listed({f"added:{at}": f"T{at}" for at in range(100)})
    scripted.answers["POST /v1/documents"] = lambda asked: accept(asked) | {"replaced": 100}
    assert here("--json", "add", "second.json").json["replaced"] == 100
    assert "100 documents added (100 replaced)" in here("add", "second.json").out


def test_corpus_conflict_check_waits_for_pending_documents(here: Here, scripted: Scripted, tmp_path: Path) -> None:
    (tmp_path / "second.json").write_text(json.dumps(CORPUS[:1]))

    def pending(asked: ReceivedRequest) -> dict[str, Any]:
        scripted.answers["GET /v1/documents"] = listed({"added:0": "Other"})
        return dict(listed({"added:0": ""}, added_0="pending")(asked))

    # Other documents may take hours, so nothing waits for them: no POST /v1/wait.
    scripted.answers |= {"POST /v1/documents": accept, "GET /v1/documents": pending}
    ended = here("add", "second.json")
    assert (ended.code, 'added:0 is "Other"' in ended.err) == (1, True)


def test_file_of_another_format_is_sent_unchanged_with_its_name(here: Here, scripted: Scripted, tmp_path: Path) -> None:
    scripted.answers["POST /v1/documents"] = accept
    contents = {"notes.md": "# Gauges\n\nÜber all.".encode(), "old.txt": b"f\xfcr", "paper.pdf": b"%PDF-1.7\x00\xff"}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    assert here("add", *contents).code == 0
    for document, (name, content) in zip(sent(scripted), contents.items(), strict=True):
        assert base64.b64decode(document.pop("content_base64")) == content
        assert document == {"id": str(tmp_path / name), "filename": name}


def test_non_utf8_file_name_is_escaped(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path / "n") + b"\xff.txt"
    Path(os.fsdecode(path)).write_bytes(b"a")
    (item,) = read_file(Path(os.fsdecode(path)))
    assert isinstance(item, ReadyDocument)
    assert json.loads(item.body)["filename"] == "n\\xff.txt"


def test_files_with_the_same_name_in_two_folders_get_different_ids(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.txt").write_text(folder)
    items = [next(read_file(tmp_path / folder / "x.txt")) for folder in ("a", "b")]
    assert len({json.loads(item.body)["id"] for item in items if isinstance(item, ReadyDocument)}) == 2


def test_bad_lines_are_named_and_the_good_ones_are_sent(here: Here, scripted: Scripted) -> None:
    scripted.answers["POST /v1/documents"] = accept
    lines = [
        b'{"id": 1, "text": "good"}',
        b"{",
        b"",
        b'"text"',
        b'{"id": 5, "title": "no text"}',
        b'{"id": 6, "text": NaN}',
        b'{"id": 7, "text": "\xff"}',
        b'{"id": 8, "text": "\\ud800"}',
        b"[" * 100_000,
        b'{"id": 10, "text": "good"}',
    ]
    ended = here("--json", "add", "-", stdin=b"\n".join(lines))
    assert ended.code == 1
    assert ended.json["documents"] == ["added:1", "added:10"]
    assert [each["where"] for each in ended.json["rejected"]] == [f"stdin:{at}" for at in (2, 4, 5, 6, 7, 8, 9)]
    assert "stdin:5: has no `text`; a document needs one (its keys: id, title)" in ended.err
    assert "stdin:7: is not JSON: byte" in ended.err
    assert "7 documents could not be added." in ended.err


def test_printed_errors_of_rejected_lines_are_limited_and_their_total_given(here: Here, scripted: Scripted) -> None:
    scripted.answers["POST /v1/documents"] = accept
    ended = here("--json", "add", "-", stdin=b'{"id": 5, "title": "no text"}\n' * 2_000 + b'{"id": 1, "text": "good"}')
    assert (ended.code, len(ended.json["rejected"])) == (1, 2_000)
    assert len(ended.err.splitlines()) == 22
    assert "2,000 documents could not be added." in ended.err


def test_bad_files_are_named_and_the_good_ones_are_sent(here: Here, scripted: Scripted, tmp_path: Path) -> None:
    scripted.answers["POST /v1/documents"] = accept
    (tmp_path / "good.json").write_text('{"id": "a", "text": "One."}')
    (tmp_path / "openie.json").write_text('{"docs": [{"idx": "x", "passage": "T\\nt"}]}')
    (tmp_path / "folder").mkdir()
    ended = here("add", "absent.txt", "folder", "openie.json", "good.json")
    assert (ended.code, ended.out) == (1, "1 document added: added:a\n")
    assert "absent.txt: does not exist" in ended.err
    assert "folder: is a directory" in ended.err
    assert "hippoctl import openie.json" in ended.err


def test_documents_refused_by_the_daemon_are_removed_and_the_batch_sent_again(here: Here, scripted: Scripted) -> None:
    def picky(asked: ReceivedRequest) -> Reply | dict[str, Any]:
        bad = [at for at, document in enumerate(asked.body["documents"]) if "triples" in document]
        if bad:
            errors = [{"field": f"documents[{at}].triples", "message": "must be a list"} for at in bad]
            return problem("invalid", 422, "The request is not valid.", errors=errors)
        return accept(asked)

    scripted.answers["POST /v1/documents"] = picky
    lines = b'{"id": 1, "text": "a"}\n{"id": 2, "text": "b", "triples": 3}\n{"id": 3, "text": "c"}\n'
    ended = here("--json", "add", "-", stdin=lines)
    assert (ended.code, ended.json["documents"]) == (1, ["added:1", "added:3"])
    assert ended.json["rejected"] == [{"where": "stdin:2", "error": "triples: must be a list"}]


def test_too_large_batch_is_halved_until_it_fits(here: Here, scripted: Scripted) -> None:
    def small(asked: ReceivedRequest) -> Reply | dict[str, Any]:
        if int(asked.headers["content-length"]) > 200:
            return problem("too-large", 413, "The body is longer than 200 bytes.")
        return accept(asked)

    scripted.answers["POST /v1/documents"] = small
    lines = [json.dumps({"id": at, "text": "x" * (500 if at == 3 else 20)}) for at in range(8)]
    ended = here("--json", "add", "-", stdin="\n".join(lines).encode())
    assert (ended.code, ended.json["accepted"]) == (1, 7)
    assert ended.json["documents"] == [f"added:{at}" for at in range(8) if at != 3]
    assert ended.json["rejected"] == [{"where": "stdin:4", "error": TOO_LARGE}]


def test_file_beyond_every_limit_is_rejected(here: Here, scripted: Scripted, tmp_path: Path) -> None:
    with (tmp_path / "disk.pdf").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    ended = here("--json", "add", "disk.pdf")
    assert (ended.code, ended.json["rejected"]) == (1, [{"where": "disk.pdf", "error": TOO_LARGE}])
    [rejected] = ended.json["rejected"]
    assert "followed folder" in rejected["error"] and "[api] request_bytes" in rejected["error"]


def test_batches_are_limited_by_documents_and_bytes() -> None:
    pieces = [ReadyDocument(str(at), b"x" * 40) for at in range(10)]
    assert [len(batch) for batch in uploads.batches(pieces, count=4, size=1_000)] == [4, 4, 2]
    assert [len(batch) for batch in uploads.batches(pieces, count=100, size=100)] == [2] * 5
    assert [len(batch) for batch in uploads.batches(pieces, count=100, size=10)] == [1] * 10


def test_many_documents_arrive_once_each_and_in_order(here: Here, scripted: Scripted) -> None:
    scripted.answers["POST /v1/documents"] = accept
    lines = b"".join(b'{"id": %d, "text": "t"}\n' % at for at in range(2_500))
    assert here("--json", "add", "-", stdin=lines).json["accepted"] == 2_500
    assert [document["id"] for document in sent(scripted)] == list(range(2_500))
    assert len(scripted.asked) == 3


def test_add_without_a_daemon_exits_with_3(here: Here) -> None:
    assert here("--socket", "absent", "add", "-", stdin=b'{"text": "a"}').code == 3


@pytest.mark.parametrize("value", [None, 1, True, [], "text", {}, {"text": 1}, {"text": None}, {"text": ["a"]}])
def test_only_an_object_with_a_text_is_a_document(value: object) -> None:
    assert isinstance(encode_document(value, "here"), RejectedDocument)


def test_line_numbers_start_at_1_and_include_empty_lines() -> None:
    assert [item.where for item in read_json_lines([b"{}\n", b" \n", b"{}"], "f")] == ["f:1", "f:3"]


def test_import_sends_the_file_as_it_is(here: Here, scripted: Scripted, tmp_path: Path) -> None:
    scripted.answers["POST /v1/import"] = IMPORTED
    content = {"docs": [{"idx": "chunk-1", "passage": "T\nt", "extracted_triples": [["a", "b", "c"], ["x"]]}]}
    (tmp_path / "openie.json").write_text(json.dumps(content))
    assert here("import", "openie.json").out == "2 passages and 5 triples imported; 1 malformed triple skipped\n"
    assert scripted.asked[0].body == content
    absent = here("import", "absent.json")
    assert (absent.code, absent.err) == (1, "hippoctl: absent.json cannot be read: No such file or directory.\n")


def test_import_finds_all_record_files_of_a_folder_or_url(tmp_path):
    for name in ("b.parquet", "a.parquet", "c.txt"):
        (tmp_path / name).write_text(name)
    for place in (str(tmp_path), f"file://{tmp_path}"):
        found = list(record_files(place))
        assert [(file.name, file.size) for file in found] == [("a.parquet", 9), ("b.parquet", 9)]
        with found[0].open() as stream:
            assert stream.read(100) == b"a.parquet"
    (tmp_path / "empty").mkdir()
    for place, said in (
        (str(tmp_path / "empty"), "contains no files of records"),
        (f"file://{tmp_path}/empty", "contains no files of records"),
        (f"file://{tmp_path}/absent", "cannot be read"),
        ("ftp://x/y", "is not a location of record files"),
    ):
        with pytest.raises(CommandError, match=said):
            list(record_files(place))
