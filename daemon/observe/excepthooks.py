"""Logs uncaught exceptions as events. Python and asyncio would print the message, which may contain a document's text."""

import asyncio
import sys
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any

import structlog

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

log = structlog.get_logger()


def install() -> None:
    """Installs the hooks for the main thread, for other threads, and for exceptions raised while objects are freed."""
    sys.excepthook = _ended
    threading.excepthook = _in_thread
    sys.unraisablehook = _while_freeing


def loop_exception_handler(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Logs an exception as the event loop's handler. Omits the loop's message, which may show a callback's arguments."""
    task = context.get("task") or context.get("future")
    part = f"task {task.get_name()}" if isinstance(task, asyncio.Task) else "event loop"
    error = context.get("exception")
    if error is None:
        # asyncio reports without an exception only tasks and streams that were not awaited or closed.
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
