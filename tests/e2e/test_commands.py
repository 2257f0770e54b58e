"""Every command of hippoctl against a real daemon: the fields in the contract, and the exit codes."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.real_hippod import ROOT, Daemon, clean_environment, texts, until

pytestmark = pytest.mark.daemon

DONE, FAILED, USAGE, NO_DAEMON, NOT_CONFIGURED, TIMED_OUT = range(6)

STATUS = {
    "state", "commit", "pending", "failed", "documents", "passages", "phrases", "triples", "edges", "encoder", "openie",
    "sources", "uptime_s", "rss_bytes", "left_out",
}  # fmt: skip
DOCUMENT = {"uri", "title", "state", "error", "passages", "attempts", "modified_at", "committed_at", "left_out"}


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Yields a daemon over a folder with two good documents, a broken one and an empty one; read only."""
    daemon = Daemon(tmp_path_factory.mktemp("town"))
    daemon.write(
        "mill.md",
        "# The mill\n\nSolveig Aas built the mill of Ternby in 1790. See [its bridge](bridge.txt#span).\n\n"
        "[1]: <data:image/png;base64,AAAA>\n",
    )
    daemon.write("bridge.txt", "Ternby lies on the river Ask. Torgeir Vik designed the bridge of Ternby.")
    daemon.write("torn.pdf", b"%PDF-1.7\n1 0 obj <<")
    daemon.write("empty.txt", b"")
    with daemon:
        daemon.wait()
        yield daemon
    print(daemon.log_text()[-6000:])


def test_status_and_wait_report_counts_state_and_sources(town: Daemon) -> None:
    for command in (["status"], ["wait"], ["wait", "--timeout", "60"]):
        answer = town.ctl_json(*command)
        assert set(answer) >= STATUS
        assert set(answer["edges"]) == {"relation", "mention", "context", "synonym"}
        assert (answer["state"], answer["documents"], answer["failed"], answer["pending"]) == ("ready", 2, 1, 0)
        [source] = answer["sources"]
        assert source.items() >= {"kind": "folder", "name": str(town.drive), "state": "watching", "lag": 0}.items()
        assert answer["rss_bytes"] > 10_000_000


def test_query_answers_in_every_mode_that_there_is(town: Daemon) -> None:
    for mode in ("hipporag2", "query-to-node", "ner-to-node", "hipporag", "dense", "bm25"):
        answer = town.ctl_json("query", "When did Solveig Aas build the mill of Ternby?", "-k", "1", "--mode", mode)
        assert set(answer) >= {"query", "mode", "commit", "took_ms", "passages", "triples", "seeds"}
        assert (answer["query"], answer["mode"]) == ("When did Solveig Aas build the mill of Ternby?", mode)
        [passage] = answer["passages"]
        assert set(passage) >= {"rank", "score", "id", "title", "text", "document", "location"}
        assert (passage["rank"], passage["document"]) == (1, town.uri("mill.md"))
    answer = town.ctl_json("query", "When did Solveig Aas build the mill of Ternby?")
    assert answer["mode"] == "fused"
    assert answer["triples"]
    assert all(set(triple) >= {"subject", "predicate", "object", "score", "kept"} for triple in answer["triples"])
    assert answer["seeds"]
    assert all(set(seed) >= {"phrase", "weight"} for seed in answer["seeds"])
    again = town.ctl_json("query", "When did Solveig Aas build the mill of Ternby?")
    assert again["passages"] == answer["passages"]


def test_command_that_needs_an_unconfigured_llm_exits_with_4(town: Daemon) -> None:
    for command in (["ask", "Who built the mill?"], ["query", "mill", "--filter", "llm"]):
        ran = town.ctl("--json", *command)
        assert ran.code == NOT_CONFIGURED, ran
        assert set(ran.json) >= {"type", "title", "detail"}


