"""A HippoRAG OpenIE results file is read read_bytes by read_bytes, and what is malformed in it costs only itself."""

import json
import tracemalloc
from functools import partial
from pathlib import Path

import pytest

from memory.openie import hipporag_file
from memory.openie.hipporag_file import HippoRAGFormatError, read_hipporag_file
from memory.openie.json_stream import JsonStream

_SHARED = Path(__file__).parents[4] / "shared" / "data" / "musique" / "openie.json"


def _write(folder: Path, content: object) -> Path:
    path = folder / "openie.json"
    path.write_text(json.dumps(content))
    return path


def _doc(passage: object = "Title\nText.", triples: object = (), entities: object = ()) -> dict[str, object]:
    return {"idx": "chunk-1", "passage": passage, "extracted_entities": entities, "extracted_triples": triples}


def test_the_first_line_is_the_title_and_the_rest_the_text(tmp_path: Path) -> None:
    [found] = read_hipporag_file(_write(tmp_path, {"docs": [_doc("Ann Lee\nShe built it.\nIn Oslo.")]}))
    assert (found.title, found.text, found.problem) == ("Ann Lee", "She built it.\nIn Oslo.", None)


def test_a_passage_of_one_line_has_no_title(tmp_path: Path) -> None:
    [found] = read_hipporag_file(_write(tmp_path, {"docs": [_doc("Only this.")]}))
    assert (found.title, found.text) == ("", "Only this.")


def test_triples_and_entities_come_normalised_and_in_order(tmp_path: Path) -> None:
    doc = _doc(triples=[["Ann", "Built", "Gauge!"], ["Ann", "lives in", "Oslo"]], entities=["Oslo", "Ann", "oslo."])
    [found] = read_hipporag_file(_write(tmp_path, {"docs": [doc]}))
    assert found.triples == (("ann", "built", "gauge"), ("ann", "lives in", "oslo"))
    assert found.entities == ("oslo", "ann")


def test_malformed_triples_are_skipped_and_counted(tmp_path: Path) -> None:
    bad = [["a", "b"], ["a", "b", "c", "d"], ["a", 1, "c"], "abc", None, ["a", "b", "?"]]
    [found] = read_hipporag_file(_write(tmp_path, {"docs": [_doc(triples=[*bad, ["a", "b", "c"]])]}))
    assert found.triples == (("a", "b", "c"),)
    assert found.skipped == len(bad)


@pytest.mark.parametrize(
    "bad",
    [None, [], "text", {}, _doc(passage=None), _doc(passage="  "), _doc(triples={"a": 1}), _doc(entities="Oslo")],
    ids=str,
)
def test_one_bad_doc_costs_one_doc_and_says_why(tmp_path: Path, bad: object) -> None:
    first, second, third = read_hipporag_file(_write(tmp_path, {"docs": [_doc(), bad, _doc()]}))
    assert first.problem is None and third.problem is None
    assert second.problem is not None and "docs[1]" in second.problem


@pytest.mark.parametrize("missing", ["extracted_entities", "extracted_triples"])
def test_a_doc_may_lack_entities_or_triples(tmp_path: Path, missing: str) -> None:
    doc = _doc(triples=[["a", "b", "c"]], entities=["a"])
    del doc[missing]
    [found] = read_hipporag_file(_write(tmp_path, {"docs": [doc]}))
    assert found.problem is None


@pytest.mark.parametrize("content", ["", "not json", "[]", "{}", '{"docs": {}}', "[" * 100_000, "\xff"])
def test_file_of_another_format_is_refused_before_the_first_passage(tmp_path: Path, content: str) -> None:
    path = tmp_path / "other.json"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(HippoRAGFormatError, match=r"other\.json is not a HippoRAG OpenIE results file"):
        read_hipporag_file(path)


@pytest.mark.shared
@pytest.mark.skipif(not _SHARED.exists(), reason="needs ../shared/data")
def test_musique_file_loads_completely_except_malformed_triples() -> None:
    found = list(read_hipporag_file(_SHARED))
    assert len(found) == 1_890
    assert all(passage.problem is None for passage in found)
    # 185 triples are not of three parts; one has "$" for its object.
    assert sum(passage.skipped for passage in found) == 186
    assert sum(len(passage.triples) for passage in found) == 17_419 - 186


