"""A store that opens with other `[graph]` settings has the synonym edges that a new store with these settings would have."""

import errno
import os
from pathlib import Path
from unittest import mock

import pytest

from store.errors import StoreRefused
from store.log.store_summary import summarize_store
from store.store import Store
from store.types import Calibration, EncoderIdentity, SynonymRule
from store.verify.verify import verify
from tests.store import oracle
from tests.store.small_store import complete, exported, numbered_documents

FIRST = SynonymRule(oracle.THRESHOLD)
IDENTITY = EncoderIdentity("oracle", oracle.DIM)


def opened(folder: Path, rule: SynonymRule) -> Store:
    return Store(folder, IDENTITY, rule)


def fill(store: Store) -> None:
    store.commit(complete(store, numbered_documents(0, 14), []))
    store.commit(complete(store, numbered_documents(12, 20), ["d3", "d5"]))


@pytest.mark.parametrize(
    ("rule", "checkpoint"),
    [
        (SynonymRule(0.9), True),
        (SynonymRule(0.5), False),
        (SynonymRule(0.8, variants=False), True),
    ],
)
def test_edges_after_a_settings_change_equal_those_of_a_new_store(
    tmp_path: Path, rule: SynonymRule, checkpoint: bool
) -> None:
    with opened(tmp_path / "old", FIRST) as old:
        fill(old)
        before = exported(old)
        if checkpoint:
            assert old.write_checkpoint()
    with opened(tmp_path / "new", rule) as new:
        fill(new)
        expected = exported(new)
    assert before != expected
    with opened(tmp_path / "old", rule) as changed:
        assert exported(changed) == expected
        assert not verify(changed).problems
        assert summarize_store(tmp_path / "old").edges_rule == rule
        commits = changed.snapshot().commit
    with opened(tmp_path / "old", rule) as again:
        assert again.snapshot().commit == commits
        assert exported(again) == expected
    with opened(tmp_path / "old", FIRST) as back:
        assert exported(back) == before


def test_a_new_store_keeps_the_encoders_calibration(tmp_path: Path) -> None:
    for name, kept in (("one", Calibration(0.71, 0.3)), ("other", Calibration(0.97, None))):
        Store(tmp_path / name, IDENTITY, calibration=kept).close()
        Store(tmp_path / name, IDENTITY, calibration=Calibration(0.5, 0.5)).close()
        assert summarize_store(tmp_path / name).calibration == kept


def test_a_store_of_an_earlier_release_has_the_default_settings(tmp_path: Path) -> None:
    opened(tmp_path, FIRST).close()
    assert summarize_store(tmp_path).calibration == Calibration(0.8, None)


def test_opening_that_cannot_write_new_edges_fails_and_releases_the_store(tmp_path: Path) -> None:
    with opened(tmp_path, FIRST) as old:
        fill(old)
        expected = exported(old)
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with mock.patch.object(os, "fdatasync", side_effect=full), pytest.raises(StoreRefused, match="make room"):
        opened(tmp_path, SynonymRule(0.9))
    with opened(tmp_path, FIRST) as again:
        assert exported(again) == expected
