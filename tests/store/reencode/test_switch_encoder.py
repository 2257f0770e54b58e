"""After the switch to another encoder, a store equals one that this encoder has filled; before it, nothing has changed."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from store.errors import EncoderMismatch, NotEncoded, StoreError
from store.fixed_point import fixed
from store.index.live_index import KINDS
from store.lance.table_writer import TableWriter
from store.log.store_summary import summarize_store
from store.reencode.new_vectors import NewVectors, Target
from store.reencode.switch import NewEncoder
from store.store import Store
from store.types import Batch, Calibration, EncoderIdentity, SynonymRule
from store.verify.verify import verify
from tests.store import oracle
from tests.store.small_store import complete, exported, numbered_documents, reading

OLD = EncoderIdentity("oracle", oracle.DIM)
RULE, NEW_RULE = SynonymRule(oracle.THRESHOLD), SynonymRule(0.6)
CALIBRATION = Calibration(0.6, 0.2)


def other_vector(dim: int, text: str) -> NDArray[np.float32]:
    """Returns a unit vector that depends on the text, zero for other texts than with the oracle's encoder."""
    if text.startswith("bo"):
        return np.zeros(dim, np.float32)
    seeds = [oracle.vector(text[:3]), oracle.vector(text[::-1])]
    mixed = np.resize(seeds[0] + 0.3 * seeds[1], dim) * np.linspace(1, 2, dim)
    unit: NDArray[np.float64] = mixed / max(float(np.linalg.norm(mixed)), 1e-9)
    return unit.astype(np.float32)


def encode_all(store: Store, target: Target, vector: Callable[[str], NDArray[np.float32]]) -> NewVectors:
    vectors = NewVectors(store.folder, target)
    for kind in KINDS:
        first = 0
        while (found := store.texts_to_encode(kind, first, vectors)) is not None:
            texts = [*(each.full for each in found.passages), *found.phrases, *map(" ".join, found.triples)]
            if texts:
                vectors.add(found.keys, fixed(np.stack([vector(text) for text in texts])))
            first = found.after
    return vectors


def fill(store: Store, vector: Callable[[str], NDArray[np.float32]]) -> None:
    """Adds, replaces and removes documents, with purged rows in between."""
    change = partial(complete, store, vector=vector)
    store.commit(change(numbered_documents(0, 14), []))
    store.commit(change(numbered_documents(12, 20), ["d3", "d5"]))
    store.commit(change(numbered_documents(3, 4), ["d7"], extract=partial(reading, version=1)))


def fill_further(store: Store, vector: Callable[[str], NDArray[np.float32]]) -> None:
    store.commit(complete(store, numbered_documents(18, 26), ["d0", "d19"], vector=vector))
    store.commit(complete(store, numbered_documents(5, 6), [], vector=vector))


def switch(store: Store, dim: int, announced: list[int] | None = None) -> int:
    target = Target("other", dim)
    vectors = encode_all(store, target, partial(other_vector, dim))
    try:
        new = NewEncoder(vectors, CALIBRATION, NEW_RULE, {"settings/x": 1})
        return store.switch_encoder(new, ([] if announced is None else announced).append)
    finally:
        vectors.close()


@pytest.mark.parametrize(("dim", "checkpoint"), [(oracle.DIM, True), (5, False), (24, True)])
def test_switched_store_equals_a_store_created_with_the_new_encoder(tmp_path: Path, dim: int, checkpoint: bool) -> None:
    vector, identity = partial(other_vector, dim), EncoderIdentity("other", dim)
    with Store(tmp_path / "new", identity, NEW_RULE) as new:
        fill(new, vector)
        expected = exported(new)
        fill_further(new, vector)
        expected_later = exported(new)
        cosines = new.snapshot().passage_vectors.scores(vector("am"))
    with Store(tmp_path / "old", OLD, RULE, calibration=Calibration(0.8, None)) as store:
        fill(store, oracle.vector)
        before = exported(store)
        assert before != expected
        if checkpoint:
            assert store.write_checkpoint()
        pinned, last = store.snapshot(), store.snapshot().commit
        announced: list[int] = []
        seq = switch(store, dim, announced)
        assert announced == [seq] == [store.snapshot().commit]
        assert exported(store) == expected and not verify(store).problems
        assert store.rule == NEW_RULE and store.positions["settings/x"] == 1
        # A query that began before keeps the old vectors.
        assert pinned.passage_vectors.scores(oracle.vector("am")).shape == (pinned.n_passages,)
        # Earlier commits cannot be queried; the present one can.
        assert store.horizon == seq and store.snapshot_at(seq).commit == seq
        with pytest.raises(StoreError, match=f"commit {seq} is the earliest"):
            store.snapshot_at(last)
        fill_further(store, vector)
        assert exported(store) == expected_later and not verify(store).problems
        assert sorted(store.snapshot().passage_vectors.scores(vector("am")))[-9:] == pytest.approx(
            sorted(cosines)[-9:], abs=1e-6
        )
        wanted = store.document("d9")
        assert store.scoped("k", lambda document: document == wanted).snapshot.living_passages == 1
        if checkpoint:
            assert store.write_checkpoint()
    summary = summarize_store(tmp_path / "old")
    assert (summary.encoder, summary.calibration, summary.edges_rule) == (identity, CALIBRATION, NEW_RULE)
    with pytest.raises(EncoderMismatch, match=rf"other \({dim} dimensions\).*oracle"):
        Store(tmp_path / "old", OLD, RULE)
    with Store(tmp_path / "old", identity, NEW_RULE) as again:
        assert exported(again) == expected_later and not verify(again).problems
        commit = again.snapshot().commit
        switch(again, 7)
    with Store(tmp_path / "old", EncoderIdentity("other", 7), NEW_RULE) as twice:
        assert twice.snapshot().commit > commit and not verify(twice).problems


