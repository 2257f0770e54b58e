"""The memory mirrors a followed folder: every answer reflects saved, edited, deleted and moved files."""

import gzip
import json
import os
import shutil
from functools import partial

import pytest

from tests.e2e.conftest import Hippo
from tests.e2e.real_hippod import Daemon, Json, texts, until

pytestmark = pytest.mark.daemon


def holding(daemon: Daemon, words: str, mode: str = "bm25") -> list[Json]:
    """Returns the found passages whose text contains `words`, among all passages."""
    return [passage for passage in daemon.query(words, mode, k=1000) if words in passage["text"]]


def is_indexed(daemon: Daemon, uri: str) -> bool:
    return uri in daemon.documents(state="indexed")


def counts(daemon: Daemon) -> tuple[int, ...]:
    status = daemon.status()
    return tuple(status[name] for name in ("documents", "passages", "phrases", "triples")) + tuple(
        status["edges"].values()
    )


def read_so_far(daemon: Daemon) -> tuple[float, float]:
    """Returns the number of extractor calls, and the number of passages indexed for the first time."""
    return daemon.metric("hippod_stage_seconds_count", stage="extract"), daemon.metric("hippod_passages_total")


def test_a_saved_file_becomes_retrievable(live: Daemon) -> None:
    uri = live.write("saved.txt", "Aurelia Quist invented the tidal loom in Varnhem.")
    found = until(lambda: holding(live, "tidal loom"), "the file is found")
    assert [passage["document"] for passage in found] == [uri]
    assert found[0]["location"] == {"line": 1}


def test_an_edited_file_answers_with_its_new_text_only(live: Daemon) -> None:
    live.write("edited.md", "# Keeper\n\nBenno Falk keeps the obsidian lighthouse.\n")
    until(lambda: holding(live, "obsidian lighthouse"), "the first text is found")
    uri = live.write("edited.md", "# Keeper\n\nCosima Renn keeps the basalt lighthouse.\n")
    until(lambda: holding(live, "basalt lighthouse"), "the new text is found")
    for mode in ("hipporag2", "dense", "bm25"):
        assert not holding(live, "obsidian lighthouse", mode)
    assert not any("obsidian" in line or "benno falk" in line for line in live.export())
    assert live.documents(prefix=uri)[uri]["passages"] == 1


def test_a_file_saved_by_an_editor_that_renames_is_an_edit(live: Daemon) -> None:
    live.write("renamed.txt", "The draft says granite.")
    until(lambda: holding(live, "draft says granite"), "the first text is found")
    live.write(".renamed.txt.swp", "The draft says marble.")
    os.replace(live.drive / ".renamed.txt.swp", live.drive / "renamed.txt")
    until(lambda: holding(live, "draft says marble"), "the new text is found")
    assert not holding(live, "draft says granite")
    assert list(live.documents(prefix=live.uri("renamed"))) == [live.uri("renamed.txt")]


def test_deleted_file_is_removed_from_answers_counts_and_export(live: Daemon) -> None:
    live.wait()
    before, exported = counts(live), live.export()
    uri = live.write("deleted.txt", "Dagmar Ohlsen painted the ceiling of Sorrel Hall in 1888.")
    until(lambda: holding(live, "Sorrel Hall"), "the file is found")
    (live.drive / "deleted.txt").unlink()
    until(lambda: uri not in live.documents(), "the file is not listed any more")
    for mode in ("hipporag2", "dense", "bm25"):
        assert not holding(live, "Sorrel Hall", mode)
    assert counts(live) == before
    assert live.export() == exported
    assert live.ctl("show", uri).code == 1


def test_last_of_two_lines_with_the_same_id_applies_at_every_parse(live: Daemon) -> None:
    first, second = "Vera Nyberg carved the ivory sextant.", "Vera Nyberg sold the ivory sextant."
    lines = "".join(json.dumps({"id": "1", "text": text}) + "\n" for text in (first, second))
    uri = live.write("twice.jsonl", lines)
    until(lambda: holding(live, second), "the last line is found")
    for again in ("2", "3"):
        other = json.dumps({"id": again, "text": f"Line {again} is another."}) + "\n"
        live.write("twice.jsonl", lines + other)
        until(partial(is_indexed, live, f"{uri}#{again}"), "the file was read again")
        assert holding(live, second)
        assert not holding(live, first)


