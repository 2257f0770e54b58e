"""Entry point of hippoctl.

Loading the command line parser takes four times as long as starting Python, so `--version` and `--help` work without it.
"""

import os
import sys

from cli.quick_answers import quick_answer

BROKEN_PIPE = 141
"""Equals the value in `cli.errors.Exit`, which needs the import of `enum`."""


def main() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A character that the locale lacks must not end a command. stdin is read as bytes.
            stream.reconfigure(errors="replace")
    answer = quick_answer(sys.argv[1:])
    if answer is not None:
        sys.exit(_print(answer))
    from cli.command_line import run

    sys.exit(run(sys.argv[1:]))


def _print(answer: str) -> int:
    try:
        sys.stdout.write(answer)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed the pipe. Discard buffered output, so that Python exits without an error message.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return BROKEN_PIPE
    return 0


if __name__ == "__main__":
    main()
