"""Questions within a scope: they equal those of a memory of these documents alone, for every command with a scope."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Hippo
from tests.e2e.real_hippod import Daemon, Json, until, write_config

pytestmark = pytest.mark.daemon

MILL = {
    "mill.md": "# The mill\n\nSolveig Aas built the mill of Ternby in 1790. Ternby lies on the river Ask.\n",
    "bridge.txt": "Torgeir Vik designed the bridge of Ternby. Torgeir Vik was a pupil of Solveig Aas.",
}
OTHER = {
    "secret.md": "# Wages\n\nSolveig Aas earns 7,000 crowns a month at the mill of Ternby.\n",
    "river.txt": "The river Ask flows through Ternby and Holm. Holm lies below Ternby.",
}
QUESTION = "Who designed the bridge in the town where Solveig Aas built the mill?"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Yields a daemon with both folders, one labelled, and two added documents."""
    daemon = Daemon(tmp_path_factory.mktemp("whole"))
    for name, text in MILL.items():
        daemon.write(f"mill/{name}", text)
    for name, text in OTHER.items():
        daemon.write(f"mills-accounts/{name}", text)
    with daemon:
        added = [
            {"id": "old", "title": "Old news", "text": "The Ternby Post was founded in 1850.", "published_at": "1999-05-01",
             "labels": ["press", "public"], "kind": "news"},
            {"id": "new", "title": "New news", "text": "The Ternby Post closed in 2020.", "published_at": "2020-02-01",
             "labels": ["press"], "kind": "news", "page": 3, "copies": 1234567.5, "weights": [3.1415926, 2.0]},
        ]  # fmt: skip
        daemon.ctl("add", "-", stdin="".join(json.dumps(each) + "\n" for each in added))
        daemon.wait()
        yield daemon


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Yields a fresh memory of the folder `mill` alone."""
    daemon = Daemon(tmp_path_factory.mktemp("alone"))
    for name, text in MILL.items():
        daemon.write(f"mill/{name}", text)
    with daemon:
        daemon.wait()
        yield daemon


def ranking(answer: dict[str, Any]) -> list[tuple[str, float]]:
    return [(passage["id"], round(passage["score"], 5)) for passage in answer["passages"]]


@pytest.mark.parametrize("mode", ["fused", "hipporag2", "hipporag", "bm25", "dense"])
def test_a_scope_answers_as_a_memory_of_its_documents_alone(whole: Daemon, alone: Daemon, mode: str) -> None:
    folder = str(whole.drive / "mill")
    scoped = whole.ctl_json("query", QUESTION, "--mode", mode, "-k", "10", "--in", folder)
    fresh = alone.ctl_json("query", QUESTION, "--mode", mode, "-k", "10")
    assert [id for id, _ in ranking(scoped)] == [id for id, _ in ranking(fresh)]
    assert [score for _, score in ranking(scoped)] == pytest.approx([score for _, score in ranking(fresh)], abs=2e-5)
    assert [t["object"] for t in scoped["triples"]] == [t["object"] for t in fresh["triples"]]
    assert [s["phrase"] for s in scoped["seeds"]] == [s["phrase"] for s in fresh["seeds"]]
    assert all(passage["document"].startswith(whole.uri("mill/")) for passage in scoped["passages"])
    assert ranking(whole.ctl_json("query", QUESTION, "--mode", mode, "-k", "10")) != ranking(scoped)


def test_export_show_ls_and_graph_are_limited_to_the_scope(whole: Daemon, alone: Daemon) -> None:
    scope = ["--in", str(whole.drive / "mill")]
    assert whole.ctl("export", "-", *scope).out == alone.ctl("export", "-").out
    listed = [document["uri"] for document in whole.ctl_json("ls", *scope)["documents"]]
    assert listed == [whole.uri("mill/bridge.txt"), whole.uri("mill/mill.md")]
    outside = whole.ctl("--json", "show", whole.uri("mills-accounts/secret.md"), *scope)
    absent = whole.ctl("--json", "show", whole.uri("mills-accounts/nothing.md"), *scope)
    assert (outside.code, outside.json["title"]) == (absent.code, absent.json["title"])
    assert whole.ctl_json("show", "solveig aas", *scope)["counts"] == alone.ctl_json("show", "solveig aas")["counts"]
    drawn, fresh = (daemon.ctl_json("graph", QUESTION, *options) for daemon, options in ((whole, scope), (alone, [])))
    assert [node["id"] for node in drawn["nodes"]] == [node["id"] for node in fresh["nodes"]]
    assert len(drawn["edges"]) == len(fresh["edges"])


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--label", "press"], {"added:new", "added:old"}),
        (["--label", "public", "--label", "nothing"], {"added:old"}),
        (["--where", "kind=news", "--where", "page=3"], {"added:new"}),
        (["--where", "page=3.0", "--where", "weights=2"], {"added:new"}),
        (["--where", "copies=1234567.5", "--where", "weights=3.1415926"], {"added:new"}),
        (["--where", "copies=1.23457e+06"], set()),
        (["--where", "weights=3.14159"], set()),
        (["--since", "2010-01-01", "--until", "2021-01-01"], {"added:new"}),
        (["--until", "2000-01-01T00:00:00Z"], {"added:old"}),
        (["--source", "added"], {"added:new", "added:old"}),
        (["--in", "added:o"], {"added:old"}),
        (["--source", "nowhere"], set()),
    ],
)
def test_each_scope_condition_limits_query_and_ls(whole: Daemon, options: list[str], found: set[str]) -> None:
    assert {passage["document"] for passage in whole.ctl_json("query", "Ternby Post", *options)["passages"]} == found
    assert {document["uri"] for document in whole.ctl_json("ls", *options)["documents"]} == found


def test_scopes_command_lists_sources_labels_and_folders(whole: Daemon) -> None:
    answer = whole.ctl_json("scopes")
    assert {each["name"]: each["documents"] for each in answer["sources"]} == {"added": 2, str(whole.drive): 4}
    assert {each["name"]: each["documents"] for each in answer["labels"]} == {"press": 2, "public": 1}
    folders = {each["name"]: each["documents"] for each in answer["folders"]}
    assert folders[whole.uri("mill")] == 2
    assert folders[whole.uri("mills-accounts")] == 2
    assert "public" in whole.ctl("scopes").out


def test_scope_reflects_added_and_deleted_files(whole: Daemon) -> None:
    scope = ["--in", str(whole.drive / "mills-accounts")]
    whole.ctl_json("query", "Who owns the ferry?", *scope)
    whole.write("mills-accounts/ferry.md", "# The ferry\n\nMarit Lund owns the ferry of Holm.\n")
    whole.wait()
    answer = whole.ctl_json("query", "Who owns the ferry?", *scope)
    assert answer["passages"][0]["document"] == whole.uri("mills-accounts/ferry.md")
    assert answer["commit"] == whole.ctl_json("status")["commit"]
    before = whole.ctl_json("query", "Who owns the ferry?", *scope, "--as-of", str(answer["commit"] - 1))
    assert whole.uri("mills-accounts/ferry.md") not in {each["document"] for each in before["passages"]}
    (whole.drive / "mills-accounts" / "ferry.md").unlink()
    whole.wait()
    answer = whole.ctl_json("query", "Who owns the ferry?", *scope)
    assert whole.uri("mills-accounts/ferry.md") not in {each["document"] for each in answer["passages"]}


def test_folder_with_a_non_utf8_name_is_a_scope_without_its_neighbour(whole: Daemon) -> None:
    inside = whole.write("d\udce9/lock.md", "# The lock\n\nRagna Moe opens the lock of Holm.\n")
    whole.write("d\udce9s/lock.md", "# Another lock\n\nNobody opens the lock of Ternby.\n")
    whole.wait()
    scope = ["--in", str(whole.drive / "d\udce9")]
    assert "/d%E9/" in inside
    assert [each["uri"] for each in whole.ctl_json("ls", *scope)["documents"]] == [inside]
    answer = whole.ctl_json("query", "Who opens the lock?", *scope)
    assert {each["document"] for each in answer["passages"]} == {inside}
    one = whole.ctl_json("ls", "--in", str(whole.drive / "d\udce9/lock.md"))
    assert [each["uri"] for each in one["documents"]] == [inside]
    absent = whole.ctl("show", str(whole.drive / "d\udce9/gone.md"))
    assert (absent.code, absent.err.count("\n")) == (1, 1)
    assert "Nothing in the memory is named" in absent.err
    for folder in ("d\udce9", "d\udce9s"):
        (whole.drive / folder / "lock.md").unlink()
    whole.wait()


def test_invalid_scope_is_refused_and_an_empty_one_matches_everything(whole: Daemon) -> None:
    client = whole.http
    for scope, named in (
        ({"prefix": "x"}, "scope.prefix"),
        ({"since": "2020-01-01"}, "scope.since"),
        ({"where": {"a": 1}}, "scope.where.a"),
    ):
        answer = client.post("/v1/query", json={"query": "x", "scope": scope})
        assert answer.status_code == 422, (scope, answer.text)
        assert answer.json()["errors"][0]["field"] == named
    assert client.get("/v1/documents", params={"scope": "{"}).status_code == 422
    assert client.post("/v1/query", json={"query": "x", "scope": {}}).status_code == 200
    assert whole.ctl("query", "x", "--where", "nothing").code == 2
    assert whole.ctl("query", "x", "--since", "2020-01-02", "--until", "2020-01-01").code == 2


def follow(daemon: Daemon, **labels: list[str]) -> Daemon:
    """Configures these folders of the drive, or `drive` itself, with these labels for the next start."""
    places = {name: daemon.drive if name == "drive" else daemon.drive / name for name in labels}
    daemon.sections["folder"] = [{"path": str(places[name]), "labels": own} for name, own in labels.items()]
    write_config(daemon.config, daemon.sections)
    return daemon


def as_scopes_see_it(daemon: Daemon) -> Json:
    """Returns the list of each source and each label, and each source's state."""
    named = daemon.ctl_json("scopes")
    return {
        "folders": named["folders"],
        "sources": {
            each["name"]: sorted(daemon.documents(scope=json.dumps({"source": each["name"]})))
            for each in named["sources"]
        },
        "labels": {
            each["name"]: sorted(daemon.documents(scope=json.dumps({"labels": [each["name"]]})))
            for each in named["labels"]
        },
        "states": {uri: document["state"] for uri, document in daemon.documents().items()},
        "status": [(each["name"], each["lag"], each["files"]) for each in daemon.wait()["sources"]],
    }