def test_a_moved_file_keeps_its_passages(live: Daemon) -> None:
    text = "Eskil Brandt tuned the organ of Marrow Chapel. He was born in Tarn."
    old = live.write("moved-from.txt", text)
    [passage] = until(lambda: holding(live, "Marrow Chapel"), "the file is found")
    read, before = read_so_far(live), counts(live)
    (live.drive / "elsewhere").mkdir()
    (live.drive / "moved-from.txt").rename(live.drive / "elsewhere" / "moved-to.txt")
    new = live.uri("elsewhere/moved-to.txt")
    until(lambda: new in live.documents(state="indexed") and old not in live.documents(), "it is known by its new name")
    assert [(p["id"], p["document"]) for p in holding(live, "Marrow Chapel")] == [(passage["id"], new)]
    assert (read_so_far(live), counts(live)) == (read, before)


def test_file_renamed_to_another_format_is_parsed_as_that_format(live: Daemon) -> None:
    live.write("plain.txt", "# Harbour\n\nIsidor Krog dredged the harbour of Tarn.\n")
    until(lambda: holding(live, "dredged the harbour"), "it is found as text")
    (live.drive / "plain.txt").rename(live.drive / "plain.md")
    uri = live.uri("plain.md")
    until(lambda: live.documents(state="indexed", prefix=uri).get(uri, {}).get("title") == "Harbour", "it is Markdown")
    [passage] = holding(live, "dredged the harbour")
    assert (passage["title"], passage["document"]) == ("Harbour", uri)
    assert live.uri("plain.txt") not in live.documents()


def test_a_failed_file_that_is_renamed_is_tried_again(live: Daemon) -> None:
    # As the reason advises: "or rename it".
    wrong = live.write("report.pdf", "Jadwiga Holt wrote this report as plain text.")
    until(lambda: wrong in live.documents(state="failed"), "it has failed")
    (live.drive / "report.pdf").rename(live.drive / "report.txt")
    until(lambda: live.uri("report.txt") in live.documents(state="indexed"), "it is indexed under the right name")
    until(lambda: wrong not in live.documents(), "the wrong name is forgotten")


def test_a_moved_directory_keeps_all_its_passages(live: Daemon) -> None:
    for number in range(12):
        live.write(f"attic/box/{number}.txt", f"Trunk number {number} holds the letters of Fenna Voss.")
    until(lambda: len(holding(live, "letters of Fenna Voss")) == 12, "all are found")
    read, before, exported = read_so_far(live), counts(live), live.export()
    (live.drive / "attic").rename(live.drive / "cellar")
    until(lambda: len(live.documents(state="indexed", prefix=live.uri("cellar/"))) == 12, "all have moved")
    until(lambda: not live.documents(prefix=live.uri("attic/")), "none is left")
    assert (read_so_far(live), counts(live), live.export()) == (read, before, exported)


LINES = b'{"id": "1", "text": "Karl Weber visited Rome."}\n{"id": "2", "text": "Odile Brandt visited Oslo."}\n'
RENAMED = {
    "the ending within": ("data.txt.gz", "data.jsonl.gz", gzip.compress(LINES)),
    "a packed page": ("page.html.gz", "page.txt.gz", gzip.compress(b"<p>Lars Holm painted <b>Moth Bridge</b>.</p>")),
    "to a name that is skipped": ("deps.json", "package-lock.json", b'{"title": "Deps", "text": "Ines founded Lund."}'),
    "from a name that is skipped": ("pnpm-lock.yaml", "people.yaml", b"name: Sabine Rell\nplace: Oslo\n"),
    "a heading like the name": ("notes.md", "other.md", b"# notes\n\nOdile Brandt founded Project Lantern.\n"),
    "a page's title like the name": (
        "web.html",
        "site.html",
        b"<html><head><title>web</title></head><body><p>Moth Bridge is old.</p></body></html>",
    ),
    "a title of the packed file's name": (
        "plain.md.gz",
        "fancy.md.gz",
        gzip.compress(b"Sabine built the Quill lamp.\n"),
    ),
    "a title of the name": ("bare.txt", "clad.txt", b"Sven Aker built the Tarn mill in Paris.\n"),
    "no ending any more": ("told", "tale", b"Mira Sund told of the heron of Vell.\n"),
}


