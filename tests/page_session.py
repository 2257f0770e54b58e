"""Runs the console blocks of a documentation page in one shell session and compares what they print with the page.

In a block, a line that starts with "$ " is a command. It continues while it ends with a backslash, or until the end of its
here-document. The lines up to the next command are the expected output; "…" stands for any text, and at the end of a line for
any lines after it. A block after `<!-- not run: REASON -->` is not run.
"""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

BLOCK = re.compile(r"(<!-- not run: [^>]+ -->\n+)?```console\n(.*?)```", re.DOTALL)
COMMENT = re.compile(r"\s{2,}#.*$")
HEREDOC = re.compile(r"<<'?(\w+)'?")
SCORE_TOLERANCE = 0.03
"""Scores differ slightly between processors that encode in float32 and in bfloat16."""
MASKS = (
    (re.compile(r"\d+(\.\d+)? (ms|s|MiB|GiB)\b"), "N"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"), "TIME"),
    (re.compile(r"\bcommit \d+"), "commit N"),
    (re.compile(r"token=\S+|127\.0\.0\.1:\d+"), "ADDRESS"),
)
"""Durations, sizes, times and commit numbers depend on the machine and on how files arrived."""


NUMBER = re.compile(r"-?\d+\.\d+")


@dataclass(frozen=True)
class Command:
    text: str
    expected: list[str]


def commands(page: str) -> list[Command]:
    """The commands of all blocks of a page that are run, in order."""
    found: list[Command] = []
    for skipped, block in BLOCK.findall(page):
        if not skipped:
            found += _of_block(block)
    return found


def _of_block(block: str) -> Iterator[Command]:
    lines = iter(block.splitlines())
    command: list[str] = []
    expected: list[str] = []
    for line in lines:
        if line.startswith("$ "):
            if command:
                yield Command("\n".join(command), expected)
            command, expected = [COMMENT.sub("", line[2:])], []
            if heredoc := HEREDOC.search(line):
                for body in lines:
                    command.append(body)
                    if body == heredoc[1]:
                        break
            opened = command[-1].count('"') % 2 == 1
            while command[-1].endswith("\\") or opened:
                command.append(next(lines))
                opened = opened != (command[-1].count('"') % 2 == 1)
        else:
            expected.append(line)
    if command:
        yield Command("\n".join(command), expected)


class Session:
    """A bash process whose working directory is `folder`."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder = folder
        self._bash = subprocess.Popen(
            ["bash", "--norc", "-m"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, command: str) -> list[str]:
        """The lines that the command prints."""
        assert self._bash.stdin and self._bash.stdout
        self._bash.stdin.write(f"{command}\necho; echo end-of-command\n")
        self._bash.stdin.flush()
        lines: list[str] = []
        while (line := self._bash.stdout.readline()) != "end-of-command\n":
            if not line:
                raise AssertionError(f"the shell ended in {command!r}: {lines}")
            lines.append(line.rstrip("\n").replace(str(self._folder), "/home/you"))
        return [line for line in lines if not re.match(r"\[\d+\]", line)]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the jobs of the session, then the shell."""
        if self._bash.poll() is None:
            self.run("kill $(jobs -p) 2>/dev/null; wait")
            os.killpg(self._bash.pid, signal.SIGTERM)
        self._bash.communicate()


def differences(expected: list[str], printed: list[str]) -> str:
    """What of the expected output is not in the printed output, in order; empty if they agree."""
    rest = [line for line in printed if line.strip()]
    anything = False
    for line in expected:
        if not line.strip():
            continue
        if line.strip() == "…":
            anything = True
            continue
        while anything and rest and not _same(line, rest[0]):
            rest.pop(0)
        if not rest or not _same(line, rest[0]):
            return f"expected {line!r}, printed {rest[:3]!r}"
        rest.pop(0)
        anything = line.endswith("…")
    if rest and expected and not anything:
        return f"printed more than the page shows: {rest[:3]!r}"
    return ""


def _same(expected: str, printed: str) -> bool:
    """Whether two lines are equal except for masked values, small differences of scores and the width of columns."""
    for mask, word in MASKS:
        expected, printed = mask.sub(word, expected), mask.sub(word, printed)
    parts = (re.escape(part) for part in re.split("…", NUMBER.sub("#", " ".join(expected.split()))))
    if not re.fullmatch(".*".join(parts), NUMBER.sub("#", " ".join(printed.split()))):
        return False
    pairs = zip(NUMBER.findall(expected), NUMBER.findall(printed), strict=False)
    return "…" in expected or all(
        abs(float(one) - float(other)) <= SCORE_TOLERANCE * max(1.0, abs(float(one))) for one, other in pairs
    )
