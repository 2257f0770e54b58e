"""After a change of `[passages]`, followed files are read again; the store keeps the prefix of its texts."""

from pathlib import Path

from consumers.splitting import SplitSettings
from consumers.types import Fingerprint
from daemon.app.opened_encoder import keep_passage_prefix
from daemon.app.reparse import cut_files_anew
from memory.encoder.hashing import HashEncoder
from store.store import Store
from store.types import Batch

FILE, READ = "file:///drive/a.txt", Fingerprint(5, 6, 7, "digest")


def test_changed_split_settings_mark_only_files_for_parsing(tmp_path: Path) -> None:
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


def test_first_passage_prefix_is_stored_and_never_replaced(tmp_path: Path) -> None:
    with Store(tmp_path, HashEncoder(8).identity) as store:
        keep_passage_prefix(store, HashEncoder(8))
        assert store.positions == {}
        keep_passage_prefix(store, Prefixed("passage: "))
        keep_passage_prefix(store, Prefixed("text: "))
        assert store.positions == {"settings/passage_prefix": "passage: "}
