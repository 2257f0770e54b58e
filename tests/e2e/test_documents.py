"""Added documents, and JSON lines in the folder: each line is a separate document."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from consumers.json_documents import read_json_document
from consumers.records.record import SourcePosition
from consumers.records.writer import write_file
from consumers.splitting import SplitSettings
from daemon.contract.http.routes import document_path
from daemon.fleet.record_maker import PositionedDocument, RecordMaker
from memory.encoder import make_encoder
from tests.consumers.parsing.samples import flowed, pdf
from tests.daemon.pipeline.test_records import Rules as InProcessRules
from tests.e2e.conftest import Hippo
from tests.e2e.real_hippod import Daemon, Json, hippod, texts, until

pytestmark = pytest.mark.daemon

LINES = 300


def passage_texts(daemon: Daemon) -> list[str]:
    return [passage["text"] for passage in texts(daemon.export(), "passage")]


def first(number: int) -> str:
    return f"Entry {number} of the station book was signed by Ottilie Brand-{number}."


def lines(**changed: str | None) -> str:
    """Returns a book of 300 documents; `n7="…"` replaces line 7, `n7=None` omits it."""
    entries: dict[str, str | None] = {
        f"n{n}": json.dumps({"id": f"n{n}", "title": "Station book", "text": first(n)}) for n in range(LINES)
    }
    entries |= changed
    return "".join(f"{line}\n" for line in entries.values() if line is not None)


def test_each_line_of_a_jsonl_file_is_a_document_that_changes_alone(live: Daemon) -> None:
    uri = live.write("book.jsonl", lines())
    live.wait()
    documents = live.documents(prefix=uri)
    assert set(documents) == {f"{uri}#n{n}" for n in range(LINES)}
    assert {document["state"] for document in documents.values()} == {"indexed"}
    read = live.metric("hippod_passages_total")

    edited = json.dumps({"id": "n7", "title": "Station book", "text": "Entry 7 was rewritten by Perpetua Gray."})
    live.write("book.jsonl", lines(n7=edited, n8=None, n9="{broken"))
    until(lambda: "Entry 7 was rewritten by Perpetua Gray." in passage_texts(live), "the edited line is there")
    live.wait()
    after = live.documents(prefix=uri)
    known = {f"{uri}#n{n}" for n in range(LINES) if n not in (8, 9)}
    assert known < set(after)
    [broken] = set(after) - known
    assert after[broken]["state"] == "failed"
    assert "not JSON" in after[broken]["error"]
    held = passage_texts(live)
    assert not any(first(n) in held for n in (7, 8, 9))
    assert all(first(n) in held for n in range(LINES) if n not in (7, 8, 9))
    # Only the edited line was indexed; the others were not even written again.
    assert live.metric("hippod_passages_total") - read == 1
    assert all(after[name] == documents[name] for name in known - {f"{uri}#n7"})

    live.write("book.jsonl", lines())
    until(lambda: broken not in live.documents(prefix=uri), "the broken line is forgotten")
    live.wait()
    assert set(live.documents(prefix=uri)) == set(documents)
    moved = live.uri("volume.jsonl")
    (live.drive / "book.jsonl").rename(live.drive / "volume.jsonl")
    until(lambda: len(live.documents(prefix=f"{moved}#")) == LINES, "every line has moved")
    until(lambda: not live.documents(prefix=uri), "none is left under the old name")
    (live.drive / "volume.jsonl").unlink()
    until(lambda: not live.documents(prefix=moved), "every line is gone")
    live.wait()
    assert not any("station book" in text for text in passage_texts(live))


def test_several_long_files_are_read_at_once(live: Daemon) -> None:
    # Each has far more passages than are passed on at a time: parsers must not wait for each other.
    uris = []
    for name in ("east", "west", "north", "south"):
        paragraphs = [f"Mile {n} of the {name} road is kept by the family Rode-{name}-{n}. " * 8 for n in range(500)]
        uris.append(live.write(f"{name}.txt", "\n\n".join(paragraphs)))
    live.wait()
    documents = live.documents(state="indexed")
    assert all(documents[uri]["passages"] > 100 for uri in uris)
    for name in ("east", "west", "north", "south"):
        (live.drive / f"{name}.txt").unlink()
    until(lambda: not any(uri in live.documents() for uri in uris), "they are gone")


def test_given_triples_are_used_as_they_are_and_no_extractor_is_called(live: Daemon) -> None:
    live.wait()
    extracted = live.metric("hippod_stage_seconds_count", stage="extract")
    document = {
        "id": "orders/1",
        "title": "Orders",
        "text": "Professor Malachi Strand became head of the Institute of Tides in 1931.",
        "triples": [["Malachi Strand", "led", "Institute of Tides"]],
    }
    [uri] = live.add(document)
    live.wait()
    assert uri == "added:orders/1"
    shown = live.ctl_json("show", uri)
    assert shown["triples"] == [{"subject": "malachi strand", "predicate": "led", "object": "institute of tides"}]
    assert sorted(shown["phrases"]) == ["institute of tides", "malachi strand"]
    passage = live.ctl_json("show", shown["passages"][0]["id"])
    assert passage["extractor"] is None
    assert live.metric("hippod_stage_seconds_count", stage="extract") == extracted


def test_given_triples_of_a_long_text_go_to_the_passage_they_fit(live: Daemon) -> None:
    parts = [f"Chapter {n} tells how {who} crossed the {what}. " * 30 for n, (who, what) in enumerate(
        [("Ansgar Flood", "salt marsh"), ("Birgitta Moor", "ice bridge"), ("Corvin Dale", "glass desert")]
    )]  # fmt: skip
    triples = [["Birgitta Moor", "crossed", "ice bridge"], ["Corvin Dale", "crossed", "glass desert"]]
    uri = live.write("travels.json", json.dumps({"id": "t", "text": "\n\n".join(parts), "triples": triples}))
    live.wait()
    [document] = [name for name in live.documents(state="indexed") if name.startswith(uri)]
    assert len(live.ctl_json("show", document)["triples"]) == 2
    for subject, predicate, object_ in triples:
        shown = live.ctl_json("show", json.dumps([subject, predicate, object_]))
        assert shown["passages"]
        assert all(subject in passage["text"] for passage in shown["passages"])


def test_a_document_with_the_same_id_replaces_the_one_before(live: Daemon) -> None:
    live.add({"id": "motto", "text": "The old motto was Festina lente."})
    live.wait()
    live.add({"id": "motto", "text": "The new motto is Carpe noctem."})
    live.wait()
    held = passage_texts(live)
    assert "The new motto is Carpe noctem." in held
    assert "The old motto was Festina lente." not in held
    live.add({"id": "motto", "deleted": True})
    live.wait()
    assert "added:motto" not in live.documents()


def test_metadata_and_title_of_a_json_document_are_kept(live: Daemon) -> None:
    document = {
        "id": "m1",
        "title": "The Gull",
        "text": "The gull ferry belongs to Dorothea Wick.",
        "url": "https://example.org/gull",
        "published_at": "2021-05-04T03:02:01Z",
        "shelf": {"row": 3},
    }
    live.add(document)
    live.wait()
    shown = live.ctl_json("show", "added:m1")
    assert shown["document"]["title"] == "The Gull"
    for key in ("url", "published_at", "shelf"):
        assert shown["metadata"][key] == document[key]


def test_pages_of_the_document_list_add_up_to_the_complete_list(live: Daemon) -> None:
    live.add(*({"id": f"page/{n:02}", "text": f"Page {n} of the station book." if n % 3 else " "} for n in range(30)))
    live.wait()

    def listed(**parameters: str | int) -> Json:
        found: Json = live.http.get("/v1/documents", params=parameters).json()
        return found

    def paged(**parameters: str | int) -> list[str]:
        found, page = [], listed(limit=7, **parameters)
        while True:
            found += [each["uri"] for each in page["documents"]]
            if page.get("next") is None:
                return found
            assert len(page["documents"]) == 7 and page["next"] == found[-1]
            page = listed(limit=7, **parameters | {"after": page["next"]})

    everything = {each["uri"]: each["state"] for each in listed()["documents"]}
    pages = [f"added:page/{n:02}" for n in range(30)]
    assert list(everything) == sorted(everything) and set(pages) <= everything.keys()
    assert paged() == list(everything)
    assert paged(prefix="added:page/") == pages
    assert paged(prefix="added:page/", after="added:page/20") == pages[21:]
    assert paged(prefix="added:page/", after="added:z") == []
    states = {everything[uri] for uri in pages}
    assert len(states) == 2
    for state in states:
        assert paged(state=state) == [uri for uri, its in everything.items() if its == state]


def test_a_hipporag_corpus_is_added_as_documents(live: Daemon) -> None:
    corpus = [{"idx": n, "title": f"Isle {n}", "text": f"Isle {n} was charted by Edda Lynn-{n}."} for n in range(5)]
    file = live.home / "corpus.json"
    file.write_text(json.dumps(corpus))
    answer = live.ctl_json("add", file)
    assert answer == {"accepted": 5, "documents": [f"added:{n}" for n in range(5)]}
    status = live.ctl_json("wait")
    assert status["pending"] == 0
    [best] = live.query("Who charted Isle 3? Edda Lynn-3", "bm25", k=1)
    assert (best["document"], best["title"]) == ("added:3", "Isle 3")


def test_a_removed_document_stays_away_after_a_restart(hippo: Hippo) -> None:
    daemon = hippo().start()
    daemon.add({"id": "a", "text": "Frieda Lund owns the mill."}, {"id": "b", "text": "Georg Lund owns the weir."})
    daemon.wait()
    assert daemon.ctl_json("rm", "added:a", "added:never") == {
        "removed": 1,
        "missing": 1,
        "missing_uris": ["added:never"],
    }
    daemon.restart()
    assert list(daemon.documents()) == ["added:b"]


def test_query_with_a_position_lost_by_a_restore_is_refused(hippo: Hippo, tmp_path: Path) -> None:
    daemon = hippo().start()

    def ask(position: Json) -> int:
        body = {"query": "Who owns the mill?", "after": position, "after_timeout_s": 0}
        return daemon.http.post("/v1/query", json=body).status_code

    def add(**document: str) -> Json:
        position: Json = daemon.ask("POST", "/v1/documents", json={"documents": [document]})["position"]
        daemon.wait()
        return position

    kept = add(id="a", text="Frieda Lund owns the mill.")
    assert daemon.ctl("backup", tmp_path / "backup").code == 0
    unchanged = add(id="a", text="Frieda Lund owns the mill.")
    waiting = {"documents": [{"id": "b", "text": "Georg Lund owns the weir."}]}
    removed = daemon.ask("POST", "/v1/documents", json=waiting)["position"]
    daemon.ctl("rm", "added:b")
    daemon.wait()
    assert [ask(each) for each in (kept, unchanged, removed)] == [200, 200, 200]
    daemon.restart()
    assert [ask(each) for each in (kept, unchanged, removed)] == [200, 200, 200]
    daemon.stop()
    assert hippod(daemon.home, "--config", str(daemon.config), "--restore", str(tmp_path / "backup")).code == 0
    daemon.start()
    assert [ask(each) for each in (kept, unchanged, removed)] == [200, 409, 409]


def test_a_followed_file_that_was_removed_stays_away_until_it_changes(hippo: Hippo) -> None:
    daemon = hippo()
    uri = daemon.write("kept.txt", "Henning Torp keeps bees on the roof.")
    other = daemon.write("other.txt", "Inga Torp keeps hens in the yard.")
    daemon.start().wait()
    assert daemon.ctl_json("rm", daemon.drive / "kept.txt") == {"removed": 1, "missing": 0}
    daemon.wait()
    assert list(daemon.documents()) == [other]
    daemon.restart().wait()
    assert list(daemon.documents()) == [other]
    daemon.write("kept.txt", "Henning Torp keeps wasps on the roof.")
    until(lambda: uri in daemon.documents(state="indexed"), "it is back after a change")


def test_a_failed_document_is_listed_with_its_reason_and_each_try_is_counted(live: Daemon) -> None:
    content = pdf([flowed(["The ledger of Ingeborg Foss lists nine ships. " * 20])])
    uri = live.write("ledger.pdf", content[: len(content) // 2])
    until(lambda: uri in live.documents(state="failed"), "it is listed as failed")
    entry = live.documents(state="failed")[uri]
    assert (entry["attempts"], entry["passages"]) == (1, 0)
    assert "copy or download it again" in entry["error"]
    for attempt in (2, 3):
        assert live.ctl_json("retry", uri) == {"requeued": 1}
        live.wait()
        assert live.documents(state="failed")[uri]["attempts"] == attempt
    never = live.ctl("--json", "retry", "added:never")
    assert (never.code, never.json) == (1, {"requeued": 0, "missing_uris": ["added:never"]})
    # Once repaired, it is indexed like any other.
    live.write("ledger.pdf", content)
    until(lambda: uri in live.documents(state="indexed"), "it is indexed")
    entry = live.documents(prefix=uri)[uri]
    assert (entry["error"], entry["attempts"]) == (None, 0)
    assert live.query("nine ships of Ingeborg Foss", "bm25", k=1)[0]["location"]["page"] == 1


def test_invalid_documents_are_rejected_with_their_line_and_valid_ones_added(live: Daemon) -> None:
    given: list[Any] = [{"id": "ok1", "text": "Helmer Bly rings the bell."}, {"id": "no text"}, ["list"]]
    given.append({"id": "ok2", "text": "Ingrid Bly repairs it."})
    ran = live.ctl("--json", "add", "-", stdin="".join(json.dumps(each) + "\n" for each in given) + "{broken\n")
    answer: Json = ran.json
    assert ran.code == 1
    assert answer["documents"] == ["added:ok1", "added:ok2"]
    assert [each["where"] for each in answer["rejected"]] == ["stdin:2", "stdin:3", "stdin:5"]
    live.wait()
    assert {"added:ok1", "added:ok2"} <= set(live.documents(state="indexed"))


def test_retried_documents_count_as_pending_instead_of_failed(live: Daemon) -> None:
    damaged = [live.write(f"damaged-{n}.pdf", b"%PDF-1.4 cut") for n in range(3)]
    live.wait()

    def shown(uri: str) -> Json:
        return live.ask("GET", document_path(uri))

    before = live.status()
    assert before["failed"] == len(live.documents(state="failed")) >= 3
    assert datetime.fromisoformat(shown(damaged[0])["next_try_at"]) > datetime.now(UTC)
    with live.reading_paused():
        assert live.ask("POST", "/v1/retry", json={"uris": damaged[:2]})["requeued"] == 2
        now = live.status()
        assert (now["pending"], now["failed"]) == (2, before["failed"] - 2)
        assert now["failed"] == len(live.documents(state="failed"))
        assert set(live.documents(state="pending")) == set(damaged[:2])
        entry = shown(damaged[0])
        assert (entry["document"]["state"], entry["next_try_at"]) == ("pending", None)
        assert shown(damaged[2])["document"]["state"] == "failed"
    live.wait()
    assert live.status()["failed"] == before["failed"]


def test_retry_lists_missing_documents_and_documents_that_have_not_failed(live: Daemon) -> None:
    lines = live.write("broken.jsonl", '{"id": "a", "text": "Ada Vell lives in Tollmin."}\n{broken\n')
    live.wait()
    asked = {"uris": [lines, f"{lines}#a", "added:nosuch"]}
    assert live.ask("POST", "/v1/retry", json=asked) == {
        "requeued": 1,
        "missing_uris": ["added:nosuch"],
        "not_failed_uris": [f"{lines}#a"],
    }


def test_answer_notes_the_number_of_pending_documents(live: Daemon) -> None:
    live.write("east.md", "The east road is kept by Perpetua Gray.\n")
    live.wait()
    body = {"query": "Who keeps the east road?", "mode": "dense"}
    before = live.ask("POST", "/v1/query", json=body)
    assert "note" not in before and "weak" not in before  # the encoder `hash` was not measured
    assert all(-1.0 <= passage["cosine"] <= 1.0 for passage in before["passages"])
    with live.reading_paused():
        uris = [live.write(f"unread-{n}.md", f"Keeper {n} keeps the north road.\n") for n in range(3)]
        until(lambda: set(uris) <= set(live.documents(state="pending")), "the files are noticed")
        assert live.ask("POST", "/v1/query", json=body)["note"] == "3 documents are still being indexed"
        assert "note" not in live.ask("POST", "/v1/query", json={**body, "as_of": before["commit"]})
        [index] = live.status()["progress"]
        assert (index["task"], index["unit"], index["done"], index["total"]) == ("index", "documents", 0, 3)
        assert "  index      0 of 3 documents (0 %)" in live.ctl("status").out
        assert "note  3 documents are still being indexed" in live.ctl("query", "Who keeps the east road?").out
    live.wait()
    assert "note" not in live.ask("POST", "/v1/query", json=body)
    assert "progress" not in live.status()


def test_import_of_a_record_folder_keeps_the_newest_record_of_each_document(live: Daemon, tmp_path: Path) -> None:
    def read(number: int, text: str, offset: int) -> PositionedDocument:
        value = {"id": f"a{number}", "title": f"Letter {number}", "text": text}
        document = read_json_document(value, "kafka://letters/", None, SplitSettings(256, 32))
        return PositionedDocument(document, SourcePosition("kafka:letters/0", offset, offset))

    newer = [read(1, "Ottilie Brand wrote to Perpetua Gray.", 9), read(2, "Perpetua Gray lives in Turin.", 8)]
    older = [read(1, "Ottilie Brand wrote to nobody.", 3), read(3, "Ada Lovelace lives in London.", 4)]
    maker = RecordMaker(InProcessRules(), make_encoder("hash", "64", 64, "cpu"))
    for name, documents in (("a.parquet", newer), ("b.parquet", older)):
        write_file(tmp_path / name, asyncio.run(maker.make(documents)))
    answer = live.ctl_json("import", tmp_path)
    assert (answer["records"], answer["skipped"]) == (4, 0)
    said = ("Ottilie Brand wrote", "lives in London", "lives in Turin")
    found = [text for text in passage_texts(live) if any(each in text for each in said)]
    assert sorted(text.partition("\n")[2] or text for text in found) == [
        "Ada Lovelace lives in London.",
        "Ottilie Brand wrote to Perpetua Gray.",
        "Perpetua Gray lives in Turin.",
    ]
