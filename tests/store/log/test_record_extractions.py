"""Upgrading a store that kept records' extractions by passage: no document shows another's, and no model is called."""

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from daemon.config.load import load_config
from daemon.model_factory import load_encoder
from store.export.json_lines import export_lines
from store.log.store_lock import StoreLock
from store.store import Store
from store.types import ExtractionOutcome, passage_id
from store.verify.verify import verify
from tests.e2e.real_hippod import Daemon, texts, until, write_config
from tests.memory.llm.model_server import ModelServer, obedient
from tests.store.log.released.make_records import HIDDEN, STATED, TEXTS, fill

RECORDS = Path(__file__).parent / "released" / "records-3.tar.xz"
IDS = {name: passage_id(name, text) for name, text in TEXTS.items()}


@pytest.fixture
def upgraded(tmp_path: Path) -> Path:
    with tarfile.open(RECORDS) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def opened(home: Path, lock: StoreLock | None = None) -> Store:
    config = load_config(write_config(home / "hash.toml", {"encoder": {"backend": "hash"}}))
    return Store(home / "store", load_encoder(config).identity, lock=lock)


def test_upgrade_keeps_local_extractions_and_fails_those_of_records(upgraded: Path) -> None:
    with opened(upgraded) as store:
        assert store.found_format == 3
        states = {name: store.extraction_state(id) for name, id in IDS.items()}
        assert [name for name, state in states.items() if state is None] == ["five"], "nobody needs it"
        assert states["two"] is not None and states["two"].extractor.startswith("rules"), "it was read here before"
        for name, attempts in (("one", 4), ("three", 1), ("four", 4)):
            state = states[name]
            assert state is not None and (state.extractor, state.status) == ("", ExtractionOutcome.FAILED)
            assert state.attempts == attempts and "hippoctl retry" in (state.error or "")
        public = store.scoped("public", lambda document: document.metadata["labels"] == ["public"])
        assert HIDDEN not in "".join(export_lines(public.snapshot))
        board = store.scoped("board", lambda document: document.metadata["labels"] == ["board"])
        assert len(texts(export_lines(board.snapshot), "triple")) == 3
        whole = [(each["subject"], each["object"]) for each in texts(export_lines(store.snapshot()), "triple")]
        assert {(HIDDEN, name) for name in ("one", "two", "five")} < set(whole)
        assert (STATED[0][0].lower(), STATED[0][2].lower()) in whole, "the union"
        costs = store.extraction_costs()
        assert costs["model/hidden"] == (3, 300, 30), "what records had cost is still counted"
        assert verify(store).problems == []
        before = costs, list(export_lines(store.snapshot())), store.snapshot().commit
    with opened(upgraded) as store:
        assert (store.extraction_costs(), list(export_lines(store.snapshot())), store.snapshot().commit) == before


def test_synonyms_are_rebuilt_once_after_an_interrupted_upgrade(upgraded: Path, monkeypatch: Any) -> None:
    with monkeypatch.context() as cut:
        cut.setattr(Store, "_settle_synonyms", lambda _store: (_ for _ in ()).throw(KeyboardInterrupt))
        lock = StoreLock(upgraded / "store")
        with pytest.raises(KeyboardInterrupt):
            opened(upgraded, lock)
        lock.release()
    made = []
    settle = Store._settle_synonyms

    def note(store):
        made.append(1)
        return settle(store)

    monkeypatch.setattr(Store, "_settle_synonyms", note)
    opened(upgraded).close()
    opened(upgraded).close()
    assert made == [1]


@pytest.mark.daemon
def test_upgraded_memory_equals_a_new_one_after_rules_extraction(upgraded: Path, tmp_path: Path) -> None:
    with Daemon(tmp_path / "new", folders=()) as new:
        fill(new)
        expected = new.export(), {uri: each["state"] for uri, each in new.documents().items()}
    with Daemon(upgraded, folders=()) as daemon:
        daemon.wait()
        assert (daemon.export(), {uri: each["state"] for uri, each in daemon.documents().items()}) == expected
        assert daemon.ctl("verify").code == 0


@pytest.mark.daemon
def test_upgrade_calls_no_model_before_a_retry_is_requested(upgraded: Path) -> None:
    with ModelServer(obedient) as model:
        llm = {"base_url": model.url, "model": "test-model", "max_retries": 0}
        with Daemon(upgraded, folders=(), llm=llm, openie={"backend": "llm"}) as daemon:
            daemon.wait()
            assert daemon.status()["extraction"]["failed"] == 3
            failed = {uri: each for uri, each in daemon.documents().items() if each["state"] == "failed"}
            assert sorted(failed) == ["added:four-again", "added:one", "added:three", "kafka://articles/three"]
            assert HIDDEN not in json.dumps(failed) and "retry" in failed["added:one"]["error"]
            calls = len(model.calls)
            assert daemon.ctl_json("retry")["requeued"] == 4
            until(lambda: not daemon.status().get("extraction"), "all is read")
            assert len(model.calls) > calls
            assert {each["state"] for each in daemon.documents().values()} == {"indexed"}