def test_renamed_files_give_the_documents_of_a_fresh_daemon(hippo: Hippo) -> None:
    daemon = hippo()
    fresh = hippo("fresh", folders=(str(daemon.drive),))
    for old, _, content in RENAMED.values():
        daemon.write(old, content)
    daemon.start().wait()
    for old, new, _ in RENAMED.values():
        (daemon.drive / old).rename(daemon.drive / new)
    old_uris = {daemon.uri(old) for old, _, _ in RENAMED.values()}
    until(lambda: old_uris.isdisjoint(uri.split("#")[0] for uri in daemon.documents()), "the old names are gone")
    daemon.wait()
    fresh.start().wait()
    known = ("state", "title", "passages", "error")
    listed, expected = (
        {uri: {key: entry.get(key) for key in known} for uri, entry in each.documents().items()}
        for each in (daemon, fresh)
    )
    assert listed == expected
    assert daemon.export() == fresh.export()


def test_renamed_file_with_unchanged_format_and_title_is_not_parsed_again(live: Daemon) -> None:
    chart = live.write("chart.md", "# The Sound\n\nYlva Strand drew the shoals of Hollin.\n")
    loose = live.write("loose/untitled.txt", "Arvid Lund sewed the sails of Hollin.")
    until(lambda: {chart, loose} <= set(live.documents(state="indexed")), "both are indexed")
    live.wait()
    with live.reading_paused():
        (live.drive / "chart.md").rename(live.drive / "map.md")
        (live.drive / "loose").rename(live.drive / "bound")
        new = {live.uri("map.md"), live.uri("bound/untitled.txt")}
        until(lambda: new <= set(live.documents(state="indexed")), "both have moved")
        assert {chart, loose}.isdisjoint(live.documents())


def test_renamed_file_is_found_by_its_new_name_before_it_is_parsed_again(hippo: Hippo) -> None:
    daemon = hippo()
    killed = hippo("killed", folders=(str(daemon.drive),))
    old, new = daemon.write("notes.md", "# notes\n\nTyra Vik mends the nets of Sorrel.\n"), daemon.uri("other.md")
    daemon.write("untitled.txt", "Hakon Lie tars the boats of Sorrel.")
    daemon.start().wait()
    read = read_so_far(daemon)
    with daemon.reading_paused():
        (daemon.drive / "notes.md").rename(daemon.drive / "other.md")
        (daemon.drive / "untitled.txt").rename(daemon.drive / "named.txt")
        names = {new, daemon.uri("named.txt")}
        until(
            lambda: {p["document"] for p in holding(daemon, "of Sorrel")} == names, "both are found by their new names"
        )
        assert old not in daemon.documents()
        shutil.copytree(daemon.store, killed.store)
    # Nothing was extracted again, and a crash before the parsing leaves it to the next start.
    for each in (daemon, killed.start()):
        each.wait()
        titles = {uri: entry["title"] for uri, entry in each.documents(state="indexed").items()}
        assert titles == {new: "notes", daemon.uri("named.txt"): "named"}
    assert read_so_far(daemon) == read


def test_copied_file_shares_passages_and_keeps_them_after_the_original_is_deleted(live: Daemon) -> None:
    text = "Gisela Marn mends the astrolabe of Pellan."
    first = live.write("original.txt", text)
    [passage] = until(lambda: holding(live, "astrolabe"), "the original is found")
    read = read_so_far(live)
    second = live.write("copy.txt", text)
    until(lambda: second in live.documents(state="indexed"), "the copy is listed")
    [both] = holding(live, "astrolabe")
    assert (both["id"], {both["document"], *both["also_in"]}) == (passage["id"], {first, second})
    assert read_so_far(live) == read
    (live.drive / "original.txt").unlink()
    until(lambda: first not in live.documents(), "the original is gone")
    assert [p["document"] for p in holding(live, "astrolabe")] == [second]


def test_directory_moved_out_is_removed_and_indexed_again_when_moved_back(live: Daemon) -> None:
    for number in range(5):
        live.write(f"shelf/row/{number}.txt", f"Volume {number} was bound by Hedwig Tann.")
    until(lambda: len(holding(live, "bound by Hedwig Tann")) == 5, "all are found")
    shutil.move(live.drive / "shelf", live.home / "away")
    until(lambda: not live.documents(prefix=live.uri("shelf/")), "none is listed")
    assert not holding(live, "Hedwig Tann")
    shutil.move(live.home / "away", live.drive / "shelf")
    until(lambda: len(holding(live, "bound by Hedwig Tann")) == 5, "all are back")


