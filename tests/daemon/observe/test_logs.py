"""Logging: one line an event, the same fields everywhere, readable or JSON, without secrets or documents' text."""

import io
import json
import logging
import os
import pty
import re
import socket
import warnings
from pathlib import Path
from typing import Any

import pytest
import structlog

from daemon.observe import journal as journal_module
from daemon.observe import logs
from memory.encoder.errors import EncoderServerDown
from memory.llm.errors import ModelDown


@pytest.fixture(autouse=True)
def put_back():
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    yield
    root.setLevel(level)
    for handler in [each for each in root.handlers if each not in handlers]:
        root.removeHandler(handler)
    for name in logs.OWN:
        logging.getLogger(name).setLevel(logging.NOTSET)
    logs._secrets.clear()
    logging.captureWarnings(False)
    structlog.reset_defaults()


@pytest.fixture
def stream():
    return io.StringIO()


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_path_is_logged_as_text(stream):
    logs.setup("info", stream)
    structlog.get_logger("store.upgrade_backup").info("upgrade_backup_made", path=Path("/var/lib/hippod"))
    assert lines(stream)[0]["path"] == "/var/lib/hippod"


def test_an_event_is_one_json_object_with_time_level_event_and_logger_first(stream):
    logs.setup("info", stream)
    structlog.get_logger("daemon.pipeline").info("committed", commit=7, uri="file:///a\nb", took_ms=1.5)
    [line] = lines(stream)
    assert list(line) == ["time", "level", "event", "logger", "commit", "uri", "took_ms"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", line.pop("time"))
    assert line == {
        "level": "info",
        "event": "committed",
        "logger": "daemon.pipeline",
        "commit": 7,
        "uri": "file:///a\nb",
        "took_ms": 1.5,
    }


def test_library_log_records_have_the_fields_of_events(stream):
    logs.setup("info", stream)
    for name in ("uvicorn.error", "watchdog.observers", "lance"):
        logging.getLogger(name).warning("trouble with %s", "x")
    assert [(line["logger"], line["level"], line["event"]) for line in lines(stream)] == [
        ("uvicorn.error", "warning", "trouble with x"),
        ("watchdog.observers", "warning", "trouble with x"),
        ("lance", "warning", "trouble with x"),
    ]
    assert all(list(line)[:4] == ["time", "level", "event", "logger"] for line in lines(stream))


def test_handlers_of_libraries_are_removed(stream):
    own = io.StringIO()
    logger = logging.getLogger("uvicorn.error")
    logger.addHandler(logging.StreamHandler(own))
    logger.propagate = False
    logs.setup("info", stream)
    logger.error("bad")
    assert own.getvalue() == ""
    assert len(lines(stream)) == 1


def test_library_records_below_warning_are_dropped(stream):
    logs.setup("debug", stream)
    logging.getLogger("pdfminer.psparser").debug("the text of a document")
    logging.getLogger("httpx2").info("GET …")
    structlog.get_logger("store.log.commits").debug("ours")
    assert [line["event"] for line in lines(stream)] == ["ours"]


def test_set_level_applies_to_existing_loggers(stream):
    logs.setup("warning", stream)
    log = structlog.get_logger("memory.batch_encoding")
    log.info("unheard")
    logs.set_level("debug")
    log.debug("heard")
    logs.set_level("error")
    log.warning("unheard")
    logging.getLogger("kafka").warning("unheard")
    assert [line["event"] for line in lines(stream)] == ["heard"]


def test_second_setup_replaces_the_first(stream):
    logs.setup("info", io.StringIO())
    logs.setup("info", stream)
    structlog.get_logger("daemon").info("once")
    assert len(lines(stream)) == 1


def test_an_error_carries_its_traceback_in_one_field(stream):
    logs.setup("info", stream)
    try:
        raise OSError(2, "no such thing", "/drive/a")
    except OSError:
        structlog.get_logger("daemon").exception("failed")
        logging.getLogger("uvicorn").exception("failed too")
    assert len(lines(stream)) == 2
    for line in lines(stream):
        assert line["level"] == "error"
        assert line["exception"].startswith("Traceback")
        assert "FileNotFoundError: [Errno 2] no such thing: '/drive/a'" in line["exception"]


class _Named(Exception):
    """An exception with another module's name."""


def fail(kind: type[Exception], one: str, two: str) -> None:
    """The texts come from elsewhere: a traceback shows the lines of the source."""
    empty: dict[str, str] = {}
    try:
        empty[one]
    except KeyError as error:
        raise kind(two) from error


CONTENT = ("Ada met Charles", "he met Ada")


@pytest.mark.parametrize(("level", "shown"), [("info", False), ("debug", True)])
def test_messages_of_foreign_exceptions_are_logged_only_at_debug(stream, level, shown):
    logs.setup(level, stream)
    try:
        fail(ValueError, *CONTENT)
    except ValueError as error:
        structlog.get_logger("daemon").exception("failed", error=error)
    [line] = lines(stream)
    assert (CONTENT[0] in line["exception"], CONTENT[1] in line["error"]) == (shown, shown)
    assert ("Ada" in json.dumps(line)) is shown
    assert "KeyError" in line["exception"]
    assert "which led to" in line["exception"]
    assert "ValueError" in line["error"]


def test_messages_of_our_exceptions_are_logged(stream):
    logs.setup("info", stream)
    _Named.__module__ = "store.errors"
    try:
        raise _Named("the store is locked")
    except _Named as error:
        structlog.get_logger("daemon").error("failed", error=error, exc_info=True)
    [line] = lines(stream)
    assert line["error"] == "the store is locked"
    assert line["exception"].endswith("_Named: the store is locked")


def test_server_text_within_our_exceptions_is_not_logged(stream):
    logs.setup("info", stream)
    log = structlog.get_logger("daemon")
    for error in (
        ModelDown("the server fails (500): he met Ada", "the server fails (500)"),
        EncoderServerDown("it refuses (422): he met Ada", "it refuses (422)"),
    ):
        try:
            raise error
        except Exception as caught:
            log.exception("failed", error=caught)
    assert "Ada" not in stream.getvalue()
    assert [line["error"] for line in lines(stream)] == ["the server fails (500)", "it refuses (422)"]


def test_error_with_unknown_message_is_logged_by_type_place_and_system_error(stream):
    logs.setup("info", stream)
    said = f"lance error: LanceError(IO): No space left on device (os error 28), writing {CONTENT[0]}"
    for kind in (RuntimeError, OSError):  # LanceDB raises either
        try:
            fail(kind, CONTENT[1], said)
        except kind as error:
            structlog.get_logger("daemon").error("failed", error=error)
    assert "Ada" not in stream.getvalue()
    for line, name in zip(lines(stream), ("RuntimeError", "OSError"), strict=True):
        assert line["error"].startswith(f"{name}: No space left on device at observe/test_logs.py:")
        assert " in fail " in line["error"]


def test_warnings_are_logged_too(stream):
    logs.setup("info", stream)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("old way", DeprecationWarning, stacklevel=1)
    [line] = lines(stream)
    assert "old way" in line["event"]


def test_fields_bound_to_the_context_are_in_every_event(stream):
    logs.setup("info", stream)
    with structlog.contextvars.bound_contextvars(uri="file:///a"):
        structlog.get_logger("consumers").info("read")
    structlog.get_logger("consumers").info("read")
    assert [line.get("uri") for line in lines(stream)] == ["file:///a", None]


def test_secrets_are_masked_wherever_they_occur(stream):
    logs.setup("info", stream)
    logs.mask('hunt"er2')
    log = structlog.get_logger("daemon")
    try:
        raise OSError('bad key hunt"er2')
    except OSError as error:
        log.exception('using hunt"er2', header='Bearer hunt"er2', nested={"a": ['hunt"er2', 1]}, thing=error)
    logging.getLogger("kafka").error("login with %s", 'hunt"er2')
    assert "er2" not in stream.getvalue()
    first, second = lines(stream)
    assert first["header"] == "Bearer ***"
    assert first["nested"] == {"a": ["***", 1]}
    assert second["event"] == "login with ***"


def test_text_of_documents_stays_at_debug(stream):
    logs.setup("debug", stream)
    log = structlog.get_logger("memory")
    log.debug("extracting", text=logs.Content("Ada met Charles"))
    log.warning("odd", text=logs.Content("Ada met Charles"))
    low, high = lines(stream)
    assert low["text"] == "Ada met Charles"
    assert high["text"] == "<15 characters>"


def test_names_that_are_not_unicode_and_objects_do_not_break_a_line(stream):
    logs.setup("info", stream)
    structlog.get_logger("daemon").info("read", path="caf\udce9", raw=b"\xff", thing=object())
    [line] = lines(stream)
    assert line["raw"] == repr(b"\xff")


def test_terminal_gets_one_readable_line_without_control_characters():
    controller, terminal = pty.openpty()
    try:
        with os.fdopen(terminal, "w", encoding="utf-8") as stream:
            logs.setup("info", stream, {"NO_COLOR": "1"})
            structlog.get_logger("daemon").info("committed", commit=7, uri="a\x1b]0;title\x07b\nc")
            text = os.read(controller, 4096).decode()
            logging.getLogger().handlers.remove(next(h for h in logging.getLogger().handlers if h.name == "hippod"))
    finally:
        os.close(controller)
    assert "committed" in text
    assert "commit=7" in text
    assert "\x1b" not in text
    assert "\x07" not in text
    assert text.count("\n") == 1


@pytest.fixture
def journal(tmp_path, monkeypatch):
    """`journal()`: the entries that systemd's journal has got, by name of field; stderr is the journal's."""
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiving,
        (tmp_path / "stderr").open("w+") as stream,
    ):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(journal_module, "SOCKET", Path("journal"))
        receiving.bind("journal")
        receiving.settimeout(10)
        status = os.fstat(stream.fileno())
        logs.setup("debug", stream, {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"})
        yield lambda: entry(receiving)
        assert (tmp_path / "stderr").read_text() == ""


def entry(receiving):
    """The next entry of the native protocol."""
    data, files, _, _ = socket.recv_fds(receiving, 1 << 20, 1)
    if files:
        with os.fdopen(files[0], "rb") as file:
            file.seek(0)
            data = file.read()
    found = {}
    while data:
        head, _, data = data.partition(b"\n")
        name, equals, value = head.partition(b"=")
        if not equals:
            length = int.from_bytes(data[:8], "little")
            value, data = data[8 : 8 + length], data[9 + length :]
        found[name.decode()] = value.decode()
    return found


def test_journal_entry_has_a_message_and_a_field_per_value(journal):
    log = structlog.get_logger("daemon.x")
    log.warning("commit_failed", error="No space left on device", documents=3, uri="file:///a b", hint="make room")
    found = journal()
    assert found.pop("MESSAGE") == (
        'commit_failed: No space left on device (documents=3, uri="file:///a b"); make room'
    )
    assert found == {
        "PRIORITY": "4",
        "SYSLOG_IDENTIFIER": "hippod",
        "HIPPOD_EVENT": "commit_failed",
        "HIPPOD_LEVEL": "warning",
        "HIPPOD_LOGGER": "daemon.x",
        "HIPPOD_ERROR": "No space left on device",
        "HIPPOD_DOCUMENTS": "3",
        "HIPPOD_URI": "file:///a b",
        "HIPPOD_HINT": "make room",
    }


def test_journal_entry_masks_secrets_and_content_and_resists_field_injection(journal):
    logs.mask("tok-12345")
    log = structlog.get_logger("daemon")
    log.info("x", line="a tok-12345\nPRIORITY=0", text=logs.Content("secret text"))
    found = journal()
    assert "tok-12345" not in str(found)
    assert "secret text" not in str(found)
    assert found["PRIORITY"] == "6"
    assert found["HIPPOD_LINE"] == "a ***\nPRIORITY=0"


def test_journal_entry_appends_the_traceback_and_large_entries_are_complete(journal):
    log = structlog.get_logger("daemon")
    try:
        raise ValueError("a title")
    except ValueError:
        log.exception("request_failed")
    first, _, rest = journal()["MESSAGE"].partition("\n")
    assert first == "request_failed"
    assert rest.startswith("Traceback")
    log.error("aborted_before", stacks=["x" * 100] * 5000)
    assert journal()["HIPPOD_STACKS"].count("x") == 500_000


def test_lines_with_priority_are_written_without_a_journal_and_at_exit(tmp_path, monkeypatch):
    monkeypatch.setattr(journal_module, "SOCKET", tmp_path / "absent")
    for ends_now in (False, True):
        with (tmp_path / "journal").open("w+") as stream:
            status = os.fstat(stream.fileno())
            environ = {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}
            logs.setup("debug", stream, environ, ends_now=ends_now)
            log = structlog.get_logger("daemon")
            log.debug("a")
            log.info("b", count=1)
            log.error("d", error="two\nlines")
            logging.getLogger("x").critical("e")
            stream.seek(0)
            assert stream.read().splitlines() == ["<7>a", "<6>b (count=1)", "<3>d: two | lines", "<2>e"]


def test_stream_other_than_the_journals_gets_no_priority(tmp_path):
    with (tmp_path / "file").open("w+") as stream:
        logs.setup("info", stream, {"JOURNAL_STREAM": "8:1"})
        structlog.get_logger("daemon").info("a")
        stream.seek(0)
        assert stream.read().startswith("{")
