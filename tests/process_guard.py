"""A test says by a marker what it starts; one that starts something else fails where it does.

So `make check` can leave such tests out, and `pytest -m broker` runs one group alone.
"""

import platform
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePath

MARKERS = {
    "process": "starts a program, or a process of Python",
    "daemon": "starts hippod",
    "broker": "starts a server that speaks Kafka's protocol",
    "model_server": "starts a model server that is not ours",
    "browser": "starts Chromium",
    "systemd": "starts a program of systemd",
}

_EVENTS = frozenset({"subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty", "os.system"})
"""Audit events of Python that stand for a new process."""
_allowed: frozenset[str] | None = None
"""The markers of the test that runs; None between tests."""


class UnmarkedProcess(BaseException):
    """A test started what its markers do not name. No test should catch this."""


def kind(command: Sequence[str]) -> str:
    """The marker that a test needs to start `command`."""
    names = {PurePath(word).name for word in command}
    if "mock_cluster.py" in names:
        return "broker"
    if "llama_cpp.server" in names:
        return "model_server"
    if names & {"run-driver", "chromium", "chromedriver"}:
        return "browser"
    if "daemon.main" in names or PurePath(command[0]).name == "hippod":
        return "daemon"
    return "systemd" if any(name.startswith("systemd-") for name in names) else "process"


@contextmanager
def processes_allowed(markers: frozenset[str]) -> Iterator[None]:
    """Lets this process start what `markers` name, and nothing else. Each of them allows helper programs too."""
    global _allowed
    _allowed = markers | {"process"} if markers else markers
    try:
        yield
    finally:
        _allowed = None


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if _allowed is None or event not in _EVENTS:
        return
    words = arguments[1] if event == "subprocess.Popen" else arguments[:1]
    command = (
        [words] if isinstance(words, str) else [str(word) for word in words] if isinstance(words, Sequence) else []
    )
    needed = kind(command or [event])
    if needed not in _allowed:
        raise UnmarkedProcess(f"this test needs @pytest.mark.{needed}: it starts {' '.join(command or [event])[:200]}")


platform.platform()  # It asks `uname -p` once a process; OpenAI's client would do so in whichever test came first.
sys.addaudithook(_watch)
