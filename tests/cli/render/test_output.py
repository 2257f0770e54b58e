"""What people see: everything that led to an answer, in plain text or colours, and nothing that documents can abuse."""

import json
import os
import pty
import re
import select
import subprocess
from time import monotonic, sleep
from typing import get_args
from xml.etree import ElementTree

import pytest
from rich.text import Text

from cli import output
from cli.render.lines import STATE_STYLES
from consumers.folder.settings import StateName
from daemon.contract.choices import DocumentState
from daemon.contract.http.routes import document_path
from daemon.contract.status import BAD_SOURCE_STATES, PAUSED, DaemonState
from tests.cli.sample_answers import ASK, LIST, QUERY, SHOW, STATUS, URI, answer, passage
from tests.cli.scripted_daemon import Here, Reply, Scripted, Shell

pytestmark = pytest.mark.process

CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m[bold red]rain[/bold red] \u202egnitide\u2066 :smile: \U000e0041\r\b\x00"


def on_terminal(hippoctl: Shell, *arguments: str, **environ: str) -> str:
    """What hippoctl writes when stdin, stdout and stderr are a terminal."""
    parent, child = pty.openpty()
    with subprocess.Popen(
        hippoctl.command(*arguments),
        stdin=child,
        stdout=child,
        stderr=child,
        cwd=hippoctl.cwd,
        env=hippoctl.environ | {"TERM": "xterm-256color", "COLUMNS": "80"} | environ,
    ) as process:
        os.close(child)
        written, deadline = b"", monotonic() + 60
        while monotonic() < deadline:
            ready, _, _ = select.select([parent], [], [], 0.5)
            try:
                piece = os.read(parent, 65536) if ready else None
            except OSError:  # the other end is closed
                break
            if piece == b"":
                break
            written += piece or b""
        process.wait(10)
    os.close(parent)
    return written.decode().replace("\r\n", "\n")


def test_query_shows_passages_with_place_triples_seeds_and_time(hippoctl: Shell, scripted: Scripted) -> None:
    scripted.answers["POST /v1/query"] = QUERY
    assert hippoctl("query", "Who built the rain gauge?").out == (
        " 1  0.5000  Emil Strand\n"
        "    file:///drive/people/Søren.md · page 3, line 12\n"
        "    Emil Strand built the rain gauge in 1974.\n"
        "\n"
        "Triples\n"
        "  kept     1.000  emil strand · built · rain gauge\n"
        "  dropped  0.250  greta ambler · took · minutes\n"
        "\n"
        "Seeds\n"
        "  rain gauge 0.500\n"
        "\n"
        "1 passage · mode hipporag2 · commit 42 · 12.3 ms\n"
    )


def test_wrapped_titles_are_indented(here: Here, scripted: Scripted) -> None:
    words = " ".join(f"word{n}" for n in range(30))
    scripted.answers["POST /v1/query"] = answer(passage(1, words, "Short."))
    title = here("query", "who?").out.split("    file:")[0].splitlines()
    assert title[0].startswith(" 1  0.5000  word0 ") and len(title) == 3
    assert all(line.startswith(" " * 12 + "word") and len(line) <= 100 for line in title[1:])
    assert " ".join(" ".join(title).split()[2:]) == words
    shown = SHOW | {"document": SHOW["document"] | {"title": words, "error": words}}
    scripted.answers[f"GET {document_path(URI)}"] = shown
    lines = here("show", URI).out.splitlines()
    assert lines[0].startswith("document  word0") and lines[1].startswith(" " * 10 + "word")
    why = next(at for at, line in enumerate(lines) if line.lstrip().startswith("why"))
    assert lines[why + 1].startswith(" " * lines[why].index("word0") + "word")


def test_query_without_passages_reports_it_with_the_daemons_note(hippoctl: Shell, scripted: Scripted) -> None:
    scripted.answers["POST /v1/query"] = answer(note="The memory is empty.")
    out = hippoctl("query", "who?").out
    assert out.startswith("No passage was found.\n")
    assert "note  The memory is empty." in out


