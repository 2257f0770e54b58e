"""A HippoRAG OpenIE results file is read whole, and what is malformed in it costs only itself."""

import json
from pathlib import Path

import pytest

from memory.openie.recorded import RecordedFormatError, read_recorded

_SHARED = Path(__file__).parents[3] / "shared" / "data" / "musique" / "openie.json"


def _write(folder: Path, content: object) -> Path:
    path = folder / "openie.json"
    path.write_text(json.dumps(content))
    return path


def _doc(passage: object = "Title\nText.", triples: object = (), entities: object = ()) -> dict[str, object]:
    return {"idx": "chunk-1", "passage": passage, "extracted_entities": entities, "extracted_triples": triples}


def test_the_first_line_is_the_title_and_the_rest_the_text(tmp_path: Path) -> None:
    [found] = read_recorded(_write(tmp_path, {"docs": [_doc("Ann Lee\nShe built it.\nIn Oslo.")]}))
    assert (found.title, found.text, found.problem) == ("Ann Lee", "She built it.\nIn Oslo.", None)


def test_a_passage_of_one_line_has_no_title(tmp_path: Path) -> None:
    [found] = read_recorded(_write(tmp_path, {"docs": [_doc("Only this.")]}))
    assert (found.title, found.text) == ("", "Only this.")


def test_triples_and_entities_come_normalised_and_in_order(tmp_path: Path) -> None:
    doc = _doc(triples=[["Ann", "Built", "Gauge!"], ["Ann", "lives in", "Oslo"]], entities=["Oslo", "Ann", "oslo."])
    [found] = read_recorded(_write(tmp_path, {"docs": [doc]}))
    assert found.triples == (("ann", "built", "gauge"), ("ann", "lives in", "oslo"))
    assert found.entities == ("oslo", "ann")


def test_malformed_triples_are_skipped_and_counted(tmp_path: Path) -> None:
    bad = [["a", "b"], ["a", "b", "c", "d"], ["a", 1, "c"], "abc", None, ["a", "b", "?"]]
    [found] = read_recorded(_write(tmp_path, {"docs": [_doc(triples=[*bad, ["a", "b", "c"]])]}))
    assert found.triples == (("a", "b", "c"),)
    assert found.skipped == len(bad)


@pytest.mark.parametrize(
    "bad",
    [None, [], "text", {}, _doc(passage=None), _doc(passage="  "), _doc(triples={"a": 1}), _doc(entities="Oslo")],
    ids=str,
)
def test_one_bad_doc_costs_one_doc_and_says_why(tmp_path: Path, bad: object) -> None:
    first, second, third = read_recorded(_write(tmp_path, {"docs": [_doc(), bad, _doc()]}))
    assert first.problem is None and third.problem is None
    assert second.problem is not None and "docs[1]" in second.problem


@pytest.mark.parametrize("missing", ["extracted_entities", "extracted_triples"])
def test_a_doc_may_lack_entities_or_triples(tmp_path: Path, missing: str) -> None:
    doc = _doc(triples=[["a", "b", "c"]], entities=["a"])
    del doc[missing]
    [found] = read_recorded(_write(tmp_path, {"docs": [doc]}))
    assert found.problem is None


@pytest.mark.parametrize("content", ["", "not json", "[]", "{}", '{"docs": {}}', "[" * 100_000, "\xff"])
def test_another_format_is_refused_by_name_before_the_first_passage(tmp_path: Path, content: str) -> None:
    path = tmp_path / "other.json"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(RecordedFormatError, match=r"other\.json is not a HippoRAG OpenIE results file"):
        read_recorded(path)


@pytest.mark.shared
@pytest.mark.skipif(not _SHARED.exists(), reason="needs ../shared/data")
def test_musique_loses_nothing_but_its_malformed_triples() -> None:
    found = list(read_recorded(_SHARED))
    assert len(found) == 1_890
    assert all(passage.problem is None for passage in found)
    # 185 triples are not of three parts; one has "$" for its object.
    assert sum(passage.skipped for passage in found) == 186
    assert sum(len(passage.triples) for passage in found) == 17_419 - 186