def test_wait_returns_when_all_that_the_folder_holds_is_committed(live: Daemon) -> None:
    for number in range(40):
        live.write(f"waited/{number}.txt", f"Ferry number {number} left Hollin at dawn.")
    status = live.wait()
    assert status["pending"] == 0
    assert len(live.documents(state="indexed", prefix=live.uri("waited/"))) == 40


def test_editing_one_paragraph_extracts_only_its_passages_again(live: Daemon) -> None:
    names = ("Ilse", "Jorun", "Kaspar", "Linnea", "Matthis", "Nele", "Oskar", "Pernille")
    paragraphs = [
        f"In the year {1700 + n} the keeper {names[n % 8]} Aal-{n} counted {n * 7} geese. " * 6 for n in range(120)
    ]
    uri = live.write("long.txt", "\n\n".join(paragraphs))
    until(lambda: uri in live.documents(state="indexed"), "it is indexed")
    passages = live.documents(prefix=uri)[uri]["passages"]
    _, before = read_so_far(live)
    paragraphs[60] = "This paragraph about the silver sledge was rewritten. " * 6
    live.write("long.txt", "\n\n".join(paragraphs))
    until(lambda: holding(live, "silver sledge"), "the edit is found")
    assert passages > 20
    assert read_so_far(live)[1] - before <= 3


def test_changes_made_while_the_daemon_was_down_are_found_at_the_start(hippo: Hippo) -> None:
    daemon = hippo()
    for name in ("kept", "edited", "deleted", "moved"):
        daemon.write(f"{name}.txt", f"The {name} file speaks of Rurik Sand.")
    for number in range(3):
        daemon.write(f"tree/{number}.txt", f"Elm number {number} was planted by Sunniva Lo.")
    daemon.start().wait()
    kept = daemon.documents()[daemon.uri("kept.txt")]
    assert daemon.stop() == 0

    daemon.write("edited.txt", "The edited file speaks of Torvald Reed.")
    (daemon.drive / "deleted.txt").unlink()
    (daemon.drive / "moved.txt").rename(daemon.drive / "arrived.txt")
    (daemon.drive / "tree").rename(daemon.drive / "grove")
    daemon.write("new.txt", "The new file speaks of Ulla Frey.")
    daemon.start().wait()

    names = {"kept.txt", "edited.txt", "arrived.txt", "new.txt", "grove/0.txt", "grove/1.txt", "grove/2.txt"}
    documents = daemon.documents()
    assert set(documents) == {daemon.uri(name) for name in names}
    assert {document["state"] for document in documents.values()} == {"indexed"}
    assert documents[daemon.uri("kept.txt")] == kept
    assert holding(daemon, "Torvald Reed")
    assert not holding(daemon, "edited file speaks of Rurik")
    # Only the two new texts were extracted; the moved ones were not.
    assert daemon.metric("hippod_passages_total") == 2
    assert len(texts(daemon.export(), "passage")) == 7


def test_a_start_without_changes_commits_nothing(hippo: Hippo) -> None:
    daemon = hippo()
    for number in range(20):
        daemon.write(f"{number}.txt", f"Stone number {number} was laid by Vidar Holt.")
    commit = daemon.start().wait()["commit"]
    exported = daemon.export()
    daemon.restart()
    assert daemon.wait()["commit"] == commit
    assert daemon.export() == exported


def test_two_folders_are_followed_and_each_is_reported(hippo: Hippo) -> None:
    daemon = hippo(folders=("left", "right"))
    (daemon.folders[0] / "l.txt").write_text("The left hand is Wanda Pell's.")
    (daemon.folders[1] / "r.txt").write_text("The right hand is Xaver Noll's.")
    sources = daemon.start().wait()["sources"]
    assert [(s["kind"], s["name"], s["state"], s["lag"]) for s in sources] == [
        ("folder", str(folder), "watching", 0) for folder in daemon.folders
    ]
    # Content that moves from one folder to the other keeps its passages too.
    (daemon.folders[0] / "l.txt").rename(daemon.folders[1] / "l.txt")
    until(lambda: (daemon.folders[1] / "l.txt").as_uri() in daemon.documents(state="indexed"), "it has moved")
    until(lambda: (daemon.folders[0] / "l.txt").as_uri() not in daemon.documents(), "it is gone")
    assert daemon.metric("hippod_passages_total") == 2
