"""Files that an earlier parser version has parsed are parsed again if the result differs."""

from pathlib import Path

from consumers.folder.ledger import Entry
from consumers.folder.tree.file_status import FileStatus
from consumers.types import READER_VERSION, Fingerprint


def test_position_of_another_reader_version_does_not_match_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    path.write_text("<p>Words.</p>")
    stat = path.stat()
    read = Fingerprint(stat.st_size, stat.st_mtime_ns, stat.st_ino, "digest")
    stored = read.to_json()

    def is_known(position: dict[str, object]) -> bool:
        return Entry(Fingerprint.from_json(position), committed=True).matches(FileStatus(stat))

    assert Fingerprint.from_json(stored) == read
    assert is_known(stored)
    assert not is_known({key: value for key, value in stored.items() if key != "reader"})
    assert not is_known({**stored, "reader": READER_VERSION + 1})
