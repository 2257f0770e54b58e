"""What repeats does not flood the log, and nothing else is left out."""

import contextlib
import io
import json
import logging
import sys
from collections.abc import MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import structlog

from daemon.observe import logs, repeated_lines
from daemon.observe.repeated_lines import LINES, MAX_KINDS, PERIOD_S, RepeatedLines
from tests.daemon.observe.test_logs import put_back

__all__ = ["put_back"]


class Log:
    """Lines that pass the processor, at a time of the test's choice."""

    def __init__(self) -> None:
        self.now = 0.0
        self.lines: list[MutableMapping[str, Any]] = []
        self.process = RepeatedLines(lambda: self.now)

    def __call__(self, level: str = "error", **fields) -> None:
        event = {"level": level, "event": "job_failed", "logger": "daemon.x", **fields}
        with contextlib.suppress(structlog.DropEvent):
            self.lines.append(dict(self.process(None, level, event)))


@pytest.fixture
def log() -> Log:
    return Log()


def test_repeated_line_is_logged_ten_times_then_once_a_minute_with_a_count(log):
    for _ in range(1000):
        log(error=OSError(24, "Too many open files"))
    assert len(log.lines) == LINES
    assert [line.get("muted_s") for line in log.lines] == [None] * (LINES - 1) + [PERIOD_S]
    for minute in range(1, 6):
        log.now = minute * PERIOD_S
        for _ in range(100):
            log(error=OSError(24, "Too many open files"))
        assert len(log.lines) == LINES + minute
        assert log.lines[-1]["left_out"] == (990 if minute == 1 else 99)
    log.now += 3 * PERIOD_S
    for _ in range(100):
        log(error=OSError(24, "Too many open files"))
    assert len(log.lines) == LINES + 5 + LINES


def test_lines_that_differ_only_in_numbers_are_repetitions(log):
    for number in range(100):
        log(error=f"row {number} is no record", took_ms=number)
    assert len(log.lines) == LINES


def test_lines_with_another_uri_or_error_are_counted_separately(log):
    for number in range(100):
        log("warning", uri=f"file:///{number}.txt")
    assert len(log.lines) == 100
    log.lines.clear()
    for error in (OSError(24, "x"), OSError(28, "x"), ValueError("x")):
        for _ in range(20):
            log(error=error)
    assert len(log.lines) == 3 * LINES


def test_info_and_debug_lines_are_never_omitted(log):
    for _ in range(100):
        log("info")
        log("debug")
    assert len(log.lines) == 200


def test_number_of_remembered_line_kinds_is_limited(log):
    for number in range(MAX_KINDS + 10):
        log(uri=str(number))
    assert len(log.process._kinds) == MAX_KINDS


def test_repeated_lines_of_hippod_and_of_libraries_are_limited(put_back):
    stream = io.StringIO()
    logs.setup("info", stream)
    for _ in range(100):
        logging.getLogger("asyncio").warning("socket.send() raised exception.")
        structlog.get_logger("daemon.x").error("uncaught_error", part="event loop", error=OSError(24, "x"))
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["event"] for line in lines].count("uncaught_error") == LINES
    assert len(lines) == 2 * LINES
    assert {line["event"] for line in lines if "muted_s" in line} == {
        "uncaught_error",
        "socket.send() raised exception.",
    }


def test_concurrent_threads_log_new_line_kinds_without_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_lines, "MAX_KINDS", 2)
    process = RepeatedLines()
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            logged = [threads.submit(process, None, "warning", {"uri": str(name)}) for name in range(20_000)]
    finally:
        sys.setswitchinterval(before)
    assert [line.result()["uri"] for line in logged] == [str(name) for name in range(20_000)]
