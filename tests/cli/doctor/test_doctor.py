"""`doctor`: one line a check, what to do about each that is not well, and the exit code of the worst."""

import os
import socket
from pathlib import Path

import pytest

from cli.commands.doctor import worst
from cli.doctor import configuration, machine
from cli.doctor import daemon as daemons
from cli.doctor import server_checks as inspections
from cli.errors import Exit
from daemon.contract.finding import Finding
from daemon.contract.status import BAD_SOURCE_STATES, SourceStatus, Status
from memory.encoder.hashing import HashEncoder
from tests.cli.sample_answers import LIST, STATUS
from tests.cli.scripted_daemon import Here, Scripted, Shell, problem


def by_name(ended: object) -> dict[str, dict[str, str]]:
    return {check["name"]: check for check in ended.json["checks"]}  # type: ignore[attr-defined]


def test_a_daemon_that_is_well(here: Here, scripted: Scripted) -> None:
    well = STATUS | {"failed": 0, "sources": STATUS["sources"][:1]}
    scripted.answers["GET /v1/status"] = well
    scripted.socket.chmod(0o660)
    ended = here("--json", "doctor")
    checks = by_name(ended)
    assert (ended.code, ended.err) == (0, "")
    assert {"python", "clock", "inotify", "configuration", "socket", "daemon", "encoder", "documents"} <= set(checks)
    assert checks["daemon"]["detail"] == "ready, commit 42, up 1 h 2 min, 512 MiB"
    assert checks["folder /drive"]["status"] == "ok"
    assert checks["documents"]["detail"] == "61 documents, 2 pending, none failed"


def test_a_source_in_error_and_failed_documents_are_told_with_what_to_do(here: Here, scripted: Scripted) -> None:
    scripted.answers |= {"GET /v1/status": STATUS, "GET /v1/documents": LIST}
    ended = here("--json", "doctor")
    checks = by_name(ended)
    assert ended.code == 1
    assert (checks["kafka news"]["status"], checks["kafka news"]["detail"]) == ("fail", "error: broker unreachable")
    assert checks["documents"]["status"] == "warn"
    assert "file:///drive/cut.pdf: damaged: copy it again" in checks["documents"]["detail"]
    assert "hippoctl ls --state failed" in checks["documents"]["hint"]
    lines = here("doctor").out.splitlines()
    assert len(lines) == len(checks)
    assert {line.split()[0] for line in lines} == {"ok", "warn", "fail"}


@pytest.mark.parametrize("state", BAD_SOURCE_STATES)
def test_a_source_that_reads_nothing_has_failed(state: str) -> None:
    assert daemons.source(SourceStatus(kind="kafka", name="news", state=state)).status == "fail"


def test_an_encoder_that_does_not_know_the_language_is_named_with_what_to_set(here: Here, scripted: Scripted) -> None:
    scripted.answers["GET /v1/documents"] = LIST
    for unknown, crowded, told in ((400, 100, True), (0, 300, True), (101, 0, True), (100, 0, False), (5, 0, False)):
        phrases = {"phrases": 2_000, "indistinct_phrases": {"unknown": unknown, "crowded": crowded}}
        scripted.answers["GET /v1/status"] = STATUS | phrases
        check = by_name(here("--json", "doctor")).get("languages")
        assert (check is not None) == told, (unknown, crowded)
        if check is not None:
            assert check["status"] == "warn"
            assert STATUS["encoder"] in check["detail"]
            assert "paraphrase-multilingual-MiniLM-L12-v2" in check["hint"]
    scripted.answers["GET /v1/status"] = STATUS
    assert "languages" not in by_name(here("--json", "doctor"))


def test_3_when_no_daemon_answers_and_the_other_checks_are_made(here: Here) -> None:
    ended = here("--json", "--socket", "absent.sock", "doctor")
    checks = by_name(ended)
    assert ended.code == 3
    assert (checks["socket"]["status"], checks["python"]["status"]) == ("fail", "ok")
    assert "start hippod" in checks["socket"]["hint"]


def test_a_daemon_that_refuses_is_one_failed_check(here: Here, scripted: Scripted) -> None:
    scripted.answers["GET /v1/status"] = problem("internal", 500, "An error of hippod's own.")
    ended = here("--json", "doctor")
    assert (ended.code, by_name(ended)["daemon"]["detail"]) == (1, "An error of hippod's own.")


def test_a_configuration_that_is_no_toml_is_exit_2(here: Here, scripted: Scripted, tmp_path: Path) -> None:
    scripted.answers["GET /v1/status"] = STATUS | {"failed": 0, "sources": []}
    (tmp_path / "config.toml").write_text("[api\n")
    ended = here("--json", "doctor")
    assert (ended.code, by_name(ended)["configuration"]["status"]) == (2, "fail")


