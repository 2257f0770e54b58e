"""Logs uncaught exceptions as events, and keeps the stacks of all threads when hippod aborts.

By default, Python and asyncio would print the exception's message, which may contain a document's text. On an abort, caused by
the watchdog or a fault in a library, the interpreter writes the stacks as lines of text in the signal's handler, because Python
code cannot run then. Under systemd, where each line would become a separate entry of the journal, it writes them to a file in
the store's folder, and the next start logs the file as one event. Otherwise, it writes them to stderr.
"""

import asyncio
import faulthandler
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import structlog

from daemon.observe.logs import is_journal

if TYPE_CHECKING:
    from sys import UnraisableHookArgs


log = structlog.get_logger()
FILE_NAME = "stacks-of-abort.txt"
STACKS_BYTES_MAX = 64 * 1024


def install() -> None:
    """Installs the hooks for exceptions in the main thread, in other threads, and while objects are freed."""
    sys.excepthook = _ended
    threading.excepthook = _in_thread
    sys.unraisablehook = _while_freeing


def loop_exception_handler(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """The event loop's exception handler. Omits the loop's message, which may show a callback's arguments."""
    task = context.get("task") or context.get("future")
    part = f"task {task.get_name()}" if isinstance(task, asyncio.Task) else "event loop"
    error = context.get("exception")
    if error is None:
        # Without an exception, asyncio reports only tasks and streams that were not awaited or closed.
        log.error("uncaught_error", part=part, error="the event loop found something left undone")
    else:
        log.error("uncaught_error", part=part, error=error, exc_info=error)


def _ended(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if isinstance(error, Exception):
        log.critical("ended_by_error", error=error, exc_info=error)
    else:
        sys.__excepthook__(kind, error, trace)


def _in_thread(args: threading.ExceptHookArgs) -> None:
    error = args.exc_value
    if error is not None and not isinstance(error, SystemExit):
        name = args.thread.name if args.thread is not None else "unknown"
        log.error("uncaught_error", part=f"thread {name}", error=error, exc_info=error)


def _while_freeing(args: "UnraisableHookArgs") -> None:
    error = args.exc_value
    if error is not None and not sys.is_finalizing():
        part = getattr(args.object, "__qualname__", type(args.object).__name__)
        log.error("uncaught_error", part=part, error=error, exc_info=error)


def keep_crash_stacks(folder: Path) -> None:
    """Logs the stacks of the last abort, and enables the handler for the next. `folder` is the store's folder, whose lock the
    caller holds."""
    if not is_journal(sys.stderr):
        faulthandler.enable()
        return
    path = folder / FILE_NAME
    try:
        before = path.read_bytes()[:STACKS_BYTES_MAX].decode(errors="replace") if path.exists() else ""
        # Keep the file open, because a signal's handler cannot open it.
        faulthandler.enable(path.open("wb"))
    except OSError as error:  # such as a full disk: write the stacks to stderr instead
        log.warning("crash_stacks_not_kept", error=error)
        faulthandler.enable()
        return
    if before.strip():
        lines = [line.strip() for line in before.splitlines() if line.strip()]
        log.error("aborted_before", stacks=[line for line in lines if not line.startswith("Extension modules:")])
