"""Format 1 to 2: prefixes of extractor names become columns, whenever the process is killed."""

import json
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from store.export.json_lines import export_lines
from store.lance.import_shim import lancedb
from store.lance.schema import FORMAT
from store.log.store_summary import encoder_of_store
from store.store import Store
from store.types import ExtractionOutcome, ExtractionState, State

FORMAT_1 = Path(__file__).parent / "released" / "format-1.tar.xz"
WHY = "the model refuses it: 413: too long"


@pytest.fixture
def old_store(tmp_path: Path) -> Path:
    """Returns a store of format 1 with a passage on which a model failed, one of a stand-in, and one extracted."""
    with tarfile.open(FORMAT_1) as gzipped:
        gzipped.extractall(tmp_path, filter="data")
    folder = tmp_path / "store"
    database = lancedb.connect(str(folder))
    extractions, log = database.open_table("extractions"), database.open_table("commits")
    last = max(log.to_arrow().to_pylist(), key=lambda row: row["seq"])
    rows = sorted(extractions.to_arrow().to_pylist(), key=lambda row: row["passage"])
    assert len({row["passage"] for row in rows}) >= 3
    seq = last["seq"] + 1
    extractions.add([rows[0] | {"extractor": f"failed:2:{WHY}", "commit": seq}])
    other = next(row for row in rows if row["passage"] != rows[0]["passage"])
    extractions.add([other | {"extractor": "fallback:rules/1", "commit": seq}])
    versions = json.loads(last["versions"]) | {"extractions": extractions.version}
    change = {"seq": seq, "kind": "change", "versions": json.dumps(versions), "positions": "{}", "facts": "{}"}
    log.add([last | change])
    return folder


def opened(folder: Path) -> Store:
    identity = encoder_of_store(folder)
    assert identity is not None
    return Store(folder, identity)


def check_migrated(folder: Path) -> None:
    expected = json.loads((folder.parent / "expected.json").read_text())
    with opened(folder) as store:
        assert store.found_format == 1
        passages = sorted(store.extraction_states())
        states = [store.extraction_state(id) for id in passages]
        assert states[0] == ExtractionState("", ExtractionOutcome.FAILED, 2, WHY)
        assert states[1] == ExtractionState("rules/1", ExtractionOutcome.STAND_IN)
        assert {state.status for state in states[2:] if state} == {ExtractionOutcome.DONE}
        failed = [document for document in store.documents() if document.state is State.FAILED]
        assert [document.code for document in failed] == ["other"]
        assert all(document.code is None for document in store.documents() if document.state is State.INDEXED)
        assert not any(name.startswith("failed") for name in store.extraction_costs())
        assert list(export_lines(store.snapshot())) == expected["export"]
        assert store.repaired_tables == [] or set(store.repaired_tables) <= {"extractions", "documents"}
        store.write_checkpoint()
        store.compact()
        before = store.extraction_states()
    with opened(folder) as store:  # from the checkpoint
        assert store.found_format == FORMAT
        assert store.extraction_states() == before
        assert list(export_lines(store.snapshot())) == expected["export"]


@pytest.mark.slow
def test_migration_moves_failures_from_extractor_names_to_columns(old_store: Path) -> None:
    check_migrated(old_store)


KILLED = """
import os, signal, sys
from pathlib import Path
from store.log import commits, migrations
from store.log.store_summary import encoder_of_store
from store.store import Store

def die(*_args, **_more):
    os.kill(os.getpid(), signal.SIGKILL)

{where} = die
folder = Path(sys.argv[1])
Store(folder, encoder_of_store(folder))
"""


@pytest.mark.process
@pytest.mark.parametrize(
    "where",
    ["migrations._split_extractor", "migrations._add_code", "commits.Commits.add_commit"],
    ids=["while extractions are written", "between the two tables", "before the commit"],
)
def test_a_kill_in_the_middle_leaves_a_store_that_the_next_start_migrates(old_store: Path, where: str) -> None:
    for _ in range(2):
        ended = subprocess.run(
            [sys.executable, "-c", KILLED.format(where=where), str(old_store)], capture_output=True, check=False
        )
        assert ended.returncode == -signal.SIGKILL, ended.stderr
    check_migrated(old_store)
