"""The line of passages that wait for the model: what a commit costs it, and what becomes of passages that go and come back."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from daemon.pipeline import backlog as line
from daemon.pipeline.backlog import Backlog
from daemon.pipeline.marks import STAND_IN, Failure, failure_mark
from daemon.pipeline.paid import Paid
from memory.encoder.hashing import HashEncoder
from memory.indexing import with_vectors
from memory.openie.llm import Entities
from store.keys import passage_id
from store.store import Store
from store.types import Batch, Document, Extraction, PassageRef, PassageText

NAME = "llm/m/1"
ENCODER = HashEncoder(64)
GONE = Failure(4, "the model refuses it")

Commit = Callable[..., list[str]]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "store", ENCODER.identity) as opened:
        yield opened


@pytest.fixture
def commit(store: Store) -> Commit:
    """`commit("a", "b", without=("c",))`: documents of one passage each; returns the passages' ids."""

    def run(*texts: str, without: tuple[str, ...] = (), extractor: str | None = None) -> list[str]:
        passages = tuple(PassageText(passage_id("", text), "", text) for text in texts)
        documents = tuple(
            Document(f"added:{text}", "added", passages=(PassageRef(passage.id),))
            for text, passage in zip(texts, passages, strict=True)
        )
        read = () if extractor is None else tuple(Extraction(passage.id, extractor) for passage in passages)
        batch = Batch(documents, tuple(f"added:{text}" for text in without), passages, read)
        store.commit(with_vectors(store, ENCODER, batch))
        return [passage.id for passage in passages]

    return run


@pytest.fixture
def backlog(store: Store, tmp_path: Path) -> Backlog:
    async def nobody(*_: object) -> None:
        raise AssertionError("nothing runs")

    return Backlog(store, NAME, nobody, nobody, Paid(tmp_path / "openie.jsonl", NAME), 1)


def test_a_commit_costs_the_line_what_it_made_known_and_not_what_was_announced_before(
    store: Store, commit: Commit, backlog: Backlog, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    users = store.users
    monkeypatch.setattr(store, "users", lambda id: looked.append(id) or users(id))
    backlog.announce(passage_id("", f"never committed {n}") for n in range(1000))
    backlog.committed([])
    looked.clear()
    ids = commit("Ada Kerr built it.")
    backlog.announce(ids)
    backlog.committed(ids)
    assert looked == ids
    assert backlog.open() == ids


def test_a_passage_that_was_announced_before_another_commit_is_read_after_its_own(
    commit: Commit, backlog: Backlog
) -> None:
    early = passage_id("", "Ada Kerr built it.")
    backlog.announce([early])  # while its document is read, the rules stand in
    backlog.committed(commit("Another."))
    assert early not in backlog.open()
    backlog.committed(commit("Ada Kerr built it.", extractor=f"{STAND_IN}rules"))
    assert early in backlog.open()


def test_a_passage_that_comes_back_before_the_model_read_it_is_read(commit: Commit, backlog: Backlog) -> None:
    ids = commit("Ada Kerr built it.", extractor=f"{STAND_IN}rules")
    backlog.committed([])
    commit(without=("Ada Kerr built it.",))
    backlog.committed([])
    assert backlog.open() == []
    commit("Ada Kerr built it.")
    backlog.committed(ids)
    assert backlog.open() == ids


def test_what_is_read_or_brought_its_triples_is_not_read_again(commit: Commit, backlog: Backlog) -> None:
    backlog.committed(commit("Ada Kerr built it.", extractor=NAME))
    backlog.committed(commit("Others gave its triples."))
    assert backlog.open() == []


def test_failures_are_those_of_documents_that_are_there_and_come_back_with_them(
    commit: Commit, backlog: Backlog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line, "MANY_FAILED", 2)
    ids = commit("First.", "Second.", extractor=failure_mark(GONE))
    backlog.committed(ids)
    assert backlog.failures() == dict.fromkeys(ids, GONE)
    backlog._paid.found_entities(ids[0], Entities(("Ada",)))
    commit(without=("First.",))
    assert list(backlog.failures()) == ids[1:]
    monkeypatch.setattr(backlog, "_many_failed", 2)
    backlog.committed([])
    assert list(backlog._failed) == ids[1:]
    assert backlog._paid.entities(ids[0]) is None
    commit("First.")
    backlog.committed(ids[:1])
    assert backlog.failures() == dict.fromkeys(ids, GONE)


def test_a_failure_that_is_not_committed_yet_is_not_lost_where_the_passage_is_asked_for(
    commit: Commit, backlog: Backlog
) -> None:
    ids = commit("Ada Kerr built it.", extractor=f"{STAND_IN}rules")
    backlog._fail(ids[0], GONE)
    backlog.announce(ids)
    backlog.committed(ids)
    assert backlog.want(ids) == 0
    assert backlog.failures() == {ids[0]: GONE}
