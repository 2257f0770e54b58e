"""Configures logging of hippod's own events and of the libraries' records.

On a terminal, each line on stderr is readable text; otherwise it is a JSON object that begins with `time`, `level`, `event` and
`logger`. If stderr is systemd's journal, the journal gets the event with its fields, and output of libraries becomes log lines.
Modules log with `structlog.get_logger()`. The name of an event is a constant; variable parts are fields (`uri`, `passage`,
`commit`, `took_ms`, `error`). `docs/reference/logs.md` lists all events and fields.

Text of documents is logged only at level debug, so code that logs it wraps it in `Content`. The message of an exception may
also contain such text (`KeyError: 'a title'`). So code logs the exception (`error=error`, `exc_info`), and this module renders
it. Above level debug, it writes the message only if hippod or the operating system made it. If a message of hippod's exception
quotes a server's answer, the exception has an attribute `loggable`, which is logged instead.
"""

import io
import logging
import os
import sys
import threading
import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import PurePath
from typing import Any, TextIO

import structlog
from structlog.typing import EventDict, ExcInfo, Processor, WrappedLogger

from daemon.observe.journal import JournalSender, prefixed_message
from daemon.observe.redaction import ROOMS, raised_at, system_error
from daemon.observe.repeated_lines import RepeatedLines

OWN = (*ROOMS, "__main__")
"""Loggers that log from the configured level up. Others log only from `warning` up, because some log parsed content."""

_MASK = "***"
_FIRST = ("time", "level", "event", "logger")
_HANDLER = "hippod"
_secrets: set[str] = set()
_logs_all_messages = False
"""Whether the messages of all exceptions are logged."""
LINE_CHARACTERS_MAX = 2_000

log = structlog.get_logger()


class _Handler(logging.StreamHandler[TextIO]):
    """Writes all records that no processor drops. A library's record passes the processors when it is formatted."""

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(structlog.DropEvent):
            super().emit(record)


class Content(str):
    """Text from a document. Above level debug, only its length is logged."""

    __slots__ = ()


def setup(
    level: str = "info",
    stream: TextIO | None = None,
    environ: Mapping[str, str] = os.environ,
    *,
    ends_now: bool = False,
) -> None:
    """Sends all logging to `stream` (default: stderr), in the stream's format. May be called again.

    `ends_now` means that the process is about to end. The events are then written as lines to `stream`, because the journal
    cannot look up the unit of a sender that has ended.
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
        # A cached logger would keep the configuration of its first use.
        cache_logger_on_first_use=False,
    )
    handler = _Handler(stream)
    handler.set_name(_HANDLER)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=before,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_renderers(stream, environ, ends_now),
            ],
        )
    )
    root = logging.getLogger()
    for old in [each for each in root.handlers if each.get_name() == _HANDLER]:
        root.removeHandler(old)
    root.addHandler(handler)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        # Otherwise, uvicorn's own handlers would print each line again.
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True
    logging.captureWarnings(True)
    set_level(level)


def set_level(level: str) -> None:
    """Logs events from `level` ("debug", "info", "warning", "error") up."""
    global _logs_all_messages
    number = logging.getLevelNamesMapping()[level.upper()]
    _logs_all_messages = number <= logging.DEBUG
    logging.getLogger().setLevel(max(number, logging.WARNING))
    for name in OWN:
        logging.getLogger(name).setLevel(number)


def mask(secret: str) -> None:
    """Masks `secret` in all values that are logged later."""
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


def is_own_error(error: BaseException) -> bool:
    """Returns whether the exception's class is hippod's, so that its message is a sentence for users."""
    return type(error).__module__.partition(".")[0] in ROOMS


def loggable(error: BaseException) -> str:
    """Returns the exception's message if hippod or the system made it, otherwise its type and where it was raised."""
    kind = type(error)
    if is_own_error(error):
        return str(error) if _logs_all_messages else str(getattr(error, "loggable", error))
    numbered = isinstance(error, OSError) and error.errno is not None  # a library's OSError has no number
    if _logs_all_messages or numbered or isinstance(error, MemoryError | ImportError):
        return f"{kind.__name__}: {error}"
    text, at = system_error(error), raised_at(error)
    return (
        kind.__name__
        + (f": {text}" if text else "")
        + (f" at {at}" if at else "")
        + " (its message is shown at log_level debug)"
    )


def _traceback(exc_info: ExcInfo) -> str:
    """Formats a traceback like Python, without local variables and with messages from `loggable`. The oldest cause comes
    first."""
    parts: list[str] = []
    seen: set[int] = set()
    error: BaseException | None = exc_info[1]
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        frames = "".join(traceback.format_tb(error.__traceback__))
        kind = type(error).__name__
        text = loggable(error)
        parts.append(
            f"Traceback (most recent call last):\n{frames}{text if text.startswith(kind) else f'{kind}: {text}'}"
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
            if not key.startswith("_"):  # fields that structlog uses internally
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
    # Mask longer secrets first, because a secret may contain another.
    for secret in sorted(_secrets, key=len, reverse=True):
        text = text.replace(secret, _MASK)
    return text


def _order(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    return {key: event[key] for key in _FIRST if key in event} | dict(event)


def _renderers(stream: TextIO, environ: Mapping[str, str], ends_now: bool) -> list[Processor]:
    if stream.isatty():
        console = structlog.dev.ConsoleRenderer(
            timestamp_key="time",
            colors="NO_COLOR" not in environ,
            exception_formatter=structlog.dev.plain_traceback,
        )
        return [_printable, console]
    if is_journal(stream, environ):
        return [prefixed_message if ends_now else JournalSender()]
    return [structlog.processors.JSONRenderer()]


def _printable(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Escapes control characters: in the name of a file, they could control the terminal."""
    for key, value in event.items():
        if key not in ("exception", "stack"):
            text = value if isinstance(value, str) else None if isinstance(value, bool | int | float) else repr(value)
            if text is not None:
                event[key] = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return event


def is_journal(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Returns whether `stream` is the journal's socket. systemd names the socket's device and inode in JOURNAL_STREAM."""
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


class _Lines(io.TextIOBase):
    """A text stream whose lines are logged at level debug, because a library may print the content of documents."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._begun = ""
        self._logging = threading.local()

    def write(self, text: str) -> int:
        *whole, self._begun = (self._begun + text).split("\n")
        for line in whole:
            self._log(line)
        if len(self._begun) > LINE_CHARACTERS_MAX:
            self._log(self._begun)
            self._begun = ""
        return len(text)

    def _log(self, line: str) -> None:
        if getattr(self._logging, "now", False):  # logging has failed and prints its own error
            self._stream.write(f"{line}\n")
        elif line.strip():
            self._logging.now = True
            try:
                log.debug("library_output", line=line[:LINE_CHARACTERS_MAX])
            finally:
                self._logging.now = False

    def fileno(self) -> int:
        return self._stream.fileno()

    def writable(self) -> bool:
        return True


def log_library_output() -> None:
    """Redirects output of Python code to the log. Output of compiled code still reaches the journal unchanged."""
    if is_journal(sys.stderr):
        sys.stdout, sys.stderr = _Lines(sys.stdout), _Lines(sys.stderr)
