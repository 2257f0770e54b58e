"""The counts that each commit updates equal those of a complete count, and only the first count reads everything."""

import random
from dataclasses import replace

import pytest

from daemon.pipeline.commit.content_index import ContentCounts, DocumentsByFile
from store.types import Extraction, ExtractionOutcome, State, passage_id
from tests.store.small_store import complete, open_store

FILES = ["file:///a.md", "file:///b.md", "file:///c.jsonl", "file:///d.jsonl"]
URIS = [*FILES[:2], *(f"{file}#{n}" for file in FILES[2:] for n in range(3)), "added:e", "kafka://topic/f"]
GIVEN = [None, None, (("amber", "is", "box"),)]
STATES = [State.INDEXED, State.INDEXED, State.FAILED]
EXTRACTORS = ["rules/1", "rules/2", "model"]
FILE_POSITIONS = [{"inode": 1} | reader for reader in ({}, {"reader": None}, {"reader": 4}, {"reader": 5})]
"""An early version stored no reader; None is a file that waits to be parsed again."""


def random_batch(draw, store):
    """Returns a completed batch: documents in any state, removals, extractions, and positions of files by several readers."""
    passages = {
        uri: [("T", f"text {draw.randrange(12)}", draw.choice(GIVEN)) for _ in range(draw.randrange(3))]
        for uri in draw.sample(URIS, draw.randrange(5))
    }
    others = sorted({each.uri for each in store.documents()} - passages.keys())
    removed = draw.sample(others, min(len(others), draw.randrange(2)))
    batch = complete(store, passages, removed)
    states = {uri: draw.choice(STATES) for uri in passages}
    found = [replace(each, extractor=draw.choice(EXTRACTORS), took_ms=2.0) for each in batch.extractions]
    known = passage_id("T", f"text {draw.randrange(12)}")
    if store.passage(known) is not None and known not in {each.passage for each in found}:
        status = draw.choice([ExtractionOutcome.DONE, ExtractionOutcome.STAND_IN, ExtractionOutcome.FAILED])
        found.append(Extraction(known, draw.choice(EXTRACTORS), status=status, took_ms=6.0))
    positions = {
        file: draw.choice([*FILE_POSITIONS, {"offset": 7}, None]) for file in draw.sample(FILES, draw.randrange(4))
    }
    documents = tuple(
        replace(each, state=states[each.uri], passages=each.passages if states[each.uri] is State.INDEXED else ())
        for each in batch.documents
    )
    return replace(batch, documents=documents, extractions=tuple(found), positions=positions)


def numbers(counts):
    return counts.extractors(), counts.readers(), counts.mean_ms(lambda name: name != "model")


def test_counts_of_random_commits_equal_a_complete_count(tmp_path):
    draw, seen = random.Random(7), set()
    with open_store(tmp_path) as store:
        by_file = DocumentsByFile([])
        counts = ContentCounts(store, by_file)
        for number in range(40):
            batch = random_batch(draw, store)
            counts.commit(batch)
            by_file.update(batch)
            if number >= 3:  # the first commits precede the first count
                expected = numbers(ContentCounts(store, by_file))
                assert numbers(counts) == expected
                seen |= {*expected[0], *expected[1]}
    assert seen >= {"supplied", "none", "rules/1", "rules/2", "model", "reader/0", "reader/4", "reader/5"}


def test_only_the_first_count_reads_everything(tmp_path, monkeypatch):
    with open_store(tmp_path) as store:
        counts = ContentCounts(store, DocumentsByFile([]))
        documents = {f"file:///{n}.md": [("T", f"text {n}", None)] for n in range(20)}
        counts.commit(complete(store, documents, []))
        assert counts.extractors() == {"oracle": 20}
        asked = []
        extractor_label = store.extractor_label

        def label(passage):
            asked.append(passage)
            return extractor_label(passage)

        monkeypatch.setattr(store, "extractor_label", label)
        for name in ("passages_by_extractor", "documents", "extraction_times"):
            monkeypatch.setattr(store, name, pytest.fail)
        counts.commit(complete(store, {"file:///new.md": [("T", "text 30", None)]}, ["file:///0.md"]))
        assert counts.extractors() == {"oracle": 20} and counts.readers() == {}
        assert set(asked) == {passage_id("T", "text 0"), passage_id("T", "text 30")}


def test_a_file_that_waits_to_be_parsed_again_has_no_reader(tmp_path):
    with open_store(tmp_path) as store:
        counts = ContentCounts(store, DocumentsByFile([]))
        batch = complete(store, {FILES[0]: [("T", "text 1", None)]}, [])
        counts.commit(replace(batch, positions={FILES[0]: {"inode": 1, "reader": None}}))
        assert not counts.readers()
