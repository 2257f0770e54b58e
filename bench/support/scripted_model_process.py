"""A scripted model server in a separate process, so that it uses no time of the measured process."""

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any


@contextmanager
def model_process(serve: Callable[..., None], *given: Any) -> Iterator[tuple[str, Connection]]:
    """Yields (URL, pipe). `serve(*given, pipe)` sends the URL as first message; the yielded pipe is the other end.

    The process ends with the `with` block. `serve` must be a module's function, because the new interpreter imports it.
    """
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(*given, theirs), daemon=True)
    process.start()
    try:
        yield ours.recv(), ours
    finally:
        process.terminate()
