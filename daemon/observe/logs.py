"""Logging: one set-up for hippod's own events and for the libraries' records.

A line goes to stderr: readable on a terminal, one JSON object otherwise, with `time`, `level`, `event` and `logger` first
and the event's own fields after them. Where stderr is systemd's journal, the journal gets the event and its fields. Modules log
with `structlog.get_logger()`; an event's name is a constant, what varies goes into fields (`uri`, `passage`, `commit`,
`took_ms`, `error`). `docs/reference/logs.md` lists them all.

Text of documents is logged at debug only. What is known to be such text is wrapped in `Content`. An exception's message may
hold some without anybody's knowledge (`KeyError: 'a title'`), so an exception is given as it is (`error=error`, `exc_info`)
and rendered here: unless the configured level is debug, a message is written out only where it is ours or the system's.
An exception of ours that repeats what a server said keeps the rest of its message in `loggable`, which is then logged.
"""

import logging
import os
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import PurePath
from typing import Any, TextIO

import structlog
from structlog.typing import EventDict, ExcInfo, Processor, WrappedLogger

from daemon.observe.journal import JournalSender, prefixed_message
from daemon.observe.redaction import raised_at, system_error
from daemon.observe.repeated_lines import RepeatedLines

OWN = ("daemon", "consumers", "memory", "store", "__main__")
"""Loggers that follow the configured level. All others speak from `warning` up: some of them print what they parse."""

_MASK = "***"
_FIRST = ("time", "level", "event", "logger")
_HANDLER = "hippod"
_secrets: set[str] = set()
_outspoken = False
"""Whether messages of any exception are written out."""
_OURS = ("daemon", "consumers", "memory", "store")


class _Handler(logging.StreamHandler[TextIO]):
    """Writes what the processors let through. Records of libraries meet them as they are formatted."""

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(structlog.DropEvent):
            super().emit(record)


class Content(str):
    """Text that came from a document. Above debug level only its length is logged."""

    __slots__ = ()


def setup(
    level: str = "info",
    stream: TextIO | None = None,
    environ: Mapping[str, str] = os.environ,
    *,
    last_words: bool = False,
) -> None:
    """Send all logging to `stream` (stderr), in the form that suits it. May be called again.

    `last_words`: the process ends at once. The journal looks up the unit of an event's sender, and would find no such process
    any more, so it gets lines on `stream` instead, whose unit it knows.
    """
    stream = sys.stderr if stream is None else stream
    before: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        RepeatedLines(),
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        structlog.processors.StackInfoRenderer(),
        _plain_values,
        structlog.processors.ExceptionRenderer(_traceback),
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
    handler = _Handler(stream)
    handler.set_name(_HANDLER)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=before,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_renderers(stream, environ, last_words),
            ],
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
    global _outspoken
    number = logging.getLevelNamesMapping()[level.upper()]
    _outspoken = number <= logging.DEBUG
    logging.getLogger().setLevel(max(number, logging.WARNING))
    for name in OWN:
        logging.getLogger(name).setLevel(number)


def mask(secret: str) -> None:
    """Replace `secret` wherever it occurs in a logged value, from now on."""
    if secret:
        _secrets.add(secret)


def _plain_values(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Turns exceptions and paths into text."""
    for key, value in event.items():
        if isinstance(value, BaseException) and key != "exc_info":
            event[key] = loggable(value)
        elif isinstance(value, PurePath):
            event[key] = str(value)
    return event


def is_ours(error: BaseException) -> bool:
    """Returns whether hippod declares the exception, so that its message is a sentence for people."""
    return type(error).__module__.partition(".")[0] in _OURS


def loggable(error: BaseException) -> str:
    """An exception as it may be logged: its message where we or the system wrote it, else its kind and where it arose."""
    kind = type(error)
    if is_ours(error):
        return str(error) if _outspoken else str(getattr(error, "loggable", error))
    numbered = isinstance(error, OSError) and error.errno is not None  # a library's OSError has no number
    if _outspoken or numbered or isinstance(error, MemoryError | ImportError):
        return f"{kind.__name__}: {error}"
    said, at = system_error(error), raised_at(error)
    return (
        kind.__name__
        + (f": {said}" if said else "")
        + (f" at {at}" if at else "")
        + " (its message is shown at log_level debug)"
    )


def _traceback(exc_info: ExcInfo) -> str:
    """As Python writes it, oldest cause first, with each exception's message as `loggable` gives it. No local variables."""
    parts: list[str] = []
    seen: set[int] = set()
    error: BaseException | None = exc_info[1]
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        frames = "".join(traceback.format_tb(error.__traceback__))
        kind = type(error).__name__
        said = loggable(error)
        parts.append(
            f"Traceback (most recent call last):\n{frames}{said if said.startswith(kind) else f'{kind}: {said}'}"
        )
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n\nwhich led to\n\n".join(reversed(parts))


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


def _renderers(stream: TextIO, environ: Mapping[str, str], last_words: bool) -> list[Processor]:
    if stream.isatty():
        console = structlog.dev.ConsoleRenderer(
            timestamp_key="time",
            colors="NO_COLOR" not in environ,
            exception_formatter=structlog.dev.plain_traceback,
        )
        return [_printable, console]
    if is_journal(stream, environ):
        return [prefixed_message if last_words else JournalSender()]
    return [structlog.processors.JSONRenderer()]


def _printable(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Control characters escaped: a file's name must not steer the terminal."""
    for key, value in event.items():
        if key not in ("exception", "stack"):
            text = value if isinstance(value, str) else None if isinstance(value, bool | int | float) else repr(value)
            if text is not None:
                event[key] = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return event


def is_journal(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether `stream` is the journal's socket: systemd names its device and inode in JOURNAL_STREAM."""
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"