def test_ls_lists_by_state_and_prefix(town: Daemon) -> None:
    every = town.ctl_json("ls")["documents"]
    assert all(set(document) >= DOCUMENT for document in every)
    assert [document["uri"] for document in every] == sorted(
        town.uri(name) for name in ("bridge.txt", "empty.txt", "mill.md", "torn.pdf")
    )
    [torn] = town.ctl_json("ls", "--state", "failed")["documents"]
    assert (torn["uri"], torn["attempts"], torn["passages"]) == (town.uri("torn.pdf"), 1, 0)
    assert torn["error"]
    [empty] = town.ctl_json("ls", "--state", "skipped")["documents"]
    assert empty["uri"] == town.uri("empty.txt")
    assert empty["error"]
    [mill] = town.ctl_json("ls", "--prefix", town.drive / "mill")["documents"]
    assert (mill["state"], mill["error"], mill["title"], mill["passages"]) == ("indexed", None, "The mill", 1)
    assert mill["modified_at"] < mill["committed_at"]
    assert town.ctl_json("ls", "--state", "pending") == {"documents": []}


def test_parts_left_out_of_a_document_are_listed_and_counted(town: Daemon) -> None:
    account = [{"kind": "picture", "count": 1, "text": "1 picture: image/png"}]
    [mill] = town.ctl_json("ls", "--prefix", town.drive / "mill")["documents"]
    assert mill["left_out"] == account
    assert town.ctl_json("show", town.drive / "mill.md")["document"]["left_out"] == account
    assert town.ctl_json("status")["left_out"] == {"picture": 1}
    for command in (["ls"], ["show", town.drive / "mill.md"]):
        assert "1 picture: image/png" in town.ctl(*command).out
    assert "1 picture" in town.ctl("status").out


def test_show_follows_document_passage_phrase_and_triple(town: Daemon) -> None:
    document = town.ctl_json("show", town.drive / "mill.md")
    assert (document["kind"], document["document"]["uri"]) == ("document", town.uri("mill.md"))
    [brief] = document["passages"]
    assert brief["location"]["line"] >= 1
    assert document["names"] == ["The mill", "mill"]
    assert document["links"] == [
        {"target": "bridge.txt", "heading": "span", "text": "its bridge", "passage": brief["id"]}
    ]
    passage = town.ctl_json("show", brief["id"])
    assert (passage["kind"], passage["documents"][0]["document"]) == ("passage", town.uri("mill.md"))
    assert passage["extractor"].startswith("rules")
    triple = document["triples"][0]
    shown = town.ctl_json("show", json.dumps([triple["subject"], triple["predicate"], triple["object"]]))
    assert shown["kind"] == "triple"
    assert brief["id"] in [each["id"] for each in shown["passages"]]
    phrase = town.ctl_json("show", "Solveig Aas")
    assert (phrase["kind"], phrase["text"]) == ("phrase", "solveig aas")
    assert phrase["relations"]
    assert town.ctl("show", "nothing of that name").code == FAILED


def test_export_writes_the_whole_memory_in_a_fixed_order(town: Daemon, tmp_path: Path) -> None:
    file = tmp_path / "memory.jsonl"
    answer = town.ctl_json("export", file)
    lines = file.read_text("utf-8").splitlines()
    assert answer["lines"] == len(lines)
    status = town.status()
    for kind, count in (("passage", "passages"), ("phrase", "phrases"), ("triple", "triples")):
        assert len(texts(lines, kind)) == status[count]
    shapes = {
        "passage": {"kind", "title", "text"},
        "phrase": {"kind", "text"},
        "triple": {"kind", "subject", "predicate", "object"},
        "edge": {"kind", "type", "source", "target", "weight"},
    }
    values = [json.loads(line) for line in lines]
    assert all(set(value) == shapes[value["kind"]] for value in values)
    for name, count in status["edges"].items():
        assert len([value for value in values if value.get("type") == name]) == count
    assert town.ctl("export", "-").out == file.read_text("utf-8")


def test_add_rm_and_retry_report_their_counts(live: Daemon, tmp_path: Path) -> None:
    note = tmp_path / "note.md"
    note.write_text("# Weir\n\nYrsa Dahl opened the weir.\n")
    lines = '{"id": "w1", "text": "The weir was closed by Ylva Dahl."}\n'
    assert live.ctl_json("add", note) == {"accepted": 1, "documents": [f"added:{note}"]}
    assert live.ctl_json("add", "-", stdin=lines) == {"accepted": 1, "documents": ["added:w1"]}
    live.wait()
    assert live.query("Who opened the weir? Yrsa", "bm25", k=1)[0]["title"] == "Weir"
    assert live.ctl_json("retry") == {"requeued": 0}
    answer = live.ctl_json("rm", "added:w1", f"added:{note}", "added:never")
    assert (answer["removed"], answer["missing"]) == (2, 1)
    assert live.status()["documents"] == 0


