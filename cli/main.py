"""hippoctl's entry. Reading a command line takes four times as long as starting Python: `--version` and `--help` do without."""

import os
import sys

from cli.quick_answers import quick_answer

BROKEN_PIPE = 141
"""`cli.errors.Exit` says the same; it needs `enum`."""


def main() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A locale without some character must not end a command; stdin is read as bytes.
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
        # The reader has what it wanted. What is still buffered goes nowhere, so that leaving Python stays quiet too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return BROKEN_PIPE
    return 0


if __name__ == "__main__":
    main()
