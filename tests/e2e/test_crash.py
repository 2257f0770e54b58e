"""A crash loses no acknowledged commit and doubles none; a stop is clean and fast."""

import contextlib
import time

import httpx2
import psutil
import pytest

from store.lance.import_shim import lancedb
from tests.e2e.conftest import Hippo
from tests.e2e.real_hippod import Daemon, texts, until

pytestmark = pytest.mark.daemon

MANY = 120


def write_many(daemon: Daemon, count: int = MANY) -> set[str]:
    """Writes files of two passages, so that a document can be half done; every third shares one with the next."""
    for number in range(count):
        own = f"Witness {number} named Sigrid Oke-{number} saw the comet over Harbour {number % 37}. " * 30
        shared = f"Parish {number // 3} belongs to the diocese of Lund-{number // 3}. " * 30
        daemon.write(f"{number % 7}/{number}.txt", f"{own}\n\n{shared}\n")
    return {daemon.uri(f"{number % 7}/{number}.txt") for number in range(count)}


def indexed(daemon: Daemon) -> int:
    return int(daemon.status()["documents"])


def interrupt_at(daemon: Daemon, least: int, most: int = MANY) -> None:
    """Returns in the middle of indexing: after `least` documents, before `most`."""
    now = until(lambda: (n := indexed(daemon)) >= least and n, f"{least} documents are indexed", pause_s=0.005)
    assert now < most, "all was indexed before the interruption: there must be more files"


def assert_equals_a_fresh_one(daemon: Daemon, fresh: Daemon, uris: set[str]) -> None:
    """Asserts that all documents exist once, and that the export equals that of a fresh daemon on the folder."""
    documents = daemon.documents()
    assert set(documents) == uris
    assert {document["state"] for document in documents.values()} == {"indexed"}
    lines = daemon.export()
    assert len(set(lines)) == len(lines)
    fresh.start().wait()
    assert fresh.export() == lines
    assert fresh.status()["edges"] == daemon.status()["edges"]
    for name in ("documents", "passages", "phrases", "triples"):
        assert fresh.status()[name] == daemon.status()[name]


def another(hippo: Hippo, daemon: Daemon) -> Daemon:
    """Returns a daemon with a separate store on the same folder."""
    return hippo("fresh", folders=(str(daemon.drive),))


def test_memory_killed_twice_while_indexing_equals_a_fresh_one(hippo: Hippo) -> None:
    daemon = hippo()
    uris = write_many(daemon)
    daemon.start()
    interrupt_at(daemon, 20)
    daemon.kill()
    # Changes between the crash and the restart count too.
    (daemon.drive / "0" / "0.txt").unlink()
    uris.remove(daemon.uri("0/0.txt"))
    (daemon.drive / "1").rename(daemon.drive / "one")
    uris = {uri.replace("/drive/1/", "/drive/one/") for uri in uris}
    daemon.write("2/2.txt", "This one was rewritten by Ragnhild Moe.")
    before = int(daemon.start().status()["documents"])
    assert before >= 20
    interrupt_at(daemon, before + 20)
    daemon.kill()
    daemon.start().wait()
    assert_equals_a_fresh_one(daemon, another(hippo, daemon), uris)


def test_a_stop_while_indexing_is_clean_and_in_time_and_a_restart_completes_the_work(hippo: Hippo) -> None:
    timeout_s = 20.0
    daemon = hippo(daemon={"stop_timeout_s": timeout_s})
    uris = write_many(daemon)
    daemon.start()
    interrupt_at(daemon, 20)
    began = time.monotonic()
    code = daemon.stop()
    took = time.monotonic() - began
    assert code == 0
    assert took < timeout_s
    assert not daemon.socket.exists()
    assert not daemon.events("stopped_late")
    daemon.start()
    # No committed document is parsed again.
    assert indexed(daemon) >= 20
    daemon.wait()
    assert_equals_a_fresh_one(daemon, another(hippo, daemon), uris)


def test_stop_during_the_start_exits_with_0(hippo: Hippo) -> None:
    daemon = hippo().launch()
    until(lambda: daemon.socket.exists(), "it listens", pause_s=0.002)
    assert daemon.stop() == 0
    daemon.start()
    assert daemon.status()["state"] == "ready"


def test_documents_that_were_added_survive_a_kill(hippo: Hippo) -> None:
    daemon = hippo().start()
    given = [{"id": f"n{n}", "text": f"Note {n} is about the glacier of Yngvild {n}."} for n in range(200)]
    uris = daemon.add(*given)
    daemon.kill()
    assert len(uris) == 200
    daemon.start().wait()
    documents = daemon.documents(prefix="added:")
    assert set(documents) == set(uris)
    assert {document["state"] for document in documents.values()} == {"indexed"}
    assert len(texts(daemon.export(), "passage")) == 200
    # The inbox is empty, so another start recovers nothing. (Merging fragments adds a commit by itself.)
    changes, recovered = len(daemon.events("committed")), len(daemon.events("inbox_recovered"))
    daemon.restart()
    daemon.wait()
    assert (len(daemon.events("committed")), len(daemon.events("inbox_recovered"))) == (changes, recovered)
    assert not list((daemon.store / "inbox").iterdir())


