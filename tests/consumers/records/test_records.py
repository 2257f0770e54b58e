"""A record is unchanged after writing it as Arrow and reading it; an invalid one gives the reason."""

from dataclasses import replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consumers.failure_codes import FailureCode
from consumers.json_documents import read_json_document
from consumers.part_uri import with_uris
from consumers.records.reader import from_message, read_file
from consumers.records.record import PassageExtraction, Record, RecordError, RecordVectors, SourcePosition
from consumers.records.schema import SCHEMA
from consumers.records.writer import to_batch, to_message, write_file
from consumers.splitting import SplitSettings
from consumers.types import Link, ParsedDocument, Passage

SURROGATES: tuple[Literal["Cs"]] = ("Cs",)
words = st.text(st.characters(codec="utf-8", exclude_categories=SURROGATES), min_size=1, max_size=8)
triples = st.lists(st.tuples(words, words, words), max_size=3).map(tuple)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | words, lambda inner: st.lists(inner, max_size=2), max_leaves=3
)
extractions = st.builds(
    PassageExtraction,
    words,
    st.lists(words, max_size=2).map(tuple),
    triples,
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**31 - 1),
    st.integers(0, 1000).map(float),
    st.none() | words,
)
links = st.lists(st.builds(Link, words, words, words), max_size=2).map(tuple)
positions = st.builds(SourcePosition, words, st.integers(0, 2**63 - 1), st.integers(0, 2**62))


def unit(rng, rows, dim):
    found = rng.normal(size=(rows, dim)).astype(np.float32)
    if rows:
        found[0] = 0
    return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)


@st.composite
def records(draw):
    if draw(st.integers(0, 5)) == 0:
        return Record(ParsedDocument("kafka://t/1", deleted=True), (), draw(positions))
    passages = draw(
        st.lists(
            st.builds(Passage, words, words, st.dictionaries(words, st.integers(0, 9)), st.none() | triples, links),
            max_size=3,
        )
    )
    metadata = draw(st.dictionaries(words.filter(lambda key: key != "labels"), json_values, max_size=3))
    if draw(st.booleans()):
        metadata["labels"] = draw(st.lists(words, max_size=2))
    document = ParsedDocument("kafka://t/1", draw(words), tuple(passages), metadata, draw(st.none() | st.just(1.5)))
    phrases, stated = tuple(draw(st.sets(words, max_size=3))), draw(triples)
    rng = np.random.default_rng(0)
    vectors = RecordVectors(
        "hash", 8, unit(rng, len(passages), 8), phrases, unit(rng, len(phrases), 8), stated, unit(rng, len(stated), 8)
    )
    return Record(
        document,
        tuple(draw(st.none() | extractions) for _ in passages),
        draw(st.none() | positions),
        draw(st.sampled_from([None, vectors])),
    )


def check_same(read, written):
    assert (read.document, read.extractions, read.position) == (
        written.document,
        written.extractions,
        written.position,
    )
    assert (read.vectors is None) == (written.vectors is None)
    if written.vectors is not None:
        assert read.vectors.phrases == written.vectors.phrases and read.vectors.triples == written.vectors.triples
        assert np.array_equal(read.vectors.phrase_vectors, written.vectors.phrase_vectors), "they decide synonyms"
        for name in ("passages", "triple_vectors"):
            mine, theirs = getattr(read.vectors, name), getattr(written.vectors, name)
            cosines = (mine * theirs).sum(axis=1)[np.linalg.norm(theirs, axis=1) > 0]
            assert mine.shape == theirs.shape and (cosines > 0.9999).all()


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.lists(records(), min_size=1, max_size=4))
def test_a_record_is_the_same_after_a_round_trip(tmp_path_factory, written):
    for each in written:
        check_same(from_message(to_message(each)), each)
    file = tmp_path_factory.mktemp("records") / "a.parquet"
    assert write_file(file, written) == len(written)
    for mine, theirs in zip(read_file(file), written, strict=True):
        check_same(mine, theirs)


def test_a_failed_document_keeps_its_reason():
    failed = ParsedDocument("kafka://t#0-1", "T", error="not JSON", code=FailureCode.JSON, metadata={"kafka": {}})
    assert from_message(to_message(Record(failed))).document == failed


def test_a_record_without_links_has_none():
    table = pa.Table.from_batches([to_batch([Record(ParsedDocument("u", "t", (Passage("a", "b"),)), (None,))])])
    [passage] = from_message(message(table.drop_columns(["links"]))).document.passages
    assert passage.links == ()