def test_terminal_output_highlights_the_words_of_the_query(hippoctl: Shell, scripted: Scripted) -> None:
    scripted.answers["POST /v1/query"] = QUERY
    shown = on_terminal(hippoctl, "query", "Who built the rain gauge?")
    assert re.search("\x1b\\[1;33mrain\x1b\\[0m \x1b\\[1;33mgauge\x1b\\[0m", shown)
    assert "kept" in shown


@pytest.mark.parametrize("environ", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["NO_COLOR", "dumb"])
def test_a_terminal_without_colours_gets_plain_text(
    hippoctl: Shell, scripted: Scripted, environ: dict[str, str]
) -> None:
    scripted.answers |= {"POST /v1/query": QUERY, "GET /v1/status": STATUS}
    assert not CONTROL.search(on_terminal(hippoctl, "query", "Who?", **environ))
    assert not CONTROL.search(on_terminal(hippoctl, "status", **environ))


def test_document_text_prints_no_control_characters(hippoctl: Shell, scripted: Scripted) -> None:
    scripted.answers["POST /v1/query"] = answer(
        passage(1, HOSTILE, HOSTILE, f"added:{HOSTILE}", heading=HOSTILE), query="rain", note=HOSTILE
    )
    piped = hippoctl("query", "rain").out
    assert not CONTROL.search(piped)
    assert "\\x1b]0;owned\\x07\\x1b[2J\\x9b31m[bold red]rain[/bold red]" in piped
    assert ":smile:" in piped
    shown = on_terminal(hippoctl, "query", "rain")
    assert not CONTROL.search(re.sub("\x1b\\[[0-9;]+m", "", shown))


def test_error_text_prints_no_control_characters(hippoctl: Shell, scripted: Scripted) -> None:
    failed = LIST["documents"][0] | {"error": HOSTILE, "uri": f"file:///{HOSTILE}"}
    scripted.answers["GET /v1/documents"] = {"documents": [failed]}
    assert not CONTROL.search(hippoctl("ls").out)
    scripted.answers["GET /v1/status"] = lambda _: {"state": HOSTILE}
    assert not CONTROL.search(hippoctl("status").err)


UNIFORM = STATUS | {"extractors": STATUS["extractors"][:1]}


def test_status_lists_extractors_if_earlier_rules_extracted_some_passages(hippoctl: Shell, scripted: Scripted) -> None:
    scripted.answers["GET /v1/status"] = STATUS
    assert (
        "  extracted by  rules/6: 100 of 123 passages · rules/5: 23 of 123 passages, about 4 min 0 s to redo\n"
        in hippoctl("status").out
    )


def test_status_shows_counts_and_the_lag_of_each_source(hippoctl: Shell, scripted: Scripted) -> None:
    scripted.answers["GET /v1/status"] = UNIFORM
    assert hippoctl("status").out == (
        "hippod is ready · commit 42 · up 1 h 2 min · 512 MiB\n"
        "  documents  61 (2 pending, 1 failed)\n"
        "  memory     123 passages · 1,022 phrases · 900 triples\n"
        "  edges      1,700 relation · 900 mention · 2,500 context · 312 synonym\n"
        "  encoder    all-MiniLM-L6-v2\n"
        "  openie     rules\n"
        "  source  folder  /drive  following  lag 2\n"
        "  source  kafka   news    error      lag unknown  broker unreachable\n"
    )


def test_status_counts_what_is_skipped_and_excluded_by_reason(hippoctl: Shell, scripted: Scripted) -> None:
    folder = {"kind": "folder", "name": "/drive", "state": "watching", "lag": 0, "excluded": {"hidden": 12, "build": 1}}
    scripted.answers["GET /v1/status"] = UNIFORM | {"skipped": {"link": 1, "no text": 2}, "sources": [folder]}
    lines = hippoctl("status").out.splitlines()
    assert "  documents  61 (2 pending, 1 failed, 3 skipped: 2 no text, 1 link)" in lines
    assert lines[-1] == "    excluded 12 hidden, 1 build in /drive"


