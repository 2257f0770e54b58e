"""What older rules have read is read again, batch by batch; what the present rules cannot process keeps its triples."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from consumers.failure_codes import FailureCode
from daemon.parser_pool.pool import ParserFailed
from daemon.pipeline.extraction import idle_reextraction
from daemon.pipeline.extraction.idle_reextraction import BATCH_PASSAGES, IdleReextraction
from memory.batch_encoding import with_vectors
from memory.encoder.hashing import HashEncoder
from store.store import Store
from store.types import Batch, Document, Extraction, PassageRef, PassageText, passage_id

ENCODER = HashEncoder(16)
OLD = (("old rules", "read", "it"),)
NEW = (("new rules", "read", "it"),)


class Rules:
    """The present rules; the passages `unreadable` end their process."""

    name = "rules/3"

    def __init__(self, unreadable: Sequence[str] = ()) -> None:
        self.unreadable = set(unreadable)

    async def extract(self, passages: Sequence[PassageText]) -> list[Extraction]:
        if self.unreadable & {passage.id for passage in passages}:
            raise ParserFailed("it crashed", FailureCode.CRASH)
        return [Extraction(passage.id, self.name, triples=NEW) for passage in passages]


class Commits:
    """Stands for the pipeline: commits each batch at once, and keeps the sizes."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.sizes: list[int] = []

    async def commit_extractions(self, extractions: Mapping[str, Extraction]) -> None:
        self.sizes.append(len(extractions))
        self.store.commit(with_vectors(self.store, ENCODER, Batch(extractions=tuple(extractions.values()))))


def fill(store: Store, number: int, extractor: str) -> list[str]:
    """Commits documents of one passage each, which `extractor` has read; returns the passages' ids."""
    texts = [PassageText(passage_id("", f"{extractor} {n}"), "", f"{extractor} {n}") for n in range(number)]
    documents = tuple(Document(f"added:{text.text}", "added", passages=(PassageRef(text.id),)) for text in texts)
    found = tuple(Extraction(text.id, extractor, triples=OLD) for text in texts)
    store.commit(with_vectors(store, ENCODER, Batch(documents, passages=tuple(texts), extractions=found)))
    return [text.id for text in texts]


def reextraction(store: Store, rules: Rules, busy: Any = lambda: False) -> tuple[IdleReextraction, Commits]:
    commits = Commits(store)
    return IdleReextraction(store, cast("Any", commits), rules, lambda name: name == "rules/2", busy), commits


def test_only_passages_of_older_rules_are_extracted_again_one_commit_per_batch(tmp_path: Path) -> None:
    with Store(tmp_path / "store", ENCODER.identity) as store:
        old = fill(store, BATCH_PASSAGES + 3, "rules/2")
        others = [*fill(store, 2, "llm/m/1"), *fill(store, 2, "rules/4")]
        work, commits = reextraction(store, Rules())
        asyncio.run(work.extract_all())
        assert commits.sizes == [BATCH_PASSAGES, 3]
        assert {store.extracted_triples(id) for id in old} == {NEW}
        assert {store.extracted_triples(id) for id in others} == {OLD}
        assert (len(work), work.burst.done) == (0, BATCH_PASSAGES + 3)


def test_passage_that_crashes_the_extractor_keeps_its_triples(tmp_path: Path) -> None:
    with Store(tmp_path / "store", ENCODER.identity) as store:
        bad, *good = fill(store, 5, "rules/2")
        work, commits = reextraction(store, Rules([bad]))
        asyncio.run(work.extract_all())
        assert commits.sizes == [4]
        assert store.extracted_triples(bad) == OLD
        assert {store.extracted_triples(id) for id in good} == {NEW}
        asyncio.run(work.extract_all())
        assert commits.sizes == [4], "not tried again in this run"


def test_batch_waits_for_an_idle_daemon_up_to_a_maximum_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle_reextraction, "IDLE_CHECK_S", 0.0)
    asked = 0

    def busy() -> bool:
        nonlocal asked
        asked += 1
        return asked < 4

    with Store(tmp_path / "store", ENCODER.identity) as store:
        fill(store, 1, "rules/2")
        work, commits = reextraction(store, Rules(), busy)
        asyncio.run(work.extract_all())
        assert (asked, commits.sizes) == (4, [1])
        fill(store, 2, "rules/2")
        monkeypatch.setattr(idle_reextraction, "IDLE_CHECK_S", 0.001)
        monkeypatch.setattr(idle_reextraction, "MAX_WAIT_S", 0.003)
        work, commits = reextraction(store, Rules(), lambda: True)
        asyncio.run(work.extract_all())
        assert commits.sizes == [2]