def script(path: Path, body: str) -> str:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.process
def test_what_hippod_says_of_the_configuration_is_passed_on(tmp_path: Path) -> None:
    good = script(tmp_path / "good", '[ "$1 $3" = "--config --check" ]')
    bad = script(tmp_path / "bad", 'echo "config.toml: api.mode: octal" >&2; exit 2')
    file = tmp_path / "config.toml"
    assert configuration.validity(file, good).status == "ok"
    wrong = configuration.validity(file, bad)
    assert (wrong.status, wrong.detail, wrong.exit_code) == ("fail", "config.toml: api.mode: octal", Exit.USAGE)
    assert configuration.validity(file, None).status == "warn"
    assert configuration.validity(file, str(tmp_path / "absent")).status == "fail"


@pytest.mark.daemon
def test_what_systemd_gives_to_the_service_alone_is_no_mistake_of_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    file = tmp_path / "config.toml"
    file.write_text('[api]\ntcp = "127.0.0.1:7411"\ntoken_file = "$CREDENTIALS_DIRECTORY/token"\n')
    [found] = [each for each in configuration.configuration(file, {}) if each.name == "configuration"]
    assert (found.status, f"HIPPOD_CONFIG={file} hippoctl doctor" in found.hint) == ("warn", True)
    file.write_text(file.read_text() + "[store]\npth = 1\n")
    [found] = [each for each in configuration.configuration(file, {}) if each.name == "configuration"]
    assert found.status == "fail"


def test_an_llm_is_checked_only_where_one_is_configured() -> None:
    assert configuration.llm({}).status == "ok"
    for address in ("http://127.0.0.1:1/v1", "http://[", "nonsense"):
        down = configuration.llm({"base_url": address, "model": "m"})
        assert (down.status, "[llm] base_url" in down.hint) == ("fail", True)


def test_watches_must_be_enough_for_the_folders(tmp_path: Path) -> None:
    (tmp_path / "drive/a/b").mkdir(parents=True)
    limits = tmp_path / "limits"
    limits.mkdir()
    (limits / "max_user_instances").write_text("128\n")
    for most, status in (("100\n", "ok"), ("3\n", "warn")):
        (limits / "max_user_watches").write_text(most)
        check = machine.watches([tmp_path / "drive"], limits)
        assert (check.status, "3 directories" in check.detail) == (status, True)
    assert machine.watches([tmp_path], tmp_path / "absent").status == "warn"


