"""The facts about Lance's files and behaviour that the store relies on. A failure after an upgrade of LanceDB shows a change.

Only `store.lance` depends on these facts: each test names the file there that must follow.
"""

import hashlib
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pytest

from store.lance import layout
from store.lance.import_shim import CLIENT, lancedb
from store.lance.table_writer import FOREVER, fragments_with_deletions, row_id_in
from store.lance.tables import UNLIMITED_ROWS

SCHEMA = pa.schema([("number", pa.int32()), ("text", pa.string())])
FEW_DELETED = 100
"""One of these rows may be deleted without Lance rewriting their fragment: Lance rewrites it from a tenth on."""


class LanceTable:
    """A table of LanceDB, without the store's code."""

    def __init__(self, folder: Path) -> None:
        self.db = lancedb.connect(str(folder))
        self.folder = layout.table_folder(folder, "t")
        self.handle = self.db.create_table("t", schema=SCHEMA)

    def add(self, first: int, last: int) -> None:
        """Adds the numbers from `first` up to, but not including, `last`."""
        numbers = list(range(first, last))
        self.handle.add(pa.table({"number": numbers, "text": [f"text {n}" for n in numbers]}, schema=SCHEMA))

    def numbers(self, handle=None) -> list[int]:
        table = self.handle if handle is None else handle
        return sorted(table.search().limit(UNLIMITED_ROWS).to_arrow()["number"].to_pylist())

    def row_ids(self) -> dict[int, int]:
        found = self.handle.search().with_row_id(True).select(["number"]).limit(UNLIMITED_ROWS).to_arrow()
        return dict(zip(found["number"].to_pylist(), found["_rowid"].to_pylist(), strict=True))

    def files(self) -> dict[str, str]:
        """Returns the digest of every file except the version hint, by its path in the table's folder."""
        return {
            str(path.relative_to(self.folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in self.folder.rglob("*")
            if path.is_file() and path.name != layout.VERSION_HINT
        }

    def fragments(self) -> int:
        return int(self.handle.stats()["fragment_stats"]["num_fragments"])

    def manifest(self) -> bytes:
        return layout.manifest_proper(layout.manifests(self.folder)[0])


@pytest.fixture
def table(tmp_path) -> LanceTable:
    table = LanceTable(tmp_path)
    table.add(0, 5)
    table.add(5, 8)
    return table


def added(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Returns the added files, by folder and suffix; fails if an existing file changed or was deleted."""
    changed = [name for name, digest in before.items() if after.get(name) != digest]
    assert not changed, (
        f"Lance changed or removed files that it had written: {changed}; backups and layout.py rely on it"
    )
    return sorted(f"{Path(name).parent}/*{Path(name).suffix}" for name in after.keys() - before.keys())


def test_manifest_names_sort_newest_version_first(table) -> None:
    found = layout.manifests(table.folder)
    assert all(map(layout.is_known_name, found)), f"layout.is_known_name: manifests are called {found[0].name} now"
    versions = [layout.version_of(path) for path in found]
    assert versions == [3, 2, 1], f"layout.version_of: versions 3, 2, 1 have the names of {versions}"
    assert table.handle.version == 3, "creating and two appends were three versions before"


def reopened(table: LanceTable):
    """Returns the table as another process sees it."""
    return lancedb.connect(str(table.folder.parent)).open_table("t")


def test_manifest_ends_with_the_magic(table) -> None:
    assert all(map(layout.is_whole, layout.manifests(table.folder))), "layout.END_MAGIC: manifests end otherwise now"


@pytest.mark.parametrize("tear", [lambda content: b"", lambda content: content[:-30]], ids=["empty", "cut"])
def test_torn_manifest_prevents_opening_until_it_is_removed(table, tear) -> None:
    newest = layout.manifests(table.folder)[0]
    newest.write_bytes(tear(newest.read_bytes()))
    with pytest.raises((OSError, RuntimeError, ValueError)):
        reopened(table)
    newest.unlink()
    (newest.parent / layout.VERSION_HINT).unlink(missing_ok=True)
    assert table.numbers(reopened(table)) == [0, 1, 2, 3, 4], "versions.py: the version before is not opened"


def test_a_manifest_of_zeros_is_opened_as_a_table_without_rows(table) -> None:
    """Worse than one that cannot be opened: `drop_newer` must find it before Lance does."""
    newest = layout.manifests(table.folder)[0]
    newest.write_bytes(b"\0" * newest.stat().st_size)
    assert not layout.is_whole(newest)
    assert reopened(table).count_rows() == 0


def test_an_append_is_one_data_file_one_fragment_and_one_version(table) -> None:
    before = table.files()
    table.add(8, 9)
    expected = ["_transactions/*.txn", "_versions/*.manifest", "data/*.lance"]
    assert added(before, table.files()) == expected, "layout.py: an append writes other files now"
    assert table.fragments() == 3, "table_writer.py: an append was one fragment before"
    assert table.handle.version == 4, "an append was one version before"


def test_newest_manifest_names_one_data_file_per_fragment_in_order(table) -> None:
    named = layout.data_files_in_order(table.folder)
    assert sorted(named) == sorted(layout.file_names(table.folder)[layout.DATA])
    assert len(named) == table.fragments() == 2, (
        "compaction.py: a fragment had one data file; layout.py: its manifest named it"
    )
    table.add(8, 9)
    assert layout.data_files_in_order(table.folder)[:-1] == named


def test_a_delete_adds_a_deletion_file_which_names_its_fragment(table) -> None:
    before = table.files()
    table.handle.delete("number = 6")
    expected = ["_deletions/*.arrow", "_transactions/*.txn", "_versions/*.manifest"]
    assert added(before, table.files()) == expected, "layout.py: a delete writes other files now"
    (name,) = layout.file_names(table.folder)[layout.DELETIONS]
    assert fragments_with_deletions(table.folder.parent, "t") == [1], (
        f"fragments_with_deletions: {name} is of fragment 1"
    )
    assert table.numbers() == [0, 1, 2, 3, 4, 5, 7]


def test_row_id_combines_fragment_and_offset_and_works_in_conditions(table) -> None:
    expected = {number: number for number in range(5)}
    expected |= {number: (1 << layout.FRAGMENT_BITS) + number - 5 for number in range(5, 8)}
    assert table.row_ids() == expected, "layout.FRAGMENT_BITS: row ids are made in another way now"
    table.handle.delete(row_id_in([expected[0], expected[7]]))
    assert table.numbers() == [1, 2, 3, 4, 5, 6], "table_writer.row_id_in: rows cannot be deleted by their ids now"
    beyond = table.handle.search().where(f"_rowid >= {expected[5]}").limit(UNLIMITED_ROWS).to_arrow()
    assert sorted(beyond["number"].to_pylist()) == [5, 6], "table_writer.py: rows cannot be searched by their ids now"


def test_optimize_merges_small_fragments_and_keeps_every_version(table) -> None:
    before, ids = table.files(), table.row_ids()
    table.handle.delete("number = 6")
    table.db.open_table("t").optimize(cleanup_older_than=FOREVER)
    assert [name for name in added(before, table.files()) if name.startswith("data/")] == ["data/*.lance"]
    assert table.numbers() == [0, 1, 2, 3, 4, 5, 7], "a handle saw another one's optimize only after a refresh before"
    table.handle.checkout_latest()
    assert table.fragments() == 1, "TableWriter.optimize: small fragments are not merged"
    assert not set(table.row_ids().values()) & set(ids.values()), "rows had other ids before"
    for version in (1, 2, 3):
        table.db.open_table("t").checkout(version)


def test_optimize_does_not_rewrite_a_fragment_with_few_deleted_rows(tmp_path) -> None:
    """The reason for `TableWriter.move_rows_from`: a purged text would stay on the disk."""
    table = LanceTable(tmp_path)
    table.add(0, FEW_DELETED)
    table.handle.delete("number = 1")
    table.handle.optimize(cleanup_older_than=FOREVER)
    assert fragments_with_deletions(table.folder.parent, "t") == [0], (
        "table_writer.py need not move living rows any more"
    )


def test_an_overwrite_is_a_new_version_with_one_data_file_a_fragment(table) -> None:
    wider = SCHEMA.append(pa.field("more", pa.int32()))
    rows = pa.table({"number": [1, 2], "text": ["a", "b"], "more": [3, 4]}, schema=wider)
    before = table.files()
    table.handle = table.db.create_table("t", data=rows.to_reader(), mode="overwrite")
    assert table.handle.version == 4, "TableWriter.replace_rows: a migration could not be undone"
    assert added(before, table.files()) == ["_transactions/*.txn", "_versions/*.manifest", "data/*.lance"]
    assert sum(name.encode() in table.manifest() for name in layout.file_names(table.folder)[layout.DATA]) == 1
    layout.manifests(table.folder)[0].unlink()
    assert table.numbers(reopened(table)) == list(range(8))


def test_a_second_optimize_makes_no_version_and_deletes_the_old_ones(table) -> None:
    """`Tables.clean` relies on it: a version that it made would be above the mark, so it would be removed again."""
    table.handle.delete("number = 6")
    table.handle.optimize(cleanup_older_than=FOREVER)
    version = table.handle.version
    table.db.open_table("t").optimize(cleanup_older_than=timedelta(milliseconds=1), delete_unverified=True)
    assert [layout.version_of(path) for path in layout.manifests(table.folder)] == [version]
    assert len(layout.file_names(table.folder)[layout.DATA]) == 1
    assert fragments_with_deletions(table.folder.parent, "t") == []
    assert table.numbers() == [0, 1, 2, 3, 4, 5, 7], "the handle of the kept version cannot be read any more"


def test_lance_deletes_no_tagged_version(table) -> None:
    """The reason for `tables.TAG`. `optimize` merges here, so the tagged version is not the last one."""
    marked = table.handle.version
    table.handle.tags.create("t", marked)
    with pytest.raises(RuntimeError, match="Cleanup error"):
        table.handle.optimize(cleanup_older_than=timedelta(milliseconds=1), delete_unverified=True)
    reopened(table).checkout(marked)
    table.handle.tags.delete("t")
    assert table.handle.tags.list() == {}


def test_a_handle_stays_at_its_version(table) -> None:
    before = table.db.open_table("t")
    table.add(8, 10)
    assert table.numbers(before) == list(range(8)), "tables.py: a view must not show an unfinished change"


def test_packages_that_the_shim_skips_are_in_the_expected_folders() -> None:
    found = find_spec(CLIENT)
    assert found is not None, "import_shim.py: LanceDB does without the package; the shim can go"
    places = [Path(place) for place in found.submodule_search_locations or ()]
    apis = [path for place in places for path in place.glob("api/*_api.py")]
    models = [path for place in places for path in place.glob("models/[!_]*.py")]
    assert len(apis) >= 5, f"import_shim.py: the clients' classes are elsewhere; in api/ are {len(apis)}"
    assert len(models) >= 50, f"import_shim.py: the messages' classes are elsewhere; in models/ are {len(models)}"