def test_watch_prints_events_of_a_file_as_one_json_object_per_line(live: Daemon, tmp_path: Path) -> None:
    out = tmp_path / "events"
    with out.open("wb") as stream:
        process = subprocess.Popen(live.command("--json", "watch"), stdout=stream, env=clean_environment(live.home))
    try:
        numbers = iter(range(10_000))

        def seen(event: str, uri: str) -> list[dict[str, Any]]:
            lines = [json.loads(line) for line in out.read_text().splitlines(keepends=True) if line.endswith("\n")]
            return [line for line in lines if line["event"] == event and line.get("uri") == uri]

        uri = live.uri("watched.txt")
        # It takes a moment until watch listens.
        until(
            lambda: (live.write("watched.txt", f"Edition {next(numbers)} was set by Nils Ek."), seen("indexed", uri))[
                1
            ],
            "an event of the file is seen",
            pause_s=0.3,
        )
        (live.drive / "watched.txt").unlink()
        [removed] = until(lambda: seen("removed", uri), "its removal is seen")
        assert set(removed) >= {"time", "event", "uri"}
    finally:
        process.terminate()
        process.wait(30)


def test_doctor_prints_one_line_per_check(town: Daemon) -> None:
    answer = town.ctl_json("doctor")
    checks = {check["name"]: check for check in answer["checks"]}
    assert {"socket", "daemon", "encoder", "documents"} <= set(checks)
    assert checks["daemon"]["status"] == "ok"
    assert town.uri("torn.pdf") in checks["documents"]["detail"]
    assert len(town.ctl("doctor").out.splitlines()) == len(checks)


def test_json_option_is_accepted_before_and_after_the_command(town: Daemon) -> None:
    # Failed documents are retried meanwhile, which increases the count.
    before, after = town.ctl("--json", "ls", "--state", "indexed"), town.ctl("ls", "--json", "--state", "indexed")
    assert before.json == after.json
    assert "\n" not in before.out.rstrip("\n")


def test_exit_codes_distinguish_failure_usage_and_missing_daemon(town: Daemon, tmp_path: Path) -> None:
    assert town.ctl("status").code == DONE
    assert town.ctl("show", "added:never").code == FAILED
    assert town.ctl("no-such-command").code == USAGE
    assert town.ctl("query").code == USAGE
    nobody = town.ctl("--socket", tmp_path / "nobody", "--json", "status")
    assert nobody.code == NO_DAEMON
    assert str(tmp_path / "nobody") in nobody.json["detail"]


def test_wait_that_times_out_exits_with_5(live: Daemon) -> None:
    for number in range(300):
        live.write(f"bulk/{number}.txt", f"Crate {number} was packed by Ruth Orm-{number}. " * 60)
    ran = live.ctl("--json", "wait", "--timeout", "0.01")
    assert ran.code == TIMED_OUT
    assert ran.json["status"] == 409
    assert live.ctl("wait").code == DONE
    assert len(live.documents(prefix=live.uri("bulk/"))) == 300


def test_completion_scripts_complete_commands(town: Daemon) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_HIPPOCTL_COMPLETE" in town.ctl("completion", shell).out
    asked = {"_HIPPOCTL_COMPLETE": "bash_complete", "COMP_WORDS": "hippoctl st", "COMP_CWORD": "1"}
    command = [word for word in town.command() if word not in ("--socket", str(town.socket))]
    done = subprocess.run(
        command, env=clean_environment(town.home) | asked, capture_output=True, text=True, timeout=60, cwd=ROOT
    )
    assert done.stdout.split() == ["plain,status"]


def test_socket_answers_plain_http_requests(town: Daemon) -> None:
    assert town.ask("GET", "/healthz")["state"] == "ready"
    paths = set(town.ask("GET", "/openapi.json")["paths"])
    assert {"/v1/query", "/v1/documents", "/v1/retry", "/v1/status", "/v1/wait", "/v1/events", "/v1/export"} <= paths
    assert town.metric("hippod_memory_items", kind="document") == 2
    problem = town.http.post("/v1/query", json={"query": ""})
    assert problem.headers["content-type"].startswith("application/problem+json")
    assert problem.status_code in (400, 422)
