"""Runs an external program, confined, and returns its output."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import monotonic

from consumers.parsing.limits import Limits
from consumers.parsing.programs.confinement import confine

_STDERR_CHARS = 200
_PATIENCE = 100
_WAIT_SECONDS = 5.0


class ProgramFailed(Exception):
    """The program gave no result. The message says why. `status` is the exit status; None if the program was killed or not
    started."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


def run_program(
    command: Sequence[str],
    limits: Limits,
    *,
    data: bytes = b"",
    folder: str | None = None,
    readable: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    niceness: int = 0,
    waiting: Callable[[], None] | None = None,
) -> bytes:
    """Runs the program with `data` as its input and returns its output. Raises ProgramFailed.

    The program may write only below `folder`, and read only `folder`, the system's program folders and `readable`. It may use
    `Limits.program_seconds` of processor time. Its run time has the same limit, or with `waiting` a hundred times this limit,
    because the machine may be busy. `waiting` is called every few seconds.
    """
    name = os.path.basename(command[0])  # noqa: PTH119
    prepare = partial(
        confine,
        [os.fsencode(path) for path in readable],
        None if folder is None else os.fsencode(folder),
        limits.program_memory_bytes,
        limits.program_seconds,
        niceness,
    )
    passed_on = {key: os.environ[key] for key in ("PATH", "LD_LIBRARY_PATH") if key in os.environ}
    until = monotonic() + limits.program_seconds * (1 if waiting is None else _PATIENCE)
    # Uses a file, because after a timeout `communicate` does not continue to write to a pipe.
    with tempfile.TemporaryFile(prefix="hippod-") as given:
        given.write(data)
        given.seek(0)
        try:
            process = subprocess.Popen(  # noqa: S603
                command,
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder or "/",
                env={**passed_on, "LC_ALL": "C.UTF-8", **(environment or {})},
                preexec_fn=prepare,  # safe: the parsing process has one thread
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise ProgramFailed(f"{name} could not be started ({error})") from error
        with process:
            try:
                output, errors = _output_of(process, until, waiting or (lambda: None))
            except subprocess.TimeoutExpired:
                raise ProgramFailed(f"{name} took too long") from None
            finally:
                process.kill()
    if process.returncode == -signal.SIGXCPU:
        raise ProgramFailed(f"{name} took more than {limits.program_seconds:g} s of processor time")
    if process.returncode:
        stderr_tail = " ".join(errors.decode("utf-8", "replace").split())[-_STDERR_CHARS:]
        message = f"{name} ended with status {process.returncode}" + (f": {stderr_tail}" if stderr_tail else "")
        raise ProgramFailed(message, process.returncode)
    return output


def _output_of(process: subprocess.Popen[bytes], until: float, waiting: Callable[[], None]) -> tuple[bytes, bytes]:
    """Returns the program's stdout and stderr. Raises TimeoutExpired at `until` (monotonic seconds)."""
    while True:
        try:
            return process.communicate(timeout=max(min(_WAIT_SECONDS, until - monotonic()), 0))
        except subprocess.TimeoutExpired:
            if monotonic() >= until:
                raise
            waiting()