def edited(**columns):
    table = pa.Table.from_batches([to_batch([Record(ParsedDocument("u", "t", (Passage("a", "b"),)), (None,))])])
    for name, value in columns.items():
        kind = SCHEMA.field(name).type
        table = table.set_column(table.schema.get_field_index(name), name, pa.array([value], kind))
    return message(table)


def message(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


VECTORS = {
    "encoder": "e",
    "dim": 2,
    "passages": [1, 0],
    "phrases": [],
    "phrase_vectors": [],
    "triples": [],
    "triple_vectors": [],
}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "not an Arrow IPC stream"),
        (b"{}", "not an Arrow IPC stream"),
        (message(pa.table({"uri": ["u"]})), "contains no records"),
        (message(pa.table({"uri": ["u"]}).replace_schema_metadata({"hippod.record.version": "2"})), "reads up to 1"),
        (
            message(pa.table({"uri": ["u"]}).replace_schema_metadata({"hippod.record.version": "1"})),
            'no column "state"',
        ),
        (edited(uri=""), "uri"),
        (edited(uri="a\x1fb"), "uri"),
        (edited(state="read"), "state"),
        (edited(metadata="[]"), "metadata"),
        (edited(metadata='{"a": NaN}'), "NaN"),
        (edited(modified_at=float("inf")), "modified_at"),
        (edited(labels=["a", None]), "labels"),
        (edited(position={"stream": None, "offset": 1, "time_ms": 0}), "position"),
        (edited(passages=[{"title": "", "text": None}]), "neither title nor text"),
        (edited(passages=[{"text": "x", "location": '{"a": {}}'}]), "location"),
        (edited(passages=[{"text": "x", "triples": [["a", "b", None]]}]), "triple"),
        (edited(passages=[{"text": "x", "extraction": {"extractor": ""}}]), "extractor"),
        (edited(links=[{"target": "a.md", "passage": 1}]), "names the passage 1"),
        (edited(links=[{"target": "", "passage": 0}]), "target"),
        (edited(vectors=VECTORS | {"passages": [1, 0, 0]}), "should be 2 numbers"),
        (edited(vectors=VECTORS | {"passages": [float("nan"), 0]}), "not normalised"),
        (edited(vectors=VECTORS | {"dim": 0}), "dimension"),
    ],
)
def test_error_for_an_invalid_record_states_the_reason(value, reason):
    with pytest.raises(RecordError, match=reason):
        from_message(value)


def test_damaged_message_raises_at_most_a_record_error():
    good = to_message(Record(ParsedDocument("u", "t", (Passage("a", "b" * 200),)), (None,)))
    for place in range(0, len(good), 41):
        spoilt = bytearray(good)
        spoilt[place] ^= 0xFF
        try:
            from_message(bytes(spoilt))
        except RecordError:
            continue


def test_invalid_row_of_a_record_file_fails_alone(tmp_path):
    good = Record(ParsedDocument("u", "t", (Passage("a", "b"),)), (None,))
    bad = Record(ParsedDocument("", "t", (Passage("a", "b"),)), (None,))
    write_file(tmp_path / "a.parquet", [good, bad, good])
    kinds = [type(each) for each in read_file(tmp_path / "a.parquet")]
    assert kinds == [Record, RecordError, Record]
    (tmp_path / "b.parquet").write_bytes(b"PAR1 no, it is not")
    with pytest.raises(RecordError, match="not a Parquet file"):
        next(read_file(tmp_path / "b.parquet"))


SAME_STREAM = st.builds(SourcePosition, st.just("kafka:t/0"), st.integers(0, 5), st.integers(0, 5))


@settings(max_examples=15, deadline=None)
@given(SAME_STREAM, SAME_STREAM)
def test_positions_of_one_stream_are_ordered_by_offset(a, b):
    assert a.is_before(b) == (a.offset < b.offset)


def test_positions_of_different_streams_are_ordered_by_time():
    assert SourcePosition("b", 9, 1).is_before(SourcePosition("a", 1, 2))
    assert SourcePosition("a", 9, 1).is_before(SourcePosition("b", 1, 1))


ids = st.text(st.characters(), min_size=1, max_size=8).filter(str.strip)


@settings(deadline=None, max_examples=100)
@given(ids)
def test_every_uri_that_documents_and_their_parts_get_can_be_in_a_record(identity):
    document = read_json_document({"id": identity, "text": "x y"}, "kafka://t/", None, SplitSettings())
    assert document.error is None
    [(part, _)] = with_uris("file:///chats.json", [identity], lambda name: name)
    for uri in (document.uri, part):
        record = Record(replace(document, uri=uri), (None,))
        assert from_message(to_message(record)).uri == uri
