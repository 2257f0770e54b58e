"""The documents of a folder's files while their drive is unmounted, after a stop, and from another root.

Unmounting a drive removes nothing from the memory, and its pending files are parsed once it is back.
"""

import shutil

import pytest

from tests.e2e.conftest import Hippo
from tests.e2e.real_hippod import Daemon, until, write_config

pytestmark = pytest.mark.daemon

FILES = 20
LONG = "".join(
    f"Keeper {number} of the archive wrote to Tilda Vang about house {number}.\n\n" for number in range(6_000)
)
"""Takes the only parsing process seconds, so later files wait."""


def write_all(daemon: Daemon, colour: str) -> None:
    for number in range(FILES):
        daemon.write(f"{number}.txt", f"Lighthouse {number} was painted {colour} by Tilda Vang.")


def painted(daemon: Daemon, colour: str) -> int:
    """Returns the number of lighthouses of this colour in the memory."""
    found = daemon.query(f"painted {colour}", "bm25", k=2 * FILES)
    return sum(f"painted {colour}" in passage["text"] for passage in found)


def test_files_pending_when_their_drive_is_unmounted_are_parsed_once_it_is_back(hippo: Hippo) -> None:
    daemon = hippo(parsing={"workers": 1})
    away = daemon.home / "away"
    write_all(daemon, "white")
    daemon.start().wait()
    long = daemon.write("long.txt", LONG)
    until(lambda: long in daemon.documents(state="pending"), "the long file is being read")
    write_all(daemon, "red")
    until(lambda: daemon.status()["pending"] == FILES + 1, "the others wait", pause_s=0)
    daemon.drive.rename(away)
    until(lambda: daemon.status()["sources"][0]["state"] == "missing", "the folder is missing")
    until(lambda: daemon.status()["pending"] == 0, "nothing waits")
    assert (painted(daemon, "white"), painted(daemon, "red")) == (FILES, 0)
    assert not daemon.documents(state="failed")
    away.rename(daemon.drive)
    until(lambda: painted(daemon, "red") == FILES, "all is read")
    assert painted(daemon, "white") == 0


def test_failed_document_is_retried_after_a_parent_folder_replaced_its_folder(hippo: Hippo) -> None:
    daemon = hippo()
    failed = daemon.write("below/report.pdf", "Jadwiga Holt wrote this report as plain text.")
    write_config(daemon.config, daemon.sections | {"folder": [{"path": str(daemon.drive / "below")}]})
    daemon.start().wait()
    assert list(daemon.documents(state="failed")) == [failed]
    daemon.stop()
    write_config(daemon.config, daemon.sections)
    daemon.start().wait()
    assert daemon.ctl_json("retry")["requeued"] == 1
    until(lambda: daemon.documents()[failed]["attempts"] == 2, "it is tried again")
    assert list(daemon.documents(state="failed")) == [failed]


def test_unreadable_link_and_folder_are_removed_once_deleted(hippo: Hippo) -> None:
    daemon = hippo()
    archive = daemon.write("kept.txt", "Ottilie Brandt keeps the archive.")
    (daemon.drive / "link").symlink_to("kept.txt")
    closed = daemon.drive / "closed"
    closed.mkdir(mode=0)
    daemon.start().wait()
    assert set(daemon.documents()) == {archive, daemon.uri("link"), daemon.uri("closed")}
    daemon.stop()
    (daemon.drive / "link").unlink()
    shutil.rmtree(closed)
    daemon.start().wait()
    assert set(daemon.documents()) == {archive}


def test_loss_of_most_of_a_folder_needs_confirmation(hippo: Hippo) -> None:
    daemon = hippo()
    write_all(daemon, "white")
    daemon.start().wait()
    assert daemon.stop() == 0
    for number in range(FILES - 3):
        (daemon.drive / f"{number}.txt").unlink()
    daemon.start().wait()
    assert daemon.wait()["documents"] == FILES
    [source] = daemon.status()["sources"]
    assert (source["state"], source["unconfirmed"]) == ("watching", FILES - 3)
    assert f"hippoctl confirm {daemon.drive}" in daemon.ctl("doctor").out.replace("\n", " ")
    [held] = daemon.events("removals_need_confirmation")
    assert (held["documents"], held["of"]) == (FILES - 3, FILES)
    assert daemon.ctl("confirm", "/nowhere").code == 1
    assert daemon.ctl_json("confirm", daemon.drive) == {"source": str(daemon.drive), "documents": FILES - 3}
    assert daemon.wait()["documents"] == 3
    assert daemon.status()["sources"][0]["unconfirmed"] == 0
    assert daemon.http.post("/v1/confirm", json={"source": str(daemon.drive)}).status_code == 409
