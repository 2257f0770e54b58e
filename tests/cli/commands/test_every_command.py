"""Every command explains itself, and with --json prints exactly one JSON document (`watch`: one a line)."""

import json
from pathlib import Path
from urllib.parse import unquote

import click
import pytest

from cli.command_index import COMMON_WORDS
from cli.command_line import hippoctl as group
from cli.commands import doctor as doctor_command
from daemon.contract.http.routes import document_path
from tests.cli.sample_answers import ADDED, ASK, EVENTS, IMPORTED, LIST, QUERY, REMOVED, RETRIED, SHOW, STATUS, URI
from tests.cli.scripted_daemon import Here, Reply, Scripted, Shell

COMMANDS = sorted(group.commands)
QUESTIONS = [{"question": "Who built it?", "documents": ["people/Søren.md"]}]


def messages(*events: object) -> list[bytes]:
    return [b": hippod\n\n", *(f"id: 1\nevent: x\ndata: {json.dumps(event)}\n\n".encode() for event in events)]


def answer_everything(scripted: Scripted) -> None:
    scripted.answers |= {
        "GET /v1/status": STATUS,
        "POST /v1/wait": STATUS,
        "POST /v1/query": QUERY,
        "POST /v1/ask": ASK,
        "GET /v1/documents": LIST,
        "POST /v1/documents": ADDED,
        "DELETE /v1/documents": REMOVED,
        f"GET {document_path(URI)}": SHOW,
        "POST /v1/retry": RETRIED,
        "POST /v1/import": IMPORTED,
        "GET /v1/events": Reply(pieces=list(messages(*EVENTS))),
        "GET /v1/export": Reply(pieces=[b'{"kind": "phrase", ', b'"text": "a"}\n']),
    }


def test_command_list_contains_exactly_the_expected_commands() -> None:
    wanted = (
        "add ask backfill backup completion confirm costs doctor eval export graph import ls mcp query reencode reextract "
        "restore retry rm scopes sessions show status ui verify wait watch"
    )
    assert wanted.split() == COMMANDS


@pytest.mark.process
def test_help_option_exits_with_0_and_lists_exit_codes(hippoctl: Shell) -> None:
    assert "Exit codes: 0 done" in hippoctl("--help").out
    for name in ("add", "query", "watch"):
        shown = hippoctl(name, "--help")
        assert (shown.code, shown.err) == (0, "")
        assert shown.out.startswith(f"Usage: hippoctl {name} ")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_help_text_and_a_json_option(name: str) -> None:
    command = group.get_command(click.Context(group), name)
    assert command and command.help and command.help.split("\n")[0].rstrip().endswith((".", ":"))
    if name == "mcp":  # its standard output is the protocol's
        return
    assert "--json" in {option for parameter in command.params for option in parameter.opts}


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["status"], STATUS),
        (["wait", "--timeout", "5"], STATUS),
        (["query", "who?", "-k", "3"], QUERY),
        (["ask", "who?"], ASK),
        (["add", "document.json"], ADDED),
        (["rm", URI, "added:2"], REMOVED),
        (["ls"], LIST),
        (["show", URI], SHOW),
        (["retry"], RETRIED),
        (["import", "openie.json"], IMPORTED),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_json_option_before_or_after_the_command_prints_the_daemons_answer(
    here: Here, scripted: Scripted, tmp_path: Path, arguments: list[str], wanted: object
) -> None:
    answer_everything(scripted)
    (tmp_path / "document.json").write_text('{"text": "One."}')
    (tmp_path / "openie.json").write_text('{"docs": []}')
    before, after = here("--json", *arguments), here(*arguments, "--json")
    assert (before.code, after.code) == (0, 0), before.err
    assert before.json == after.json == wanted
    assert before.out.count("\n") == 1


