"""The documents of one request obey the inbox's limits; of equal ids the last one counts."""

import base64
import contextlib
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from tests.e2e.real_hippod import Daemon, until

pytestmark = pytest.mark.daemon

DOCUMENTS, BYTES = 50, 20_000


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Yields a daemon with a small inbox."""
    limits = {"inbox_documents": DOCUMENTS, "inbox_bytes": BYTES}
    with Daemon(tmp_path_factory.mktemp("narrow"), daemon=limits, parsing={"workers": 1}) as daemon:
        yield daemon
    print(f"--- {daemon.home} logged:\n{daemon.log_text()[-6000:]}")


@contextlib.contextmanager
def parsers_at_rest(daemon: Daemon) -> Iterator[None]:
    """Suspends all parsers, also those that start later."""
    daemon.add({"id": "first", "text": "It starts the parser."})
    daemon.wait()
    with daemon.reading_paused():
        yield


@contextlib.contextmanager
def places_taken(daemon: Daemon) -> Iterator[None]:
    """Occupies the ordinary place and the one for fresh documents with suspended parsers of added documents."""
    with parsers_at_rest(daemon):
        daemon.add({"id": "before", "text": "The ordinary place."})
        daemon.add({"id": "before too", "text": "The place for fresh documents."})
        until(lambda: len(daemon.children()) >= 2, "another parser starts")
        yield


@pytest.mark.parametrize(
    ("count", "text", "key"),
    [(DOCUMENTS + 1, "Small.", "inbox_documents"), (2, "Large. " * 2_000, "inbox_bytes")],
    ids=["documents", "bytes"],
)
@pytest.mark.parametrize("lines", [False, True], ids=["json", "lines"])
def test_request_larger_than_the_inbox_is_refused_with_advice_to_split_it(
    narrow: Daemon, count: int, text: str, key: str, lines: bool
) -> None:
    name = f"{key}-{lines}-"
    documents = [{"id": f"{name}{n}", "text": text} for n in range(count)]
    if lines:
        body = "".join(json.dumps(document) + "\n" for document in documents)
        refused = narrow.http.post("/v1/documents", content=body, headers={"Content-Type": "application/x-ndjson"})
    else:
        refused = narrow.http.post("/v1/documents", json={"documents": documents})
    assert refused.status_code == 413
    assert key in refused.json()["detail"]
    assert "send them in several requests" in refused.json()["detail"]
    narrow.wait()
    assert not any(uri.startswith(f"added:{name}") for uri in narrow.documents())
    assert len(narrow.add(*documents[: count - 1])) == count - 1
    narrow.wait()


def test_an_import_of_more_than_the_inbox_holds_is_taken_in_parts(narrow: Daemon, tmp_path: Path) -> None:
    docs = [
        {"passage": f"Isle {n}\nCharted by Edda {n}.", "extracted_triples": [["a", "b", str(n)]]} for n in range(300)
    ]
    file = tmp_path / "openie.json"
    file.write_text(json.dumps({"docs": docs, "avg_ent_chars": float("nan")}))
    assert narrow.ctl_json("import", file) == {"passages": 300, "triples": 300, "skipped": 0}
    assert narrow.metric("hippod_queue_depth", queue="inbox") == 0


def fail(daemon: Daemon, id: str) -> None:
    """Adds a document that cannot be parsed, and is kept for a retry."""
    daemon.add({"id": id, "filename": "damaged.pdf", "content_base64": base64.b64encode(b"no PDF").decode()})
    daemon.wait()
    assert daemon.documents()[f"added:{id}"]["state"] == "failed"


def test_aborted_imports_free_the_inbox_and_their_documents_are_indexed(narrow: Daemon) -> None:
    docs = [{"passage": f"Reef {n}\nSounded by {n}.", "extracted_triples": [["a", "b", "c"]]} for n in range(300)]

    def imported() -> set[str]:
        """Returns the imported URIs. Waiting documents have no title yet."""
        return {uri for uri in narrow.documents() if uri.startswith("added:import/")}

    fail(narrow, "damaged")
    before = imported()
    with parsers_at_rest(narrow):
        # It takes the place of its source, to which imports belong too, and no room in the inbox.
        assert narrow.ctl_json("retry", "added:damaged") == {"requeued": 1}
        for _ in range(3):
            with pytest.raises(httpx2.ReadTimeout):
                narrow.http.post("/v1/import", json={"docs": docs}, timeout=2)
            until(lambda: narrow.metric("hippod_http_under_way", kind="imports") == 0, "the import is given up")
        handed_in = imported() - before
    narrow.wait()
    narrow.ctl("rm", "added:damaged")
    assert len(handed_in) == DOCUMENTS
    assert imported() - before == handed_in
    assert {narrow.documents()[uri]["state"] for uri in handed_in} == {"indexed"}
    assert list((narrow.store / "inbox").iterdir()) == []
    assert narrow.ask("POST", "/v1/import", json={"docs": docs})["passages"] == 300


def test_truncated_import_file_is_refused_completely(narrow: Daemon, tmp_path: Path) -> None:
    docs = [{"passage": f"Broken {n}\nNever charted {n}."} for n in range(300)]
    file = tmp_path / "openie.json"
    file.write_text(json.dumps({"docs": docs})[:-3])
    ran = narrow.ctl("import", file)
    assert ran.code == 1
    assert (
        "The body is not a HippoRAG OpenIE results file: it is not valid JSON (Expecting ',' delimiter: "
        in " ".join(ran.err.split())
    )
    narrow.wait()
    assert not [passage for passage in narrow.query("Never charted 7", "bm25") if "Never charted" in passage["text"]]


def test_last_document_of_equal_ids_in_a_request_applies(narrow: Daemon) -> None:
    with parsers_at_rest(narrow):
        answer = narrow.add(
            *({"id": "same", "text": f"Text {n}."} for n in range(5)), {"id": "other", "text": "Other."}
        )
        assert answer == ["added:same"] * 5 + ["added:other"]
        assert narrow.metric("hippod_queue_depth", queue="inbox") == 2
    narrow.wait()
    assert [passage["text"] for passage in narrow.ctl_json("show", "added:same")["passages"]] == ["Text 4."]
    assert narrow.metric("hippod_queue_depth", queue="inbox") == 0
    assert list((narrow.store / "inbox").iterdir()) == []


def test_document_deleted_and_added_again_in_one_request_is_present(narrow: Daemon) -> None:
    narrow.add({"id": "back", "text": "Before."}, {"id": "gone", "text": "Before."})
    narrow.add(
        {"id": "back", "deleted": True},
        {"id": "gone", "text": "Between."},
        {"id": "back", "text": "After."},
        {"id": "gone", "deleted": True},
    )
    narrow.wait()
    documents = narrow.documents()
    assert "added:back" in documents
    assert "added:gone" not in documents


def test_removal_of_100_000_uris_in_one_request_succeeds(narrow: Daemon) -> None:
    narrow.add({"id": "often", "text": "Named often."})
    answer = narrow.ask("DELETE", "/v1/documents", json={"uris": ["added:often"] * 100_000 + ["added:never"]})
    assert (answer["removed"], answer["missing_uris"]) == (1, ["added:never"])


@pytest.mark.parametrize("begun", [True, False], ids=["being read", "waiting"])
def test_retry_does_not_replace_an_accepted_correction(narrow: Daemon, begun: bool) -> None:
    fail(narrow, "corrected")
    with parsers_at_rest(narrow) if begun else places_taken(narrow):
        narrow.add({"id": "corrected", "text": "What it should have been."})
        assert narrow.ctl_json("retry", "added:corrected") == {"requeued": 0}
    narrow.wait()
    assert [passage["text"] for passage in narrow.ctl_json("show", "added:corrected")["passages"]] == [
        "What it should have been."
    ]


def test_retry_does_not_replace_a_waiting_removal(narrow: Daemon) -> None:
    fail(narrow, "unwanted")
    with ThreadPoolExecutor(1) as pool:
        with places_taken(narrow):
            removal = pool.submit(narrow.ask, "DELETE", "/v1/documents", json={"uris": ["added:unwanted"]})
            until(lambda: narrow.documents()["added:unwanted"]["state"] == "pending", "the removal waits")
            assert narrow.ctl_json("retry") == {"requeued": 0}
        assert removal.result()["removed"] == 1
    narrow.wait()
    assert "added:unwanted" not in narrow.documents()


@pytest.mark.parametrize(
    ("gone", "left"), [(("#1", "#2"), {"#3", "#4"}), (("#4", "#2", "#1"), {"#3"}), (("", "#1"), set())]
)
def test_lines_of_one_file_are_removed_together(narrow: Daemon, gone: tuple[str, ...], left: set[str]) -> None:
    lines = "".join(json.dumps({"id": str(n), "text": f"Signed by {n}."}) + "\n" for n in range(1, 5))
    uri = narrow.write(f"together{len(left)}.jsonl", lines)
    narrow.wait()
    assert narrow.ctl_json("rm", *(uri + line for line in gone))["removed"] == len(gone)
    assert set(narrow.documents(prefix=uri)) == {uri + line for line in left}