def test_documents_added_during_the_start_are_indexed_once(hippo: Hippo) -> None:
    """The socket listens already while the memory opens: the request waits and continues as soon as possible."""
    daemon = hippo().launch()

    def listens() -> bool:
        with contextlib.suppress(httpx2.TransportError):  # the socket's file exists a moment before the socket listens
            return daemon.http.get("/v1/status").is_success
        return False

    until(listens, "it listens", pause_s=0.002)
    daemon.add(*({"id": f"n{n}", "text": f"Note {n} is about the glacier of Yngvild {n}."} for n in range(500)))
    status = daemon.wait()
    assert status["documents"] == 500
    assert daemon.events("inbox_recovered") == []
    assert not list((daemon.store / "inbox").iterdir())
    daemon.add({"id": "later", "text": "Zacharias Holm came later."})
    assert daemon.wait()["documents"] == 501


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_restart_during_an_add_request_keeps_later_versions_and_removals(hippo: Hippo, end: str) -> None:
    """Its documents are in one file until the last one is done; completed documents are not recovered again."""
    daemon = hippo().start()
    uris = {"added:a"}

    def replace_within_a_request(paragraphs: int) -> bool:
        """Returns whether a new version and a removal are committed while the request with the first version is in progress."""
        log = "\n\n".join(
            f"Paragraph {n} of the log of station Yngvild, with wind {n} and snow." for n in range(paragraphs)
        )
        uris.update(
            daemon.add(
                {"id": "a", "text": "Version one was written by Zacharias Holm."},
                {"id": "b", "text": "Beta was written by Odile Brandt."},
                *({"id": f"{paragraphs}-{n}", "text": f"{n}\n\n{log}"} for n in range(3)),
            )
        )
        until(lambda: "Version one" in (found := "".join(daemon.export())) and "Beta was" in found, "both are found")
        daemon.add({"id": "a", "text": "Version two was written by Zacharias Holm."})
        daemon.ask("DELETE", "/v1/documents", params={"uri": "added:b"})
        until(lambda: "Version two" in "".join(daemon.export()), "the second version is found")
        return int(daemon.status()["pending"]) > 0

    assert any(map(replace_within_a_request, (2_000, 8_000, 32_000, 128_000))), "no request was long enough"
    if end == "kill":
        daemon.kill()
    else:
        assert daemon.stop() == 0
    daemon.start().wait()
    assert set(daemon.documents(prefix="added:")) == uris - {"added:b"}
    found = "".join(daemon.export())
    assert "Version two" in found
    assert "Version one" not in found
    assert "Beta was" not in found


def test_pending_file_that_was_removed_stays_removed_until_it_changes(hippo: Hippo) -> None:
    daemon = hippo()
    write_many(daemon)
    daemon.write("zz/secret.txt", "Zacharias Holm keeps the secret of the tower.")
    daemon.start()
    uri = daemon.uri("zz/secret.txt")
    until(lambda: daemon.documents(state="pending").get(uri), "it waits", pause_s=0.005)
    daemon.ask("DELETE", "/v1/documents", params={"uri": uri})
    daemon.wait()
    assert uri not in daemon.documents()
    daemon.restart().wait()
    assert uri not in daemon.documents()
    daemon.write("zz/secret.txt", "Zacharias Holm told it.")
    until(lambda: uri in daemon.documents(), "it is found once it changes")


def test_latest_version_of_an_added_document_survives_a_kill(hippo: Hippo) -> None:
    daemon = hippo().start()
    for version in range(5):
        daemon.add({"id": "same", "text": f"Version {version} was written by Zacharias Holm."})
    daemon.kill()
    daemon.start().wait()
    [passage] = texts(daemon.export(), "passage")
    assert passage["text"].startswith("Version 4")


def test_acknowledged_removal_survives_a_kill(hippo: Hippo) -> None:
    daemon = hippo().start()
    [uri] = daemon.add({"id": "gone", "text": "Alva Rosen keeps the key of the vault."})
    daemon.wait()
    assert daemon.ctl_json("rm", uri) == {"removed": 1, "missing": 0}
    daemon.kill()
    daemon.start().wait()
    assert not daemon.documents()
    assert daemon.export() == []


def test_partly_written_table_is_restored_to_the_last_commit(hippo: Hippo) -> None:
    daemon = hippo()
    daemon.write("a.txt", "Birger Lax wrote the harbour log of Kessel.")
    daemon.start().wait()
    exported = daemon.export()
    assert daemon.ctl("backup", str(daemon.home / "backup")).code == 0  # writes the log into the tables
    assert daemon.stop() == 0
    # As after a crash between a flush's appends and its mark.
    table = lancedb.connect(daemon.store).open_table("documents")
    assert table.count_rows() == 1
    table.add(table.to_arrow())
    daemon.start().wait()
    assert daemon.export() == exported
    assert list(daemon.documents()) == [daemon.uri("a.txt")]
    assert daemon.events("store_opened")[-1]["recovered"] == ["documents"]


def test_parser_processes_end_when_the_daemon_is_killed(hippo: Hippo) -> None:
    daemon = hippo()
    daemon.write("a.txt", "Cecilie Storm sails the Ondine.")
    daemon.start().wait()
    children = daemon.children()
    assert children
    daemon.kill()
    until(lambda: not any(runs(child) for child in children), "its children have ended")


def runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
