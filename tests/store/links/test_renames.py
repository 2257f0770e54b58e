"""Names are separate from passages: a rename costs no model call and takes effect at once, in scopes and after a restart
too."""

from dataclasses import replace

import pytest

from store.types import Batch
from tests.store.small_store import complete, exported, open_store

FOLDERS, PASSAGES = 20, 100


def paths(folder):
    return {
        f"file:///{folder}/page{n}.md": [("", f"text {n * PASSAGES + at}", None) for at in range(PASSAGES)]
        for n in range(FOLDERS)
    }


def found(snapshot, query):
    rows = snapshot.compare_names(query, 1000).rows
    return {snapshot.passage(int(row)).text for row in snapshot.naming.entries(rows)[1]}


@pytest.fixture(scope="module")
def renamed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    with open_store(folder) as store:
        store.commit(complete(store, paths("Glacier"), []))
        before = exported(store)
        moved = [replace(document, uri=document.uri.replace("Glacier", "Volcano")) for document in store.documents()]
        batch = Batch(tuple(moved), tuple(document.uri for document in store.documents()))
        assert store.unextracted(batch) == []
        missing = store.missing(batch)
        assert (missing.passages, missing.phrases, missing.triples) == ((), (), ())
        store.commit(batch)
        yield store, before


def test_a_renamed_folder_of_passages_is_neither_extracted_nor_encoded_again(renamed):
    store, before = renamed
    assert exported(store) == before
    assert len(found(store.snapshot(), "volcano")) == FOLDERS * PASSAGES


def test_old_folder_name_is_found_only_in_earlier_commits(renamed):
    store, _ = renamed
    assert found(store.snapshot(), "glacier") == set()
    assert found(store.snapshot_at(store.snapshot().commit - 1), "volcano") == set()
    assert len(found(store.snapshot_at(store.snapshot().commit - 1), "glacier")) == FOLDERS * PASSAGES


def test_scope_contains_only_names_of_its_documents(renamed):
    store, _ = renamed
    memory = store.scoped("one", lambda document: document.uri.endswith("/page3.md"))
    assert found(memory.snapshot, "volcano page3") == {f"text {3 * PASSAGES + at}" for at in range(PASSAGES)}
    assert len(memory.snapshot.compare_names("volcano", 100).rows) == 1


def test_checkpoint_contains_current_names_and_no_removed_names(tmp_path):
    with open_store(tmp_path) as store:
        store.commit(complete(store, {"file:///drive/Secret plan.md": [("", "text 1", None)]}, []))
        store.commit(
            complete(store, {"file:///drive/Open plan.md": [("", "text 1", None)]}, ["file:///drive/Secret plan.md"])
        )
        store.write_checkpoint()
    [place] = tmp_path.glob("snapshot-*")
    written = b"".join(file.read_bytes() for file in place.iterdir() if file.name.startswith(("names-", "name-")))
    assert b"Open plan" in written and b"ecret" not in written
    with open_store(tmp_path) as store:
        assert found(store.snapshot(), "open") == {"text 1"}
        store.commit(complete(store, {"file:///drive/Secret plan.md": [("", "text 2", None)]}, []))
        assert found(store.snapshot(), "secret plan") == {"text 1", "text 2"}
        assert found(store.snapshot(), "secret") == {"text 2"}
