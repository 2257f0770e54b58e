"""Writes `records-N.tar.xz`: a store as this version's daemon leaves it, with records and documents that share their texts.

Run once with the code of format 3, which kept the extractions of records by passage (`store.log.migrations`): `python
-m tests.store.log.released.make_records`.
"""

import tarfile
import tempfile
from pathlib import Path

from consumers.records.record import PassageExtraction, Record, SourcePosition
from consumers.records.writer import write_file
from consumers.types import ParsedDocument, Passage
from store.lance.schema import FORMAT
from tests.e2e.real_hippod import Daemon, Json

HERE = Path(__file__).parent
TEXTS = {
    "one": "Odile Brandt founded Project Lantern.",
    "two": "Sabine Rell built the Quill lamp.",
    "three": "The Heron gauge was built in Aldersund.",
    "four": "The Moth fluorometer belongs to Odile Brandt.",
    "five": "Widow Shaft lies in Pellaston.",
}
HIDDEN = "zanzibarium"
"""Occurs in every triple that a record supplies."""
STATED = [["Widow Shaft", "lies in", "Pellaston"]]


def added(name: str, **more: object) -> Json:
    return {"id": name, "title": name, "text": TEXTS[name.partition("-")[0]], "labels": ["public"], **more}


def record(name: str, error: str | None = None) -> Record:
    """Returns a record of the label `board`, with the text of the document that is added under the same name."""
    document = ParsedDocument(
        f"kafka://articles/{name}", name, (Passage(name, TEXTS[name]),), metadata={"labels": ["board"]}
    )
    triples = () if error else ((HIDDEN, "is known to", name),)
    found = PassageExtraction("model/hidden", (HIDDEN,), triples, 100, 10, error=error)
    return Record(document, (found,), SourcePosition("kafka:articles/0", len(name)))


STEPS: list[list[Json | Record]] = [
    [record("one"), record("three", error=f"{HIDDEN} is too long for the model")],
    [added("one"), added("three"), added("two")],
    [record("two")],
    [added("four", triples=[])],
    [{**added("four"), "id": "four-again"}],
    [added("five", triples=STATED), record("five")],
]
"""Documents and records that are added and imported, in this order."""


def fill(daemon: Daemon) -> None:
    """Performs all steps."""
    for step in STEPS:
        documents = [each for each in step if not isinstance(each, Record)]
        records = [each for each in step if isinstance(each, Record)]
        if documents:
            daemon.add(*documents)
            daemon.wait()
        if records:
            write_file(daemon.home / "records.parquet", records)
            daemon.ctl_json("import", daemon.home / "records.parquet")
            daemon.wait()


def make(home: Path) -> Path:
    with Daemon(home, folders=()) as daemon:
        fill(daemon)
        assert daemon.stop() == 0
    made = HERE / f"records-{FORMAT}.tar.xz"
    with tarfile.open(made, "w:xz") as archive:
        archive.add(daemon.store, "store", filter=lambda entry: None if entry.name.endswith("/lock") else entry)
    return made


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="hippod-release-") as place:
        made = make(Path(place))
        print(f"{made}: {made.stat().st_size} bytes")