def test_ls_prints_a_table_with_complete_uris(hippoctl: Shell, scripted: Scripted) -> None:
    long = "file:///drive/" + "deep/" * 60 + "end.md"
    scripted.answers["GET /v1/documents"] = {"documents": [LIST["documents"][0], LIST["documents"][1] | {"uri": long}]}
    head, failed, why, indexed, last = hippoctl("ls", TZ="UTC").out.splitlines()
    assert head.split() == ["STATE", "PASSAGES", "COMMITTED", "DOCUMENT"]
    assert failed.split() == ["failed", "0", "-", "file:///drive/cut.pdf"]
    assert why.strip() == "damaged: copy it again (tried 3 times)"
    assert indexed.split() == ["indexed", "2", "2026-03-01", "12:00:00", long]
    assert last == "2 documents"
    assert long in on_terminal(hippoctl, "ls")


def test_parts_left_out_of_a_document_are_shown(hippoctl: Shell, scripted: Scripted) -> None:
    entry = LIST["documents"][1] | {
        "left_out": [{"kind": "attachment", "count": 1, "text": f"1 attachment: {HOSTILE}"}]
    }
    scripted.answers["GET /v1/documents"] = {"documents": [entry]}
    scripted.answers[f"GET {document_path(URI)}"] = SHOW | {"document": entry}
    for command in (["ls"], ["show", URI]):
        out = hippoctl(*command).out
        assert "1 attachment: \\x1b]0;owned" in out and "left out" in out and not CONTROL.search(out)
    scripted.answers["GET /v1/status"] = UNIFORM | {"left_out": {"page_without_text": 1200, "picture": 2}}
    assert "  left out   1,200 page without text · 2 picture\n" in hippoctl("status").out


def test_show_prints_a_card_with_neighbours_and_their_total(hippoctl: Shell, scripted: Scripted) -> None:
    scripted.answers[f"GET {document_path(URI)}"] = SHOW
    out = hippoctl("show", URI).out
    assert out.startswith("document  Søren\n")
    assert "format     markdown" in out
    assert "Phrases  2 of 250\n  søren aldvik · survey" in out
    assert "  søren aldvik · leads · survey" in out


def test_ask_shows_the_answer_its_sources_tokens_and_time(hippoctl: Shell, scripted: Scripted) -> None:
    scripted.answers["POST /v1/ask"] = ASK
    out = hippoctl("ask", "who?").out
    assert out.startswith("Emil Strand built it.\n\nSources\n 1  Emil Strand\n")
    assert out.endswith("1,200 + 30 tokens · 2,100 ms\n")


def test_progress_is_shown_on_stderr_of_a_terminal_only(hippoctl: Shell, scripted: Scripted) -> None:
    scripted.answers |= {"POST /v1/query": QUERY, "GET /v1/documents": LIST}
    (hippoctl.cwd / "q.json").write_text('[{"question": "who?", "documents": ["people/Søren.md"]}]')
    assert hippoctl("eval", "q.json").err == ""
    assert "evaluating" in on_terminal(hippoctl, "eval", "q.json")


def test_wait_shows_the_daemons_progress_on_a_terminal(hippoctl: Shell, scripted: Scripted) -> None:
    task = {"task": "index", "unit": "documents", "done": 1234, "total": 5000, "share": 0.2468, "rate": 24.7}
    working = UNIFORM | {"progress": [task | {"left_s": 152.5, "took_s": 50.0}]}

    def wait(_asked: object) -> dict[str, object]:
        deadline = monotonic() + 30
        while not asked_status and monotonic() < deadline:
            sleep(0.02)
        sleep(0.3)
        return STATUS

    def status(_asked: object) -> dict[str, object]:
        asked_status.append(True)
        return working

    asked_status: list[bool] = []
    scripted.answers |= {"POST /v1/wait": wait, "GET /v1/status": status}
    words = "1,234 of 5,000 documents (25 %) · 24.7 a second · 2 min 32 s left"
    assert words in on_terminal(hippoctl, "wait", COLUMNS="120")
    assert f"  index      {words}" in hippoctl("status").out
    assert hippoctl("wait").err == ""


