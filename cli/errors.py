"""Exit codes, and the exception that ends a command."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any


class Exit(IntEnum):
    """The exit codes of hippoctl."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NO_DAEMON = 3
    NOT_CONFIGURED = 4
    TIMED_OUT = 5
    INTERRUPTED = 130
    BROKEN_PIPE = 141


class CommandError(Exception):
    """A command failed: `message` is a sentence, `hint` says what to do.

    `problem` is the daemon's problem document (RFC 9457), if the daemon refused the request.
    """

    def __init__(
        self,
        message: str,
        code: Exit = Exit.FAILED,
        hint: str | None = None,
        problem: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.hint = hint
        self.problem = problem

    def to_json(self) -> dict[str, Any]:
        """Returns the problem document that `--json` prints if a command fails."""
        if self.problem is not None:
            return dict(self.problem)
        detail = f"{self.message} {self.hint}" if self.hint else self.message
        return {"type": "about:blank", "title": self.code.name.replace("_", " ").capitalize(), "detail": detail}
