"""After a change of `[passages]`, followed files are read again; another prefix of texts is refused."""

from pathlib import Path

import pytest

from consumers.splitting import SplitSettings
from consumers.types import Fingerprint
from daemon.app.index_settings import check_passage_prefix, cut_files_anew
from memory.encoder.hashing import HashEncoder
from store.errors import EncoderMismatch
from store.store import Store
from store.types import Batch

FILE, READ = "file:///drive/a.txt", Fingerprint(5, 6, 7, "digest")


def test_a_change_marks_files_as_not_read_and_nothing_else(tmp_path: Path) -> None:
    with Store(tmp_path, HashEncoder(8).identity) as store:
        store.commit(Batch(positions={FILE: READ.to_json(), "kafka:topic/0": 5}))
        commit = store.snapshot().commit
        cut_files_anew(store, SplitSettings())
        assert store.snapshot().commit == commit
        for split in (SplitSettings(100, 40), SplitSettings(100, 20), SplitSettings()):
            store.commit(Batch(positions={FILE: READ.to_json()}))
            cut_files_anew(store, split)
            assert Fingerprint.from_json(store.positions[FILE]).digest is None
            assert store.positions["kafka:topic/0"] == 5
            commit = store.snapshot().commit
            cut_files_anew(store, split)
            assert store.snapshot().commit == commit


class Prefixed(HashEncoder):
    def __init__(self, prefix: str) -> None:
        super().__init__(8)
        self.passage_prefix = prefix


def test_another_prefix_of_texts_is_refused_and_both_are_named(tmp_path: Path) -> None:
    with Store(tmp_path, HashEncoder(8).identity) as store:
        check_passage_prefix(store, HashEncoder(8))
        assert store.positions == {}
        for prefix in ("", "passage: "):
            check_passage_prefix(store, Prefixed(prefix))
            check_passage_prefix(store, Prefixed(prefix))
            with pytest.raises(EncoderMismatch, match=rf'"{prefix}".*"text: ".*passage_prefix back'):
                check_passage_prefix(store, Prefixed("text: "))
            store.commit(Batch(positions={"settings/passage_prefix": None}))
