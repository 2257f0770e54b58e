"""Writes `format-N.tar.xz`: a small store as this version's daemon leaves it, and its export. Run once for a release, in the
checkout of that release, and kept for ever: `python -m tests.store.log.released.make`.

It contains each kind of content: files and added documents, an edit, a removal, a passage that two documents share, given
triples, records, a failed document, and a checkpoint's folder.
"""

import json
import tarfile
import tempfile
from pathlib import Path

from consumers.records.writer import write_file
from store.lance.schema import FORMAT
from tests.e2e.real_hippod import Daemon, until
from tests.store.log.released.make_records import record

HERE = Path(__file__).parent
SHARED = "The Heron gauge was built in Aldersund by Odile Brandt."


def make(home: Path) -> Path:
    daemon = Daemon(home, schedule={"rescan": "off", "snapshot": "1s"})
    try:
        daemon.write("brandt.md", "# Odile Brandt\n\nOdile Brandt founded Project Lantern. She grew up in Pellaston.\n")
        daemon.write("gauge.txt", SHARED)
        daemon.write("broken.pdf", b"%PDF-1.7 no more of it")
        daemon.start().wait()
        daemon.write("gauge.txt", f"{SHARED}\n\nIt measures the depth of Widow Shaft.")
        daemon.wait()
        triples = [["Sabine Rell", "built", "Quill lamp"]]
        daemon.add(
            {"id": "lamp", "title": "Quill lamp", "text": "Sabine Rell built the Quill lamp.", "triples": triples}
        )
        daemon.add({"id": "copy", "text": SHARED}, {"id": "gone", "text": "Nobody remembers the Otter current meter."})
        daemon.wait()
        write_file(home / "records.parquet", [record("two"), record("five", error="too long")])
        daemon.ctl_json("import", home / "records.parquet")
        [gone] = [uri for uri in daemon.documents() if uri.endswith("gone")]
        daemon.ctl_json("rm", gone)
        commit = daemon.wait()["commit"]
        until(lambda: (daemon.store / f"snapshot-{commit}").is_dir(), "the snapshot is written")
        export = daemon.export()
        documents = {uri: each["state"] for uri, each in daemon.documents().items()}
        assert daemon.stop() == 0
    finally:
        daemon.close()
    (home / "expected.json").write_text(json.dumps({"commit": commit, "export": export, "documents": documents}))
    made = HERE / f"format-{FORMAT}.tar.xz"
    with tarfile.open(made, "w:xz") as archive:
        archive.add(home / "expected.json", "expected.json")
        archive.add(daemon.store, "store", filter=lambda entry: None if entry.name.endswith("/lock") else entry)
    return made


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="hippod-release-") as place:
        made = make(Path(place))
        print(f"{made}: {made.stat().st_size} bytes")
