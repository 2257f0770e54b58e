"""A progress bar for work of the daemon that a command waits for: share, rate, and remaining time."""

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cli.errors import CommandError
from cli.options.global_options import Invocation
from cli.output import ShowProgress, progress
from daemon.contract.http.routes import Route

if TYPE_CHECKING:
    from daemon.contract.status import Progress, Status

POLL_INTERVAL_S = 0.5


@contextmanager
def daemon_progress(invocation: Invocation, label: str, tasks: Sequence[str]) -> Iterator[ShowProgress]:
    """Shows a bar on stderr during the `with` block, for the first running task of `tasks`. Shows nothing without a
    terminal."""
    with progress(label) as shown:
        if not sys.stderr.isatty():
            yield shown
            return
        over = threading.Event()
        threading.Thread(target=_follow, args=(invocation, shown, tasks, over), daemon=True).start()
        try:
            yield shown
        finally:
            over.set()


def _follow(invocation: Invocation, shown: ShowProgress, tasks: Sequence[str], over: threading.Event) -> None:
    from cli.client.plain_answers import from_plain
    from cli.render.status import progress_words

    def show(status: "Status") -> None:
        if (found := first_task(status, tasks)) is not None:
            shown(progress_words(found), found.done, found.total)

    try:
        while not over.wait(POLL_INTERVAL_S):
            answer = invocation.client().call("GET", Route.STATUS, patience_s=0)
            from_plain(show, answer)
    except CommandError:
        return  # the request that the command waits for reports the error


def first_task(status: "Status", tasks: Sequence[str]) -> "Progress | None":
    """Returns the progress of the first of `tasks` that the daemon is running; None if it runs none of them."""
    by_name = {each.task: each for each in status.progress}
    return next((by_name[name] for name in tasks if name in by_name), None)
