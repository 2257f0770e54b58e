"""Entry point of hippoctl."""

import sys

from cli.command_line import run


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A character that the locale lacks must not end a command. stdin is read as bytes.
            stream.reconfigure(errors="replace")
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