@pytest.mark.process
def test_json_output_of_eval_export_completion_and_doctor_has_fixed_fields(
    here: Here, scripted: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_everything(scripted)
    monkeypatch.setattr(doctor_command, "find_hippod", lambda: None)
    (tmp_path / "questions.json").write_text(json.dumps(QUESTIONS))
    evaluated = here("--json", "eval", "questions.json").json
    [question] = evaluated.pop("questions")
    assert (question["id"], question["recall"]) == ("1", {"2": 1.0, "5": 1.0, "10": 1.0})
    assert evaluated == {
        "n": 1,
        "gold_passages": 1,
        "gold_absent": 0,
        "recall": {"2": 1.0, "5": 1.0, "10": 1.0},
        "all": {"2": 1.0, "5": 1.0, "10": 1.0},
        "took_ms": {"p50": 12.34, "p95": 12.34},
        "mode": "hipporag2",
        "filter": {"queries": 1, "kept": 0.5, "emptied": 0, "unfiltered": 0},
    }
    exported = here("--json", "export", "memory.jsonl").json
    assert exported == {"file": str(tmp_path / "memory.jsonl"), "format": "jsonl", "lines": 1, "bytes": 32}
    assert set(here("--json", "completion", "bash").json) == {"shell", "script", "goes_to"}
    checks = here("--json", "doctor").json["checks"]
    assert all(set(check) == {"name", "status", "detail", "hint"} for check in checks)


@pytest.mark.process
def test_watch_prints_one_json_document_a_line(hippoctl: Shell, scripted: Scripted) -> None:
    answer_everything(scripted)
    ended = hippoctl("watch", "--json")
    assert [json.loads(line) for line in ended.out.splitlines()] == EVENTS
    assert (ended.code, "has stopped" in ended.err) == (3, True)


@pytest.mark.process
def test_watch_prints_lines_for_people(hippoctl: Shell, scripted: Scripted) -> None:
    answer_everything(scripted)
    first, second = hippoctl("watch").out.splitlines()
    assert "indexed   file:///drive/people/Søren.md  passages=2" in first
    assert second.endswith("commit    commit=43")


def test_unknown_fields_of_a_newer_daemon_are_kept_in_json(here: Here, scripted: Scripted) -> None:
    scripted.answers["GET /v1/status"] = STATUS | {"moons": 2}
    assert here("--json", "status").json["moons"] == 2
    assert here("status").code == 0


@pytest.mark.process
def test_json_output_is_ascii_in_any_locale(hippoctl: Shell, scripted: Scripted) -> None:
    answer_everything(scripted)
    ended = hippoctl("--json", "show", URI, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert ended.out.isascii()
    assert ended.json == SHOW


def test_ls_reads_every_page_into_one_document(here: Here, scripted: Scripted) -> None:
    first, second = LIST["documents"]
    pages = {"": {"documents": [first], "next": "file:///drive/cut.pdf"}}
    scripted.answers["GET /v1/documents"] = lambda asked: (
        {"documents": [second]} if "after=" in asked.query else pages[""]
    )
    ended = here("--json", "ls", "--state", "failed", "--prefix", "/drive/a b")
    assert ended.json == {"documents": [first, second]}
    assert "state=failed" in scripted.asked[0].query
    assert "prefix=file%3A%2F%2F%2Fdrive%2Fa%2520b" in scripted.asked[0].query
    here("ls", "--prefix", "/drive/a/")
    assert scripted.asked[-1].query.startswith("prefix=file%3A%2F%2F%2Fdrive%2Fa%2F&")


def test_request_contains_the_given_options_and_no_others(here: Here, scripted: Scripted) -> None:
    answer_everything(scripted)
    here("query", "who", "built", "it?", "--mode", "dense", "--filter", "none", "--as-of", "2026-03-01T12:00:00Z")
    here("query", "who?")
    here("ask", "why?", "--deep", "--steps", "3", "-k", "7")
    chosen = {"mode": "dense", "filter": "none", "as_of": scripted.asked[0].body["as_of"]}
    assert scripted.asked[0].body == {"query": "who built it?", "k": 5} | chosen
    assert chosen["as_of"].startswith("2026-03-01T")
    assert scripted.asked[1].body == {"query": "who?", "k": 5}
    assert scripted.asked[2].body == {"question": "why?", "k": 7, "deep": True, "steps": 3}
    here("ask", "why?", "--steps", "2", "--max-tokens", "900")
    assert scripted.asked[3].body == {"question": "why?", "k": 5, "steps": 2, "max_tokens": 900}
    limits = ["--max-calls", "9", "--timeout", "30"]
    here("ask", "why?", "--deep", "--session", "é.1", "--only", "local", "--no-update", "--no-merge", *limits)
    told = {"deep": True, "session": "é.1", "only": "local", "update": False, "merge": False}
    assert scripted.asked[4].body == {"question": "why?", "max_calls": 9, "timeout_s": 30.0} | told
    here(
        "ask", "why?", "--deep", "--quick", "--each-step", "--deep-set", "n_v=7", "--deep-set", "model_temperature=0.8"
    )
    told = {"deep": True, "quick": True, "each_step": True, "deep_settings": {"n_v": 7, "model_temperature": 0.8}}
    assert scripted.asked[5].body == {"question": "why?"} | told
    assert here("ask", "why?", "--deep-set", "n_v=7").code == 2
    assert here("ask", "why?", "--deep", "--deep-set", "n_v=0").code == 2


def test_path_argument_is_converted_to_a_file_uri(here: Here, scripted: Scripted, tmp_path: Path) -> None:
    answer_everything(scripted)
    here("rm", "/drive/a #1.md", "./b.md", "added:3")
    uris = ["file:///drive/a%20%231.md", f"{tmp_path.as_uri()}/b.md", "added:3"]
    assert scripted.asked[0].body == {"uris": uris}


def test_show_tries_a_relative_path_before_a_phrase_of_that_name(
    here: Here, scripted: Scripted, tmp_path: Path
) -> None:
    (tmp_path / "drive").mkdir()
    scripted.answers |= {"GET /v1/documents": LIST, f"GET {document_path('drive/time')}": SHOW}
    scripted.answers[f"GET {document_path(f'{tmp_path.as_uri()}/drive/x.md')}"] = SHOW
    assert here("--json", "show", "drive/x.md").json == SHOW
    assert here("--json", "show", "drive/time").json == SHOW  # a phrase, as there is no such document
    absent = here("show", "drive/absent")
    assert (absent.code, absent.out) == (1, "")
    here("ls", "--prefix", "drive")
    assert unquote(scripted.asked[-1].query).startswith(f"prefix={tmp_path.as_uri()}/drive&")


@pytest.mark.parametrize("name", ["/drive/\udcff.md", "./\udcff.md", "\udcff", "rain \udcff gauge"])
def test_non_utf8_name_is_requested_without_an_error(here: Here, scripted: Scripted, name: str) -> None:
    absent = here("show", name)
    assert (absent.code, absent.out, absent.err) == (1, "", "hippoctl: No such.\n")
    scripted.answers["GET /v1/documents"] = LIST | {"documents": []}
    assert here("--json", "ls", "--prefix", name).json == {"documents": []}


@pytest.mark.parametrize(
    ("typed", "meant"), [("quary", "query"), ("search", "query"), ("remove", "rm"), ("list", "ls")]
)
def test_a_mistyped_command_gets_a_suggestion(here: Here, typed: str, meant: str) -> None:
    ended = here(typed, "x")
    assert ended.code == 2 and f"No such command '{typed}'. Did you mean '{meant}'?" in ended.err


def test_every_suggested_command_is_there(here: Here) -> None:
    assert set(COMMON_WORDS.values()) <= set(COMMANDS) and not set(COMMON_WORDS) & set(COMMANDS)
    assert here("help").out == here("--help").out


def test_retry_of_a_missing_or_not_failed_document_exits_with_1(here: Here, scripted: Scripted) -> None:
    scripted.answers["POST /v1/retry"] = {
        "requeued": 1,
        "missing_uris": ["nosuch"],
        "not_failed_uris": ["added:%C3%A9"],
    }
    ended = here("--json", "retry", "nosuch", "added:é", "added:1")
    assert (ended.code, ended.json["requeued"]) == (1, 1)
    assert ended.err == (
        "hippoctl: document nosuch does not exist\nhippoctl: added:é has not failed: it is not tried again\n"
    )


@pytest.mark.process
def test_any_key_can_be_shown(hippoctl: Shell, scripted: Scripted) -> None:
    key = '["a/b", "is #1", "ü%"]'
    scripted.answers[f"GET {document_path(key)}"] = SHOW
    assert hippoctl("--json", "show", key).json == SHOW