def test_a_polled_folder_takes_no_watches(
    here: Here, scripted: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever follows the hint and sets `polling = true` is warned no longer."""
    (tmp_path / "drive/a/b").mkdir(parents=True)
    limits = tmp_path / "limits"
    limits.mkdir()
    (limits / "max_user_watches").write_text("3\n")
    monkeypatch.setattr(machine, "_INOTIFY", limits)
    monkeypatch.setattr(configuration, "_hippod", lambda: None)
    scripted.answers["GET /v1/status"] = STATUS
    followed = '[[folder]]\npath = "drive"\n'
    for polling, status in (("", "warn"), ("polling = false\n", "warn"), ("polling = true\n", "ok")):
        (tmp_path / "config.toml").write_text(followed + polling)
        assert by_name(here("--json", "doctor"))["inotify"]["status"] == status
    (limits / "max_user_watches").unlink()
    assert by_name(here("--json", "doctor"))["inotify"]["status"] == "ok"


def test_python_and_clock() -> None:
    assert [machine.python(version).status for version in ((3, 10), (3, 11), (3, 14))] == ["fail", "ok", "ok"]
    assert [machine.clock(now, 1_000_000.0).status for now in (0.0, 2_000_000.0)] == ["warn", "ok"]


def test_a_socket_must_be_one_that_this_user_may_write_to(tmp_path: Path, scripted: Scripted) -> None:
    plain = tmp_path / "plain"
    plain.write_text("")
    checked = [daemons.socket(daemons.Address(path, "--socket")) for path in (plain, tmp_path / "absent")]
    assert [(check.status, check.exit_code) for check in checked] == [("fail", Exit.NO_DAEMON)] * 2
    scripted.socket.chmod(0o666)
    assert daemons.socket(daemons.Address(scripted.socket, "--socket")).status == "warn"
    scripted.socket.chmod(0o660)
    assert daemons.socket(daemons.Address(scripted.socket, "--socket")).status == "ok"
    if os.geteuid() != 0:
        scripted.socket.chmod(0o000)
        assert daemons.socket(daemons.Address(scripted.socket, "--socket")).status == "fail"


@pytest.mark.parametrize(
    ("encoder", "status"), [(HashEncoder().identity.name, "warn"), ("hash-256", "warn"), ("all-MiniLM-L6-v2", "ok")]
)
def test_an_encoder_that_knows_no_meaning_is_told(encoder: str, status: str) -> None:
    assert daemons.encoder(Status.model_validate(STATUS | {"encoder": encoder})).status == status


def test_a_source_that_still_reads_is_well() -> None:
    check = daemons.source(SourceStatus(kind="folder", name="/drive", state="following", lag=3))
    assert (check.status, check.detail) == ("ok", "following, 3 changes to read")
    fallen_back = SourceStatus(kind="folder", name="/drive", state="polling", lag=0, detail="raise max_user_watches")
    check = daemons.source(fallen_back)
    assert (check.status, check.detail) == ("warn", "polling, up to date: raise max_user_watches")


def test_a_folder_that_only_hippod_cannot_see_is_hidden_from_it(tmp_path: Path) -> None:
    seen = daemons.source(SourceStatus(kind="folder", name=str(tmp_path), state="missing", lag=0))
    assert (seen.status, "BindReadOnlyPaths" in seen.hint) == ("fail", True)
    gone = daemons.source(SourceStatus(kind="folder", name=str(tmp_path / "gone"), state="missing", lag=0))
    assert (gone.status, "BindReadOnlyPaths" in gone.hint) == ("fail", False)


def test_a_socket_that_nobody_listens_on_is_told(here: Here, scripted: Scripted) -> None:
    stale = scripted.socket.with_name("stale")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(stale))
    ended = here("--json", "--socket", str(stale), "doctor")
    check = by_name(ended)["socket"]
    assert (ended.code, check["status"]) == (3, "fail")
    assert "nobody listens" in check["detail"]
    assert "start hippod" in check["hint"]


@pytest.mark.process
def test_what_hippod_finds_is_among_the_checks(hippoctl: Shell, scripted: Scripted, tmp_path: Path) -> None:
    """One that the configuration's check finds, then one that only hippod's own look finds; both by the real hippod."""
    scripted.answers["GET /v1/status"] = STATUS | {"failed": 0, "sources": STATUS["sources"][:1]}
    file = tmp_path / "config.toml"
    file.write_text('[encoder]\nbackend = "hash"\n[api]\nsokcet = "s"\n')
    ended = hippoctl("--json", "doctor")
    assert ended.code == 2
    assert "sokcet" in by_name(ended)["configuration"]["detail"]
    token = tmp_path / "token"
    token.write_text("t" * 40)
    token.chmod(0o644)
    file.write_text('[encoder]\nbackend = "hash"\n[api]\ntcp = "127.0.0.1:7411"\ntoken_file = "token"\n')
    checks = by_name(hippoctl("--json", "doctor"))
    assert checks["token_file"]["status"] == "warn"
    assert f"chmod o-rwx {token}" in checks["token_file"]["hint"]
    assert {"packages", "memory", "open files", "store", "disk", "llm"} <= set(checks)


@pytest.mark.process
def test_an_inspection_that_hangs_or_says_nonsense_is_one_failed_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.toml"
    [nonsense] = inspections.inspection(file, script(tmp_path / "nonsense", "echo no JSON; echo broken >&2"))
    assert (nonsense.status, nonsense.detail) == ("fail", "broken")
    monkeypatch.setattr(inspections, "INSPECT_S", 0.3)
    [hanging] = inspections.inspection(file, script(tmp_path / "hanging", "exec sleep 60"))
    assert (hanging.status, "hangs" in hanging.hint) == ("fail", True)


def test_a_configuration_directory_that_everyone_may_write_to(tmp_path: Path) -> None:
    assert list(machine.permissions(tmp_path)) == []
    tmp_path.chmod(0o777)
    assert [check.status for check in machine.permissions(tmp_path)] == ["warn"]
    tmp_path.chmod(0o700)


def test_the_worst_failure_gives_the_exit_code() -> None:
    checks = [Finding("a", "ok", ""), Finding("b", "warn", "", exit_code=Exit.NO_DAEMON), Finding("c", "fail", "")]
    assert worst(checks) == Exit.FAILED
    assert worst([*checks, Finding("d", "fail", "", exit_code=Exit.NO_DAEMON)]) == Exit.NO_DAEMON
    assert worst(checks[:2]) == Exit.DONE
