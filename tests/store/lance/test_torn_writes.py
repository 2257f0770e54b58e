"""A power loss during a commit loses that commit only: the store opens by itself."""

import pytest

from store.errors import StoreDamaged
from store.export.json_lines import export_lines
from store.lance.schema import TABLES
from tests.store.small_store import complete, open_store

FIRST = {"file:///a": [("T", "text 3", None), ("", "text 4", None)], "file:///b": [("T", "text 2", None)]}
SECOND = {"file:///a": [("T", "text 7", None)], "file:///c": [("", "text 8", None), ("T", "text 4", None)]}


def files(folder):
    return {path for path in folder.rglob("*") if path.is_file()}


def empty(path):
    path.write_bytes(b"")


def zeros(path):
    path.write_bytes(bytes(path.stat().st_size))


def half(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def gone(path):
    path.unlink()


@pytest.mark.slow
@pytest.mark.parametrize("part", ["_versions", "data", "_transactions"])
@pytest.mark.parametrize("tear", [empty, zeros, half, gone])
@pytest.mark.parametrize("reached", [1, 3, len(TABLES)])
def test_a_commit_torn_anywhere_is_as_if_it_had_not_been(tmp_path, part, tear, reached):
    """`reached`: the number of tables that the commit had written; the data of the last of them are torn."""
    with open_store(tmp_path) as store:
        store.commit(complete(store, FIRST, []))
        expected, positions, seq = list(export_lines(store.snapshot())), dict(store.positions), store.snapshot().commit
    old = files(tmp_path)
    head = (tmp_path / "head").read_bytes() if (tmp_path / "head").exists() else None
    kept = {path: path.read_bytes() for path in old}
    with open_store(tmp_path) as store:
        store.commit(complete(store, SECOND, ["file:///b"]))
    written = [name for name in TABLES if files(tmp_path / f"{name}.lance") - old]
    written = written[: min(reached, len(written))]
    torn = written[-1]
    for path in files(tmp_path) - old:
        table = path.relative_to(tmp_path).parts[0].removesuffix(".lance")
        if table not in written:
            path.unlink()
        elif table == torn and path.parent.name == part:
            tear(path)
    for path, content in kept.items():  # files that are overwritten in place: the log's head, the hints
        path.write_bytes(content)
    assert head is None or (tmp_path / "head").read_bytes() == head
    with open_store(tmp_path) as store:
        complete_after_all = torn == "commits" and part == "_transactions"
        if not complete_after_all:
            assert list(export_lines(store.snapshot())) == expected
            assert dict(store.positions) == positions
            assert store.snapshot().commit >= seq
        # The store works normally afterwards.
        store.commit(complete(store, SECOND, ["file:///b"]))
        assert {document.uri for document in store.documents()} == {"file:///a", "file:///c"}
        after = list(export_lines(store.snapshot()))
    with open_store(tmp_path) as store:
        assert list(export_lines(store.snapshot())) == after


def test_an_acknowledged_commit_that_is_torn_is_damage_and_says_so(tmp_path):
    with open_store(tmp_path) as store:
        store.commit(complete(store, FIRST, []))
        before = files(tmp_path / "commits.lance")
        store.commit(complete(store, SECOND, ["file:///b"]))
    for path in files(tmp_path / "commits.lance") - before:
        zeros(path)
    with pytest.raises(StoreDamaged, match="backup"):
        open_store(tmp_path)
