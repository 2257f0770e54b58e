"""A scripted model's server in a process of its own, so that it takes no time from what is measured."""

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any


@contextmanager
def model_process(serve: Callable[..., None], *given: Any) -> Iterator[tuple[str, Connection]]:
    """The server's URL, which `serve(*given, pipe)` sends first, and the other end of the pipe; the process ends with the
    block. `serve` is a module's function: the process is a new interpreter, which imports it."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(*given, theirs), daemon=True)
    process.start()
    try:
        yield ours.recv(), ours
    finally:
        process.terminate()