def test_completion_script_is_for_the_given_shell_or_that_of_the_user(hippoctl: Shell, scripted: Scripted) -> None:
    assert "_HIPPOCTL_COMPLETE=zsh_complete" in hippoctl("completion", "zsh").out
    assert "_HIPPOCTL_COMPLETE=fish_complete" in hippoctl("completion", SHELL="/usr/bin/fish").out
    typed = "hippoctl query --mode d"
    assert hippoctl(COMP_WORDS=typed, COMP_CWORD="3", _HIPPOCTL_COMPLETE="bash_complete").out == "plain,dense\n"


EXPORTED = {"kind": "passage", "title": "a\u202eb\U0001d173", "text": "\x7f \x9b31m ü \u2066 \u00ad 👩\u200d🔬"}


def test_export_on_a_terminal_is_escaped_without_changing_its_meaning(hippoctl: Shell, scripted: Scripted) -> None:
    line = json.dumps(EXPORTED, ensure_ascii=False).encode() + b"\n"
    cut = line.index("\u202e".encode()) + 1
    scripted.answers["GET /v1/export"] = Reply(pieces=[line[:cut], line[cut:]])
    shown = on_terminal(hippoctl, "export", "-", TERM="dumb")
    assert not CONTROL.search(shown) and "ü" in shown and "\\u202e" in shown
    assert json.loads(shown) == EXPORTED
    assert hippoctl("export", "-").out.encode() == line, "in a pipe an export is content"


def test_graphml_export_on_a_terminal_is_escaped_without_changing_its_meaning(
    hippoctl: Shell, scripted: Scripted
) -> None:
    graph = "<graphml><data>a\u202eb \x9b31m ü</data></graphml>\n"
    scripted.answers["GET /v1/export"] = Reply(pieces=[graph.encode()])
    shown = on_terminal(hippoctl, "export", "-", "--format", "graphml", TERM="dumb")
    assert not CONTROL.search(shown)
    assert ElementTree.fromstring(shown).findtext("data") == "a\u202eb \x9b31m ü"
    refused = on_terminal(hippoctl, "export", "-", "--format", "igraph", TERM="dumb")
    assert refused == "hippoctl: igraph is not text for a terminal: give FILE, or pipe the output to a program.\n"


@pytest.mark.parametrize("coloured", [False, True])
def test_printed_line_has_no_control_characters(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, coloured: bool
) -> None:
    monkeypatch.setattr(output, "is_coloured", lambda _: coloured)
    line = Text(HOSTILE).append(HOSTILE, "bold").append_text(Text(HOSTILE))
    output.print_lines([line])
    output.print_lines([line], wrap=False)
    shown = capsys.readouterr().out
    assert ("\x1b[1m" in shown) == coloured
    assert not CONTROL.search(re.sub("\x1b\\[[0-9;]+m", "", shown))
    assert "[bold red]rain[/bold red]" in shown.replace("\n", " ")


def test_bad_source_states_are_red(hippoctl: Shell, scripted: Scripted) -> None:
    sources = [{"kind": "folder", "name": f"/{state}", "state": state, "lag": 0} for state in BAD_SOURCE_STATES]
    scripted.answers["GET /v1/status"] = STATUS | {"sources": sources}
    shown = on_terminal(hippoctl, "status")
    assert [state for state in BAD_SOURCE_STATES if f"\x1b[31m{state}\x1b[0m" not in shown] == []


def test_every_state_has_a_colour() -> None:
    states = {PAUSED, *BAD_SOURCE_STATES, *DaemonState, *DocumentState, *get_args(StateName), "joining", "following"}
    assert states - STATE_STYLES.keys() == set()