PASSAGES = [_doc(f'Title {n}\nText {n}, \u00e4\U0001f600 \\ " \ud800.', triples=[["a", "b", str(n)]]) for n in range(3)]
WHOLE = {"name": -1.5e3, "docs": PASSAGES, "avg": float("nan"), "more": {"docs": [1, {"a": None}]}, "last": True}


def texts(path: Path) -> list[str]:
    return [passage.text for passage in read_hipporag_file(path)]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32-be"])
@pytest.mark.parametrize("read_bytes", [1, 2, 3, 7, 64, 1 << 16])
def test_streamed_file_gives_the_passages_of_a_complete_parse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read_bytes: int, encoding: str
) -> None:
    monkeypatch.setattr(hipporag_file, "JsonStream", partial(JsonStream, read_bytes=read_bytes))
    for indent in (None, 1):
        path = tmp_path / "openie.json"
        path.write_bytes(json.dumps(WHOLE, indent=indent, ensure_ascii=False).encode(encoding, "surrogatepass"))
        assert texts(path) == [doc["passage"].partition("\n")[2] for doc in PASSAGES]  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize("read_bytes", [1, 2, 5, 11, 1 << 16])
def test_streamed_syntax_errors_equal_those_of_json_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read_bytes: int
) -> None:
    monkeypatch.setattr(hipporag_file, "JsonStream", partial(JsonStream, read_bytes=read_bytes))
    path = tmp_path / "openie.json"
    whole = json.dumps({"docs": [_doc()], "avg": 1.25, "b": [None, -3e5]}, indent=1)
    cut = [whole[:at] for at in range(len(whole))]
    put = [
        whole[:at] + wrong + whole[at:]
        for at in range(0, len(whole), 3)
        for wrong in ("]", "}", ",", '"', "x", "\n\\u1")
    ]
    for content in [*cut, *put]:
        try:
            json.loads(content)
        except ValueError as error:
            path.write_text(content)
            with pytest.raises(HippoRAGFormatError) as refused:
                read_hipporag_file(path)
            assert f"not valid JSON ({error})." in str(refused.value), content


def test_error_position_refers_to_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "openie.json"
    path.write_text(json.dumps({"docs": [_doc(f"T\nText {n}.") for n in range(5_000)]}, indent=1)[:-4] + ",]}")
    with pytest.raises(ValueError) as told:
        json.loads(path.read_bytes())
    with pytest.raises(HippoRAGFormatError) as refused:
        read_hipporag_file(path)
    assert str(told.value) in str(refused.value)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ('{"docs": [{"passage": "a"}], "docs": [{"passage": "b"}]}', ["b"]),
        ('{"docs": {"passage": "a"}, "docs": [{"passage": "b"}]}', ["b"]),
        ('{"a": {"docs": [1]}, "docs": [{"passage": "b"}], "c": []}', ["b"]),
    ],
)
def test_last_of_duplicate_json_members_wins(tmp_path: Path, content: str, found: list[str]) -> None:
    path = tmp_path / "openie.json"
    path.write_text(content)
    assert texts(path) == found


def test_a_last_member_that_is_no_list_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "openie.json"
    path.write_text('{"docs": [], "docs": 1}')
    with pytest.raises(HippoRAGFormatError, match='a list "docs"'):
        read_hipporag_file(path)


@pytest.mark.slow
def test_streaming_a_large_file_uses_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "openie.json"
    path.write_text(json.dumps({"more": [["x"] * 1000] * 500, "docs": [_doc("T\n" + "word " * 200)] * 5_000}))
    size = path.stat().st_size
    assert size > 7_000_000
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_hipporag_file(path)) == 5_000
        assert tracemalloc.get_traced_memory()[1] < 1_500_000
    finally:
        tracemalloc.stop()


def test_overlong_value_is_refused_with_its_position(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hipporag_file, "JsonStream", partial(JsonStream, read_bytes=64, max_value_chars=1_000))
    path = _write(tmp_path, {"docs": [_doc("T\n" + "word " * 100), _doc("T\n" + "word " * 1_000)]})
    with pytest.raises(HippoRAGFormatError, match=r"a value is longer than 1,000 characters: line 1 column 6\d\d "):
        read_hipporag_file(path)
