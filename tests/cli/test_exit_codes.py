"""Every way a command can end has its exit code and one readable sentence on stderr."""

import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from time import monotonic, sleep

import pytest

from cli.command_line import run
from cli.options.time_type import Duration
from daemon.contract.http.routes import TIMEOUT_MAX_S
from tests.cli.sample_answers import LIST, QUERY, STATUS
from tests.cli.scripted_daemon import Reply, Scripted, Shell, problem


@pytest.mark.process
def test_missing_socket_exits_with_3(hippoctl: Shell, tmp_path: Path) -> None:
    ended = hippoctl("--socket", "absent.sock", "status")
    assert (ended.code, ended.out) == (3, "")
    assert f"no hippod answers on {tmp_path}/absent.sock" in ended.err
    assert "Start it with `hippod`" in ended.err


@pytest.mark.process
def test_socket_without_a_listener_exits_with_3(
    hippoctl: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX) as left_over:
        monkeypatch.chdir(tmp_path)
        left_over.bind("stale.sock")
    ended = hippoctl("--socket", "stale.sock", "status")
    assert (ended.code, "no process listens" in ended.err) == (3, True)


@pytest.mark.process
def test_connection_lost_during_the_answer_exits_with_3(hippoctl: Shell, scripted: Scripted) -> None:
    scripted.answers["GET /v1/status"] = Reply(pieces=[b'{"state":', ConnectionError()])
    ended = hippoctl("status")
    assert (ended.code, "closed the connection" in ended.err) == (3, True)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["frobnicate"],
        ["query"],
        ["query", " "],
        ["query", "who?", "-k", "0"],
        ["query", "who?", "--mode", "psychic"],
        ["query", "who?", "--as-of", "yesterday"],
        ["query", "who?", "--as-of", "9" * 5_000],
        ["query", "who?", "--after", f"added={'9' * 5_000}"],
        ["eval", "q.json", "--continual", "3", "--segment", "9" * 5_000],
        ["query", "who?", "--source", ""],
        ["query", "who?", "--in", ""],
        ["export", "--source", ""],
        ["wait", "--timeout", "nan"],
        ["wait", "--timeout", "60 fortnights"],
        ["wait", "--timeout", "8d"],
        ["ask", "who?", "--only", "local"],
        ["ask", "who?", "--steps", "3", "--session", "s"],
        ["ask", "who?", "--max-calls", "3"],
        ["ask", "who?", "--deep", "--timeout", "0"],
        ["ask", "who?", "--deep", "--session", "../s"],
        ["ask", "who?", "--trace", "no/such/folder/t.json"],
        ["eval", "q.json", "--k", "2,many"],
        ["eval", "q.json", "--compare", "dense,psychic"],
        ["eval", "q.json", "--compare", f"fused {'damping=0.5 ' * 30}psychic=1"],
        ["ls", "--state", "lost"],
        ["rm"],
    ],
    ids=lambda arguments: " ".join(arguments)[:60],
)
def test_wrong_usage_exits_with_2(
    scripted: Scripted, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setenv("HIPPOD_SOCKET", str(scripted.socket))
    code, shown = run(arguments), capsys.readouterr()
    assert (code, shown.out) == (2, "")
    assert "Usage: hippoctl" in shown.err
    assert scripted.asked == []


@pytest.mark.process
def test_missing_llm_configuration_exits_with_4_and_the_daemons_hint(hippoctl: Shell, scripted: Scripted) -> None:
    hint = 'No LLM is configured: set "base_url" and "model" in section [llm] and restart.'
    scripted.answers["POST /v1/ask"] = problem("not-configured", 409, hint)
    ended = hippoctl("ask", "who?")
    assert (ended.code, ended.err) == (4, f"hippoctl: {hint}\n")


@pytest.mark.process
def test_wait_beyond_its_timeout_exits_with_5(hippoctl: Shell, scripted: Scripted) -> None:
    scripted.answers["POST /v1/wait"] = problem("timed-out", 409, "2 documents are still pending after 1 s.")
    assert hippoctl("wait", "--timeout", "60").code == 5
    assert 0 < scripted.asked[0].body["timeout_s"] <= 60


@pytest.mark.process
def test_daemon_not_ready_within_the_timeout_exits_with_5(hippoctl: Shell, scripted: Scripted) -> None:
    scripted.answers["POST /v1/wait"] = problem("not-ready", 503, "hippod is starting.", retry_after_s=1)
    ended = hippoctl("wait", "--timeout", "1")
    assert (ended.code, "hippod is starting" in ended.err) == (5, True)


@pytest.mark.process
def test_refused_request_exits_with_1_and_one_sentence(hippoctl: Shell, scripted: Scripted) -> None:
    errors = [{"field": "k", "message": "is too large", "allowed": ["1", "1000"]}]
    scripted.answers["POST /v1/query"] = problem("invalid", 422, "The request is not valid.", errors=errors)
    ended = hippoctl("query", "who?")
    assert ended.code == 1
    assert ended.err == "hippoctl: The request is not valid: k: is too large (allowed: 1, 1000).\n"


@pytest.mark.process
def test_answer_of_another_program_exits_with_1(hippoctl: Shell, scripted: Scripted) -> None:
    scripted.answers["GET /v1/status"] = Reply(b"<html>hello</html>")
    assert "does not answer like hippod" in hippoctl("status").err
    scripted.answers["GET /v1/status"] = {"state": "ready"}
    ended = hippoctl("status")
    assert (ended.code, "is not understood: commit" in ended.err) == (1, True)


@pytest.mark.process
def test_failure_with_json_prints_one_json_document(hippoctl: Shell, scripted: Scripted) -> None:
    refused = problem("not-configured", 409, "No LLM is configured.")
    scripted.answers["POST /v1/ask"] = refused
    assert hippoctl("--json", "ask", "who?").json == refused.body
    assert "no hippod answers" in hippoctl("--json", "--socket", "absent", "status").json["detail"]
    assert "psychic" in hippoctl("query", "who?", "--mode", "psychic", "--json").json["detail"]


@pytest.mark.process
def test_failure_reported_in_the_answer_prints_no_second_json_document(hippoctl: Shell, scripted: Scripted) -> None:
    stopped = {
        "extractor": "m",
        "requeued": 0,
        "waiting": 0,
        "failed": 1,
        "running": False,
        "error": "no room",
        "spent": [],
    }
    scripted.answers["POST /v1/backfill"] = stopped
    ended = hippoctl("--json", "backfill")
    assert (ended.code, ended.json["error"]) == (1, "no room")
    assert "extraction stopped: no room" in ended.err


@pytest.mark.process
def test_restore_imports_no_python_file_of_the_current_folder(hippoctl: Shell, tmp_path: Path) -> None:
    (tmp_path / "structlog.py").write_text("raise SystemExit('somebody else wrote this')")
    (tmp_path / "empty").mkdir()
    (tmp_path / "hippod.toml").write_text(f'[store]\npath = "{tmp_path}/store"\n')
    ended = hippoctl("restore", "empty", "--config", "hippod.toml")
    assert ended.code == 1
    assert "somebody else" not in ended.err
    assert "empty" in ended.err


@pytest.mark.process
def test_request_is_repeated_while_the_daemon_starts(hippoctl: Shell, scripted: Scripted) -> None:
    starting = [problem("not-ready", 503, "hippod is starting.", retry_after_s=0.1)] * 2
    scripted.answers["POST /v1/query"] = lambda _: starting.pop() if starting else QUERY
    ended = hippoctl("--json", "query", "who?")
    assert (ended.code, ended.json) == (0, QUERY)
    assert ended.err.count("hippod is starting. Waiting.") == 1


@pytest.mark.process
def test_an_interrupt_leaves_130_and_no_traceback(hippoctl: Shell, scripted: Scripted) -> None:
    release = threading.Event()
    scripted.answers["POST /v1/wait"] = lambda _: (release.wait(30), STATUS)[1]
    process = hippoctl.start("wait", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = monotonic() + 30
    while not scripted.asked and monotonic() < deadline:
        sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    release.set()
    assert (process.returncode, out, err) == (130, b"", b"")


@pytest.mark.process
def test_closed_pipe_exits_with_141_and_prints_no_error(hippoctl: Shell, scripted: Scripted) -> None:
    many = [entry | {"uri": f"file:///{'x' * 100}/{number}"} for number in range(5_000) for entry in LIST["documents"]]
    scripted.answers["GET /v1/documents"] = {"documents": many}
    for arguments in (["ls"], ["ls", "--json"]):
        process = hippoctl.start(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None and process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        process.stderr.close()
        assert process.wait(30) == 141


@pytest.mark.process
def test_unwritable_standard_output_exits_with_1_and_one_sentence(hippoctl: Shell, scripted: Scripted) -> None:
    scripted.answers["GET /v1/documents"] = LIST
    for arguments in (["ls"], ["ls", "--json"]):
        with Path("/dev/full").open("wb") as full:
            process = hippoctl.start(*arguments, stdout=full, stderr=subprocess.PIPE)
            _, err = process.communicate(timeout=30)
        assert err == b"hippoctl: standard output cannot be written: No space left on device.\n"
        assert process.returncode == 1


@pytest.mark.process
def test_error_of_a_path_is_one_sentence(hippoctl: Shell) -> None:
    long = "x" * 300
    ended = hippoctl("--json", "ask", "who?", "--trace", f"{long}/trace.json")
    assert ended.code == 1
    assert ended.err.startswith("hippoctl: ") and ended.err.endswith(f"{long} cannot be used: File name too long.\n")
    assert "File name too long" in ended.json["detail"]


@pytest.mark.process
def test_missing_current_directory_is_named(hippoctl: Shell, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    command = ["sh", "-c", 'rmdir "$PWD"; exec "$@"', "sh", sys.executable, "-P", "-m", "cli.main", "status"]
    environ = hippoctl.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, cwd=gone, env=environ, capture_output=True, text=True, check=False)
    assert done.stderr == "hippoctl: the current directory cannot be found: No such file or directory.\n"
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("written", "seconds"), [("60", 60), ("60s", 60), ("0.5", 0.5), ("1h30m", 5400), ("2 min", 120), ("1500ms", 1.5)]
)
def test_a_time_limit_is_written_as_in_the_configuration(written: str, seconds: float) -> None:
    assert Duration(TIMEOUT_MAX_S).convert(written, None, None) == seconds


@pytest.mark.process
def test_wait_takes_a_time_limit_with_a_unit(hippoctl: Shell, scripted: Scripted) -> None:
    scripted.answers["POST /v1/wait"] = STATUS
    assert hippoctl("wait", "--timeout", "60s").code == 0
    assert 59 < scripted.asked[-1].body["timeout_s"] <= 60


@pytest.mark.process
def test_hippod_that_cannot_start_exits_with_3(hippoctl: Shell, scripted: Scripted) -> None:
    scripted.answers["GET /v1/status"] = problem("cannot-start", 503, "hippod cannot start")
    ended = hippoctl("status")
    assert (ended.code, "hippod cannot start" in ended.err) == (3, True)
