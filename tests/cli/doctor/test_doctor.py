"""`doctor`: one line a check, what to do about each that is not well, and the exit code of the worst."""

import os
import socket
from pathlib import Path

import pytest

from cli.client.address import Address
from cli.commands import doctor as doctor_command
from cli.commands.doctor import worst
from cli.errors import Exit
from daemon.contract.finding import Finding
from daemon.contract.status import BAD_SOURCE_STATES, SourceStatus, Status
from memory.encoder.hashing import HashEncoder
from tests.cli.sample_answers import LIST, STATUS
from tests.cli.scripted_daemon import Here, Scripted, Shell, problem
from tests.e2e.real_hippod import Ran

pytestmark = pytest.mark.daemon


@pytest.fixture
def nothing_inspected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces `hippod --inspect`, which takes two seconds, by a program without findings.

    For tests of what hippoctl itself makes of a daemon's answers.
    """
    program = script(tmp_path / "inspects-nothing", """echo '{"findings": []}'""")
    monkeypatch.setattr(doctor_command, "find_hippod", lambda: program)


def script(path: Path, body: str) -> str:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def by_name(ended: Ran) -> dict[str, dict[str, str]]:
    return {check["name"]: check for check in ended.json["checks"]}


def test_healthy_daemon_passes_all_checks(here: Here, scripted: Scripted, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        f'[store]\npath = "{tmp_path}/store"\n[encoder]\nbackend = "hash"\n[[folder]]\npath = "drive"\n'
    )
    (tmp_path / "drive").mkdir()
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


@pytest.mark.usefixtures("nothing_inspected")
def test_a_source_in_error_and_failed_documents_are_reported_with_what_to_do(here: Here, scripted: Scripted) -> None:
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


@pytest.mark.usefixtures("nothing_inspected")
def test_skipped_documents_and_exclusions_are_counted_by_reason(here: Here, scripted: Scripted) -> None:
    """`none failed` would hide them."""
    folder = {"kind": "folder", "name": "/drive", "state": "watching", "lag": 0, "excluded": {"hidden": 3, "build": 1}}
    status = STATUS | {"failed": 0, "skipped": {"no text": 2, "too large": 9}, "sources": [folder]}
    scripted.answers |= {"GET /v1/status": status, "GET /v1/documents": LIST}
    checks = by_name(here("--json", "doctor"))
    assert checks["documents"] == {
        "name": "documents",
        "status": "ok",
        "detail": "61 documents, 2 pending, 0 failed, 11 skipped (9 too large, 2 no text)",
        "hint": "`hippoctl ls --state skipped` says why",
    }
    assert checks["folder /drive"]["detail"] == "watching, up to date, 4 excluded (3 hidden, 1 build)"
    scripted.answers["GET /v1/status"] = status | {"failed": 1}
    checks = by_name(here("--json", "doctor"))
    assert (
        "1 failed, 11 skipped (9 too large, 2 no text), such as file:///drive/cut.pdf" in checks["documents"]["detail"]
    )


@pytest.mark.parametrize("state", BAD_SOURCE_STATES)
def test_source_in_a_bad_state_is_a_failure(state: str) -> None:
    assert doctor_command.source(SourceStatus(kind="kafka", name="news", state=state)).status == "fail"


@pytest.mark.usefixtures("nothing_inspected")
def test_daemon_that_cannot_commit_is_a_failure(here: Here, scripted: Scripted) -> None:
    refused = "OSError: [Errno 122] Disk quota exceeded"
    well = STATUS | {"failed": 0, "sources": STATUS["sources"][:1]}
    scripted.answers["GET /v1/status"] = well | {"trouble": refused}
    ended = here("--json", "doctor")
    commits = by_name(ended)["commits"]
    assert ended.code == 1
    assert (commits["status"], commits["detail"]) == ("fail", refused)


@pytest.mark.usefixtures("nothing_inspected")
def test_encoder_with_many_indistinct_phrases_is_a_warning_with_a_hint(here: Here, scripted: Scripted) -> None:
    scripted.answers["GET /v1/documents"] = LIST
    for unknown, crowded, told in ((400, 100, True), (0, 300, True), (101, 0, True), (100, 0, False), (5, 0, False)):
        phrases = {"phrases": 2_000, "indistinct_phrases": {"unknown": unknown, "crowded": crowded}}
        scripted.answers["GET /v1/status"] = STATUS | phrases
        check = by_name(here("--json", "doctor")).get("languages")
        assert (check is not None) == told, (unknown, crowded)
        if check is not None:
            assert check["status"] == "warn"
            assert STATUS["encoder"] in check["detail"]
            assert "make install EXTRAS=multilingual" in check["hint"]
            assert "multilingual-e5-small-4bit" in check["hint"]
    scripted.answers["GET /v1/status"] = STATUS
    assert "languages" not in by_name(here("--json", "doctor"))


@pytest.mark.usefixtures("nothing_inspected")
def test_english_encoder_with_documents_of_other_languages_is_a_warning(here: Here, scripted: Scripted) -> None:
    scripted.answers["GET /v1/documents"] = LIST
    for encoder, languages, told in (
        (STATUS["encoder"], {"en": 0.7, "de": 0.2, "zh": 0.1}, True),
        (STATUS["encoder"], {"de": 1.0}, True),
        (STATUS["encoder"], {"en": 0.9, "de": 0.1}, False),
        ("multilingual-e5-small-4bit", {"de": 1.0}, False),
    ):
        scripted.answers["GET /v1/status"] = STATUS | {"encoder": encoder, "languages": languages}
        check = by_name(here("--json", "doctor")).get("languages")
        assert (check is not None) == told, (encoder, languages)
        if check is not None:
            assert check["status"] == "warn"
            assert f"{languages['de']:.0%} de" in check["detail"]
            assert "multilingual" in check["hint"]


def test_passages_of_older_rules_are_a_warning_unless_reextraction_is_running() -> None:
    running = {"task": "reextract", "unit": "passages", "done": 1, "took_s": 1.0}
    present = [{"name": "rules/6", "passages": 123}]
    for changes, expected in (({}, "warn"), ({"progress": [running]}, "ok"), ({"extractors": present}, "ok")):
        [found] = doctor_command.contents(Status.model_validate(STATUS | changes))
        assert found.status == expected
        assert ("hippoctl reextract" in found.hint) == (expected == "warn")
    [found] = doctor_command.contents(Status.model_validate(STATUS))
    assert "rules/5: 23 of 123 passages, about 4 min 0 s to redo" in found.detail
    assert "reader/5: 61 of 61 documents" in found.detail
    unknown: dict[str, list[object]] = {"extractors": [], "readers": [], "encoders": []}
    assert list(doctor_command.contents(Status.model_validate(STATUS | unknown))) == [], "an older daemon"


def test_no_daemon_exits_with_3_and_other_checks_run(here: Here) -> None:
    ended = here("--json", "--socket", "absent.sock", "doctor")
    checks = by_name(ended)
    assert ended.code == 3
    assert (checks["socket"]["status"], checks["python"]["status"]) == ("fail", "ok")
    assert "start hippod" in checks["socket"]["hint"]


@pytest.mark.usefixtures("nothing_inspected")
def test_daemon_that_refuses_the_status_is_one_failed_check(here: Here, scripted: Scripted) -> None:
    scripted.answers["GET /v1/status"] = problem("internal", 500, "An error of hippod's own.")
    ended = here("--json", "doctor")
    assert (ended.code, by_name(ended)["daemon"]["detail"]) == (1, "An error of hippod's own.")


def test_configuration_with_invalid_toml_exits_with_2(here: Here, scripted: Scripted, tmp_path: Path) -> None:
    scripted.answers["GET /v1/status"] = STATUS | {"failed": 0, "sources": []}
    (tmp_path / "config.toml").write_text("[api\n")
    ended = here("--json", "doctor")
    assert (ended.code, by_name(ended)["configuration"]["status"]) == (2, "fail")


def test_socket_check_requires_a_writable_but_not_world_writable_socket(tmp_path: Path, scripted: Scripted) -> None:
    plain = tmp_path / "plain"
    plain.write_text("")
    checked = [doctor_command.socket(Address(path, "--socket")) for path in (plain, tmp_path / "absent")]
    assert [(check.status, check.exit_code) for check in checked] == [("fail", Exit.NO_DAEMON)] * 2
    scripted.socket.chmod(0o666)
    assert doctor_command.socket(Address(scripted.socket, "--socket")).status == "warn"
    scripted.socket.chmod(0o660)
    assert doctor_command.socket(Address(scripted.socket, "--socket")).status == "ok"
    if os.geteuid() != 0:
        scripted.socket.chmod(0o000)
        assert doctor_command.socket(Address(scripted.socket, "--socket")).status == "fail"


@pytest.mark.parametrize(
    ("encoder", "status"), [(HashEncoder().identity.name, "warn"), ("hash-256", "warn"), ("all-MiniLM-L6-v2", "ok")]
)
def test_hash_encoder_is_a_warning(encoder: str, status: str) -> None:
    assert doctor_command.encoder(Status.model_validate(STATUS | {"encoder": encoder})).status == status


def test_source_that_is_following_is_ok_and_one_with_a_detail_a_warning() -> None:
    check = doctor_command.source(SourceStatus(kind="folder", name="/drive", state="following", lag=3))
    assert (check.status, check.detail) == ("ok", "following, 3 changes to read")
    polling = {"kind": "folder", "name": "/drive", "state": "polling", "lag": 0, "detail": "raise max_user_watches"}
    check = doctor_command.source(SourceStatus.model_validate(polling))
    assert (check.status, check.detail) == ("warn", "polling, up to date: raise max_user_watches")


def test_missing_folder_that_this_user_sees_gets_a_hint_about_the_unit(tmp_path: Path) -> None:
    seen = doctor_command.source(SourceStatus(kind="folder", name=str(tmp_path), state="missing", lag=0))
    assert (seen.status, "BindReadOnlyPaths" in seen.hint) == ("fail", True)
    gone = doctor_command.source(SourceStatus(kind="folder", name=str(tmp_path / "gone"), state="missing", lag=0))
    assert (gone.status, "BindReadOnlyPaths" in gone.hint) == ("fail", False)


@pytest.mark.usefixtures("nothing_inspected")
def test_socket_without_a_listener_is_a_failure(here: Here, scripted: Scripted) -> None:
    stale = scripted.socket.with_name("stale")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(stale))
    ended = here("--json", "--socket", str(stale), "doctor")
    check = by_name(ended)["socket"]
    assert (ended.code, check["status"]) == (3, "fail")
    assert "no process listens" in check["detail"]
    assert "start hippod" in check["hint"]


def test_checks_include_the_findings_of_hippod_inspect(hippoctl: Shell, scripted: Scripted, tmp_path: Path) -> None:
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


def test_configuration_refused_by_hippod_gives_the_usage_exit_code(tmp_path: Path) -> None:
    found = (
        '{"findings": [{"name": "configuration", "status": "fail", "detail": "api.mode: octal", "hint": "correct it"}]}'
    )
    refusing = script(tmp_path / "refusing", f'[ "$1 $3" = "--config --inspect" ] && echo \'{found}\'; exit 2')
    [refused] = doctor_command.inspection(tmp_path / "config.toml", refusing)
    assert refused == Finding("configuration", "fail", "api.mode: octal", "correct it", Exit.USAGE)
    assert [each.status for each in doctor_command.inspection(None, None)] == ["warn"]
    assert [each.status for each in doctor_command.inspection(None, str(tmp_path / "absent"))] == ["fail"]


def test_inspection_that_hangs_or_prints_no_json_is_one_failed_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.toml"
    [nonsense] = doctor_command.inspection(file, script(tmp_path / "nonsense", "echo no JSON; echo broken >&2"))
    assert (nonsense.status, nonsense.detail) == ("fail", "broken")
    monkeypatch.setattr(doctor_command, "INSPECT_TIMEOUT_S", 0.3)
    [hanging] = doctor_command.inspection(file, script(tmp_path / "hanging", "exec sleep 60"))
    assert (hanging.status, "hangs" in hanging.hint) == ("fail", True)


def test_the_worst_failure_gives_the_exit_code() -> None:
    checks = [Finding("a", "ok", ""), Finding("b", "warn", "", exit_code=Exit.NO_DAEMON), Finding("c", "fail", "")]
    assert worst(checks) == Exit.FAILED
    assert worst([*checks, Finding("d", "fail", "", exit_code=Exit.NO_DAEMON)]) == Exit.NO_DAEMON
    assert worst(checks[:2]) == Exit.DONE
