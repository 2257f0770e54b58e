"""`hippoctl verify` on a memory with one flipped bit on the disk; and the checksums of a store's files."""

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from store.lance.schema import TABLES
from tests.e2e.real_hippod import Daemon, until
from tests.store.verify.test_flipped_bits import flipped

pytestmark = pytest.mark.daemon

FILES = {
    r"\w+\.lance/(data|_deletions|_transactions|_versions)/[^/]+\.(lance|arrow|bin|txn|manifest)": "are in `checksums`",
    r"\w+\.lance/_versions/latest_version_hint\.json": "a hint that Lance does without",
    r"checksums": "each line has a checksum of its own",
    r"log/\d+-[0-9a-f]+\.records": "commits that the tables lack, each with a checksum",
    r"log/mark": "the last commit in the tables and each table's version, with a checksum",
    r"torn/[^/]+": "unfinished changes, kept in case they are wanted",
    r"snapshot-\d+/manifest\.json": "which has its own",
    r"snapshot-\d+/[^/]+\.(npy|arrow)": "Checksums are in its `manifest.json`",
    r"head": "the last commit's number, compared at a start",
    r"lock": "the process's id",
    r"positions\.key": "With another key, positions given to clients are invalid",
    r"inbox/\d+\.jsonl": "documents that wait to be committed; a damaged line is reported",
    r"openie\.jsonl": "model answers that wait to be committed; a call with a damaged line is repeated",
    r"costs\.jsonl": "a damaged line is left out and logged",
    r"sessions/[^/]+\.json": "a damaged file is reported",
    r"stacks-of-abort\.txt": "for people",
}
"""By a pattern of a file's path: the check that protects the file, or the reason for none. Equals
docs/reference/store-files.md."""


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("flips")) as daemon:
        daemon.write("mill.md", "# The mill\n\nSolveig Aas built the mill of Ternby. The mill lies on the river Ask.\n")
        daemon.write(
            "bridge.md",
            "# The bridge\n\nTorgeir Vik designed the bridge. Torgeir Viks knew the mills.\n",
        )
        daemon.add({"id": "news", "text": "The Ternby Post was founded in 1850 by Solveig Aas.", "labels": ["public"]})
        daemon.wait()
        assert daemon.ctl("backup", str(daemon.home / "backup")).code == 0  # writes the log into the tables
        daemon.restart()  # writes a checkpoint
        daemon.write("later.md", "Torgeir Vik left Ternby.\n")
        daemon.wait()
        yield daemon


@pytest.mark.parametrize("table", TABLES)
def test_a_flipped_bit_is_reported_with_its_table_and_file(memory: Daemon, table: str) -> None:
    chosen = random.Random(table)
    folder = memory.store / f"{table}.lance"
    # A table that was never written to has no rows, but a version.
    files = list(folder.glob("data/*")) or list(folder.glob("_versions/*.manifest"))
    newest = max(files, key=lambda path: path.stat().st_mtime_ns)
    with flipped(newest, chosen.randrange(8 * newest.stat().st_size)):
        ended = memory.ctl("--json", "verify")
        shown = memory.ctl("verify")
    assert (ended.code, shown.code) == (1, 1)
    named = f"the file {newest.relative_to(memory.store)} of the table {table} is damaged"
    assert any(problem.startswith(named) for problem in ended.json["problems"])
    assert named in " ".join(shown.out.split()), "a line is broken between words"


def test_verify_of_an_undamaged_store_reports_no_problems_and_what_it_checked(memory: Daemon) -> None:
    found = memory.ctl_json("verify")
    assert found["problems"] == [] and found["checked"] > 20 and "without_checksum" not in found


def test_every_store_file_has_a_checksum_or_a_documented_reason(memory: Daemon) -> None:
    paths = [str(path.relative_to(memory.store)) for path in memory.store.rglob("*") if path.is_file()]
    unknown = [path for path in paths if not any(re.fullmatch(pattern, path) for pattern in FILES)]
    assert unknown == []
    listed = (Path(__file__).parents[3] / "docs" / "reference" / "store-files.md").read_text("utf-8")
    assert [reason for reason in FILES.values() if reason not in listed] == []


def test_failed_write_of_the_log_into_a_damaged_table_is_reported(tmp_path: Path) -> None:
    with Daemon(tmp_path, schedule={"compact": "1s"}) as daemon:
        daemon.add({"id": "mill", "text": "Solveig Aas built the mill of Ternby."})
        daemon.wait()
        daemon.restart()
        versions = (daemon.store / "documents.lance" / "_versions").glob("*.manifest")
        newest = max(versions, key=lambda path: path.stat().st_mtime_ns)
        with flipped(newest, 8 * (newest.stat().st_size // 2)):
            daemon.add({"id": "bridge", "text": "Torgeir Vik designed the bridge."})
            daemon.wait()
            until(lambda: "cannot be written into the tables" in daemon.status().get("trouble", ""), "status says so")
            checks = daemon.ctl("--json", "doctor").json["checks"]
            assert [each["status"] for each in checks if each["name"] == "commits"] == ["fail"]
            assert daemon.query("bridge")
        until(lambda: "trouble" not in daemon.status(), "the log is written once the table is whole")
