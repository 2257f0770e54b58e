"""A drive of two folders with unwanted files, links, files that are too large, and lines that all fail alike."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memory.encoder.registry import make_encoder
from store.store import Store
from store.types import Batch
from tests.e2e.real_hippod import Daemon, until, write_config

pytestmark = pytest.mark.daemon

MAX_BYTES = 20_000
TARIFF = "The valid tariff is called Marigold."


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path_factory.mktemp("unwanted"), ("drive", "other"), folder={"max_bytes": MAX_BYTES})
    daemon.write("tariff.md", TARIFF)
    for name in ("#recycle/old.md", "$RECYCLE.BIN/$R4F2A.md", "@eaDir/tariff.md", "p/target/doc/x.md", "venv/lib/y.md"):
        daemon.write(name, "The old tariff is called Thistle.")
    daemon.write("venv/pyvenv.cfg", "home = /usr/bin")
    daemon.write("p/Cargo.toml", "[package]")
    daemon.write("target/goals.md", "Our target is Lupin Island.")
    daemon.write("service.log", "".join(f"Line {n} names Foxglove{n}.\n" for n in range(300)))
    daemon.write("shared.md", "The shared page is about Yarrow.")
    os.link(daemon.drive / "shared.md", daemon.folders[1] / "shared.md")
    lines = [line for n in range(100) for line in ('{"body": "no text"}', json.dumps({"id": n, "text": f"Fact {n}."}))]
    daemon.write("chat.jsonl", "\n".join(lines))
    daemon.write("empty.txt", "")
    with daemon:
        daemon.wait()
        yield daemon
    print(f"--- {daemon.home} logged:\n{daemon.log_text()[-6000:]}")


@pytest.fixture(scope="module")
def doctor(daemon: Daemon) -> dict[str, str]:
    """Returns doctor's findings before the tests, by check."""
    return details(daemon, "detail")


def details(daemon: Daemon, field: str) -> dict[str, str]:
    return {check["name"]: check[field] for check in daemon.ctl("--json", "doctor").json["checks"]}


def test_unwanted_files_are_left_out_and_counted_by_reason(daemon: Daemon, doctor: dict[str, str]) -> None:
    names = {Path(uri).name for uri in daemon.documents()}
    assert {"tariff.md", "goals.md"} <= names
    assert not {"old.md", "$R4F2A.md", "%24R4F2A.md", "x.md", "y.md"} & names
    drive = daemon.status()["sources"][0]
    assert drive["excluded"] == {"build": 1, "recycle bin": 2, "thumbnails and indexes": 1, "virtual environment": 1}
    assert "5 excluded (2 recycle bin, 1 build," in doctor[f"folder {daemon.drive}"]


def test_skipped_documents_are_counted_by_reason(daemon: Daemon, doctor: dict[str, str]) -> None:
    assert daemon.status()["skipped"] == {"link": 1, "no text": 1}
    assert "2 skipped (1 link, 1 no text)" in doctor["documents"]
    assert "none failed" not in doctor["documents"]


def test_hard_linked_file_in_two_folders_is_indexed_once(daemon: Daemon) -> None:
    found = {uri: document for uri, document in daemon.documents().items() if uri.endswith("shared.md")}
    assert {document["state"] for document in found.values()} == {"indexed", "skipped"}
    assert "which is followed already" in found[(daemon.folders[1] / "shared.md").as_uri()]["error"]


def test_log_file_that_outgrows_max_bytes_stays_indexed_and_reports_the_omission(daemon: Daemon) -> None:
    log = daemon.uri("service.log")
    whole = daemon.documents()[log]
    assert whole["state"] == "indexed" and not whole.get("left_out")
    with (daemon.drive / "service.log").open("a") as file:
        file.write("".join(f"Line {n} names Foxglove{n}.\n" for n in range(300, 2_000)))
    daemon.wait()
    cut = daemon.documents()[log]
    assert cut["state"] == "indexed"
    [omission] = cut["left_out"]
    assert (omission["kind"], omission["count"]) == ("too_large", 1)
    assert "the file after its first 19," in omission["text"]
    assert daemon.status()["left_out"] == {"too_large": 1}
    assert any("Foxglove299" in found["text"] for found in daemon.query("Foxglove299", mode="bm25"))


def test_lines_with_the_same_error_are_reported_as_one_failure(daemon: Daemon) -> None:
    chat = daemon.uri("chat.jsonl")
    documents = daemon.documents(prefix=chat)
    assert len(documents) == 101
    assert documents[chat]["state"] == "failed"
    assert documents[chat]["error"].startswith('100 of its documents are not read: "text" is missing')
    assert daemon.status()["failed"] == 1
    failed = len(daemon.events("document_failed"))
    assert failed == 1
    assert daemon.ctl_json("retry")["requeued"] == 1
    until(lambda: daemon.documents(prefix=chat)[chat]["attempts"] == 2, "it is tried again")
    assert len(daemon.events("document_failed")) == 2
    (daemon.drive / "chat.jsonl").write_text(json.dumps({"id": 1, "text": "Fact 1."}))
    until(lambda: list(daemon.documents(prefix=chat)) == [f"{chat}#1"], "the problem is gone with its lines")


def test_new_default_exclusion_after_an_upgrade_needs_confirmation(daemon: Daemon) -> None:
    """A hippod without the exclusion had parsed the recycle bin; here a pattern that cancels the exclusion does so."""
    old, valid = daemon.uri("#recycle/old.md"), daemon.uri("tariff.md")
    restart_with(daemon, exclude=["!\\#recycle/"])
    assert daemon.documents()[old]["state"] == "indexed"
    assert daemon.stop() == 0
    encoder = make_encoder("hash", "", 64, "cpu")
    with Store(daemon.store, encoder.identity) as store:
        before = {key: value for key, value in store.positions[old].items() if key != "exclusions"}
        store.commit(Batch(positions={old: before}))
    restart_with(daemon, exclude=[])
    drive = daemon.status()["sources"][0]
    assert (drive["unconfirmed"], drive["newly_excluded"]) == (1, {"recycle bin": 1})
    assert f"`hippoctl confirm {daemon.drive}`" in drive["detail"]
    assert any(found["document"] == old for found in daemon.query("Thistle", mode="bm25")), "it is still there"
    assert details(daemon, "status")[f"folder {daemon.drive}"] == "warn"
    assert daemon.ctl_json("confirm", str(daemon.drive))["documents"] == 1
    until(lambda: old not in daemon.documents(), "it is forgotten")
    assert daemon.status()["sources"][0]["unconfirmed"] == 0
    assert daemon.documents()[valid]["state"] == "indexed"


def restart_with(daemon: Daemon, **folder: Any) -> None:
    """Restarts with other folder settings and waits until everything is parsed."""
    if daemon.process is not None:
        assert daemon.stop() == 0
    for settings in daemon.sections["folder"]:
        settings.update(folder)
    write_config(daemon.config, daemon.sections)
    daemon.start().wait()