def test_texts_of_removed_documents_have_new_vectors_when_they_return(tmp_path: Path) -> None:
    with Store(tmp_path / "store", OLD, RULE) as store:
        fill(store, oracle.vector)
        expected = exported(store)
        store.commit(Batch(removed=tuple(numbered_documents(8, 12))))
        switch(store, 6)
        returning = complete(store, numbered_documents(8, 12), [], vector=partial(other_vector, 6))
        assert not returning.passage_vectors
        store.commit(returning)
        assert exported(store) != expected and not verify(store).problems
        with Store(tmp_path / "fresh", EncoderIdentity("other", 6), NEW_RULE) as fresh:
            fill(fresh, partial(other_vector, 6))
            assert exported(store) == exported(fresh)


def test_a_text_without_a_vector_prevents_the_switch(tmp_path: Path) -> None:
    with Store(tmp_path, OLD, RULE) as store:
        fill(store, oracle.vector)
        vectors = encode_all(store, Target("other", 5), partial(other_vector, 5))
        fill_further(store, oracle.vector)
        before, horizon, versions = exported(store), store.horizon, store.snapshot().commit
        with pytest.raises(NotEncoded):
            store.switch_encoder(NewEncoder(vectors, CALIBRATION, NEW_RULE), lambda _: None)
        vectors.close()
        assert (exported(store), store.horizon, store.snapshot().commit) == (before, horizon, versions)
        assert not verify(store).problems
        store.commit(complete(store, numbered_documents(30, 34), []))
        switch(store, 5)
        assert not verify(store).problems


STOPS = ("passages", "triples", "synonyms", "discard", "append")


@pytest.mark.parametrize("stop", STOPS)
def test_a_process_that_ends_during_the_switch_leaves_the_old_store_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: str
) -> None:
    class Ended(BaseException):
        pass

    with Store(tmp_path / "fresh", EncoderIdentity("other", 5), NEW_RULE) as fresh:
        fill(fresh, partial(other_vector, 5))
        expected = exported(fresh)
    store = Store(tmp_path / "store", OLD, RULE)
    fill(store, oracle.vector)
    before = exported(store)
    assert store.write_checkpoint()
    replace_rows, discard, mark = TableWriter.replace_rows, store._checkpointing.discard, store._commits._write_mark

    def stop_after(work: Callable[..., object], ends: Callable[..., bool]) -> Callable[..., object]:
        def run(*arguments: object) -> object:
            done = work(*arguments)
            if ends(*arguments):
                raise Ended
            return done

        return run

    monkeypatch.setattr(store._commits, "_undo", lambda: None)
    monkeypatch.setattr(TableWriter, "replace_rows", stop_after(replace_rows, lambda _writer, name, *_: name == stop))
    monkeypatch.setattr(store._checkpointing, "discard", stop_after(discard, lambda: stop == "discard"))
    monkeypatch.setattr(store._commits, "_write_mark", stop_after(mark, lambda *_: stop == "append"))
    with pytest.raises(Ended):
        switch(store, 5)
    monkeypatch.undo()
    store._lock.release()
    identity, rule, content = (
        (OLD, RULE, before) if stop != "append" else (EncoderIdentity("other", 5), NEW_RULE, expected)
    )
    with Store(tmp_path / "store", identity, rule) as again:
        assert exported(again) == content and not verify(again).problems
        if stop != "append":
            switch(again, 5)
        assert exported(again) == expected and not verify(again).problems
