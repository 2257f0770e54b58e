"""Logging: one set-up for hippod's own events and for the libraries' records.

A line goes to stderr: readable on a terminal, one JSON object otherwise, with `time`, `level`, `event` and `logger` first
and the event's own fields after them. Modules log with `structlog.get_logger()`; an event's name is a constant, what
varies goes into fields (`uri`, `passage`, `commit`, `took_ms`, `error`). Text of documents is logged at debug only, wrapped
in `Content`, which keeps it out of higher levels.
"""

import logging
import os
import sys
from collections.abc import Mapping
from typing import Any, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

OWN = ("daemon", "consumers", "memory", "store", "__main__")
"""Loggers that follow the configured level. All others speak from `warning` up: some of them print what they parse."""

_MASK = "***"
_FIRST = ("time", "level", "event", "logger")
_JOURNAL_PRIORITY = {"critical": 2, "error": 3, "warning": 4, "info": 6, "debug": 7}
_HANDLER = "hippod"
_secrets: set[str] = set()


class Content(str):
    """Text that came from a document. Above debug level only its length is logged."""

    __slots__ = ()


def setup(level: str = "info", stream: TextIO | None = None, environ: Mapping[str, str] = os.environ) -> None:
    """Send all logging to `stream` (stderr), in the form that suits it. May be called again."""
    stream = sys.stderr if stream is None else stream
    before: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
        _withhold_content,
        _mask_secrets,
        _order,
    ]
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *before, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        # A cached logger would keep the set-up that its module met first.
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream)
    handler.set_name(_HANDLER)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=before,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_renderers(stream, environ)],
        )
    )
    root = logging.getLogger()
    for old in [each for each in root.handlers if each.get_name() == _HANDLER]:
        root.removeHandler(old)
    root.addHandler(handler)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        # Its own handlers would print a second, different line.
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True
    logging.captureWarnings(True)
    set_level(level)


def set_level(level: str) -> None:
    """Log from `level` up ("debug", "info", "warning", "error"), from now on."""
    number = logging.getLevelNamesMapping()[level.upper()]
    logging.getLogger().setLevel(max(number, logging.WARNING))
    for name in OWN:
        logging.getLogger(name).setLevel(number)


def mask(secret: str) -> None:
    """Replace `secret` wherever it occurs in a logged value, from now on."""
    if secret:
        _secrets.add(secret)


def _withhold_content(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    if event.get("level") != "debug":
        for key, value in event.items():
            if isinstance(value, Content):
                event[key] = f"<{len(value)} characters>"
    return event


def _mask_secrets(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    if _secrets:
        for key, value in event.items():
            if not key.startswith("_"):  # structlog's own bookkeeping
                event[key] = _masked(value)
    return event


def _masked(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {key: _masked(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_masked(inner) for inner in value]
    text = value if isinstance(value, str) else repr(value)
    # Longest first: one secret may contain another.
    for secret in sorted(_secrets, key=len, reverse=True):
        text = text.replace(secret, _MASK)
    return text


def _order(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    return {key: event[key] for key in _FIRST if key in event} | dict(event)


def _renderers(stream: TextIO, environ: Mapping[str, str]) -> list[Processor]:
    if stream.isatty():
        console = structlog.dev.ConsoleRenderer(
            timestamp_key="time",
            colors="NO_COLOR" not in environ,
            exception_formatter=structlog.dev.plain_traceback,
        )
        return [_printable, console]
    json_line = structlog.processors.JSONRenderer()
    if not _is_journal(stream, environ):
        return [json_line]

    def with_priority(logger: WrappedLogger, method: str, event: EventDict) -> str:
        return f"<{_JOURNAL_PRIORITY.get(event['level'], 6)}>{json_line(logger, method, event)!s}"

    return [with_priority]


def _printable(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Control characters escaped: a file's name must not steer the terminal."""
    for key, value in event.items():
        if key not in ("exception", "stack"):
            text = value if isinstance(value, str) else None if isinstance(value, bool | int | float) else repr(value)
            if text is not None:
                event[key] = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return event


def _is_journal(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether `stream` is the journal's socket: systemd names its device and inode in JOURNAL_STREAM."""
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"