def fill_drive(daemon: Daemon) -> list[Path]:
    """Writes files in two folders and above them: documents, lines, one that fails and one that is skipped."""
    for number in range(3):
        daemon.write(f"hr/{number}.md", f"# Wage {number}\n\nSolveig Aas earns {number},000 crowns at the mill.\n")
        daemon.write(f"press/{number}.txt", f"The Ternby Post number {number} praises Torgeir Vik.")
    lines = [{"id": str(number), "text": f"Line {number} speaks of the river Ask."} for number in range(3)]
    daemon.write("hr/lines.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    daemon.write("hr/broken.pdf", b"%PDF-1.4 and nothing more")
    daemon.write("press/picture.png", b"\x89PNG\r\n\x1a\n")
    daemon.write("root.md", "# Root\n\nMarit Lund owns the ferry of Holm.\n")
    return [path for path in daemon.drive.rglob("*") if path.is_file()]


def test_changed_folder_patterns_give_the_documents_of_a_fresh_build(hippo: Hippo) -> None:
    daemon, anew, again = hippo("before"), hippo("anew"), hippo("again")
    anew.folders = again.folders = daemon.folders
    files = fill_drive(daemon)
    daemon.start().wait()
    whole, hr, press = (str(daemon.drive / name) for name in ("", "hr", "press"))
    assert daemon.stop() == 0

    for path in files:
        path.chmod(0)  # parsing one again would fail
    follow(daemon, hr=["hr"], press=["public"]).start().wait()
    narrowed = as_scopes_see_it(daemon)
    found = daemon.ctl_json("query", "Who earns at the mill?", "--label", "hr", "--source", hr)["passages"]
    # The wages differ only in their numbers, so they may be versions of one result.
    named = {uri for passage in found for uri in (passage["document"], *passage.get("also_in", []))}
    assert named > {daemon.uri(f"hr/{number}.md") for number in range(3)}
    assert daemon.metric("hippod_passages_total") == daemon.metric("hippod_stage_seconds_count", stage="extract") == 0
    commit = daemon.status()["commit"]
    assert daemon.restart().wait()["commit"] == commit
    assert daemon.stop() == 0
    for path in files:
        path.chmod(0o600)

    follow(anew, hr=["hr"], press=["public"]).start().wait()
    fresh = as_scopes_see_it(anew)
    assert (narrowed["labels"], narrowed["status"]) == (fresh["labels"], fresh["status"])
    # Documents that are no longer followed stay as they are.
    assert narrowed["sources"] == fresh["sources"] | {whole: [daemon.uri("root.md")]}
    assert {len(narrowed["sources"][each]) for each in (hr, press)} == {7, 4}
    assert narrowed["states"] == fresh["states"] | {daemon.uri("root.md"): "indexed"}
    anew.close()

    for each in (daemon, again):
        follow(each, drive=["drive"]).start().wait()
    assert as_scopes_see_it(daemon) == as_scopes_see_it(again)
    assert daemon.export() == again.export()
    assert daemon.metric("hippod_passages_total") == 0


def test_documents_change_to_a_narrower_folder_despite_kill_9(hippo: Hippo) -> None:
    daemon = hippo()
    for number in range(300):
        daemon.write(f"hr/{number}.txt", f"Wage {number}.")
    daemon.start().wait()
    commit = daemon.status()["commit"]
    daemon.stop()
    follow(daemon, hr=["hr"]).start()
    until(lambda: daemon.status()["commit"] > commit, "some have gone over", pause_s=0.001)
    daemon.kill()
    daemon.start().wait()
    [source] = daemon.ctl_json("scopes")["sources"]
    assert source == {"name": str(daemon.drive / "hr"), "documents": 300}
    assert [each["documents"] for each in daemon.ctl_json("scopes")["labels"]] == [300]


def test_lost_files_belong_to_the_narrower_folder_until_confirmed(hippo: Hippo) -> None:
    daemon = hippo()
    for number in range(6):
        daemon.write(f"hr/{number}.txt", f"Wage {number}.")
    daemon.start().wait()
    daemon.stop()
    for number in range(4):
        (daemon.drive / "hr" / f"{number}.txt").unlink()
    [source] = follow(daemon, hr=["hr"]).start().wait()["sources"]
    assert (source["unconfirmed"], source["lag"]) == (4, 0)
    assert len(daemon.documents(scope=json.dumps({"labels": ["hr"], "source": source["name"]}))) == 6
    daemon.ctl_json("confirm", source["name"])
    daemon.wait()
    assert set(daemon.documents()) == {daemon.uri("hr/4.txt"), daemon.uri("hr/5.txt")}
