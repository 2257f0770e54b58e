"""Answers without loading click: the version, the help, and command names for shell completion.

Loading click takes four times as long as starting Python. The texts equal click's word for word, which tests check. All other
command lines are handled by click.
"""

import os
from collections.abc import Sequence

from cli.command_index import COMMANDS, HELP, OPTIONS

HELP_COLUMNS_MAX = 100
COMPLETION_SUMMARY_COLUMNS = 45
_COLUMN_GAP = 2


def quick_answer(arguments: Sequence[str]) -> str | None:
    """Returns the text to print, with its last newline; None if click must parse the command line."""
    if "_HIPPOCTL_COMPLETE" in os.environ:
        return _command_names(os.environ)
    if list(arguments) == ["--version"]:
        return version_text()
    if list(arguments) in (["--help"], ["-h"]):
        return help_text(_columns())
    return None


def version_text() -> str:
    """Returns the version of the installed package, read from the name of its metadata folder.

    `importlib.metadata` would load the standard library's e-mail parser.
    """
    import sys

    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")  # noqa: PTH208 - importing pathlib takes longer than this function
        except OSError:
            continue
        for name in names:
            if name.startswith("hippod-") and name.endswith(".dist-info"):
                return f"hippoctl {name.removeprefix('hippod-').removesuffix('.dist-info')}\n"
    return "hippoctl, not installed\n"  # run from a checkout


def help_text(columns: int) -> str:
    """Returns `hippoctl --help` for a terminal with `columns` columns."""
    width = max(min(columns, HELP_COLUMNS_MAX) - 2, 50)
    lines = ["Usage: hippoctl [OPTIONS] COMMAND [ARGS]..."]
    for paragraph in HELP:
        lines += ["", *(f"  {line}" for line in _wrapped(paragraph, width - 2))]
    lines += ["", "Options:", *_table(list(OPTIONS.items()), width)]
    room = width - 6 - max(map(len, COMMANDS))
    commands = [(name, summary(name, room)) for name in sorted(COMMANDS)]
    return "\n".join([*lines, "", "Commands:", *_table(commands, width)]) + "\n"


def summary(name: str, columns: int) -> str:
    """Returns a command's summary, cut between words if it is longer than `columns`."""
    text = COMMANDS[name][2]
    if len(text) <= columns:
        return text
    kept = ""
    for word in text.split():
        longer = f"{kept} {word}".strip()
        if len(longer) + len("...") > columns:
            break
        kept = longer
    return f"{kept}..."


def _table(rows: Sequence[tuple[str, str]], width: int) -> list[str]:
    left = max(len(first) for first, _ in rows) + _COLUMN_GAP
    lines = []
    for first, second in rows:
        head, *rest = _wrapped(second, max(width - left - _COLUMN_GAP, 10))
        lines += [f"  {first:<{left}}{head}", *(f"  {'':<{left}}{line}" for line in rest)]
    return lines


def _wrapped(text: str, columns: int) -> list[str]:
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".lstrip()
        if len(longer) > columns and lines[-1]:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _columns() -> int:
    if os.environ.get("COLUMNS", "").isdecimal() and int(os.environ["COLUMNS"]):
        return int(os.environ["COLUMNS"])
    try:
        return os.get_terminal_size(1).columns or 80
    except OSError:
        return 80


def _command_names(environ: "os._Environ[str]") -> str | None:
    """Returns the commands that begin with the typed word; None if something other than a command is being completed."""
    shell = environ["_HIPPOCTL_COMPLETE"].removesuffix("_complete")
    words = environ.get("COMP_WORDS", "")
    if (
        shell not in _ITEMS
        or any(sign in words for sign in "'\"\\")
        or (shell != "fish" and environ.get("COMP_CWORD") != "1")
    ):
        return None
    typed = words.split()[1:]
    begun = environ.get("COMP_CWORD", "") if shell == "fish" else "".join(typed[:1])
    if begun.startswith("-") or (shell == "fish" and typed and typed != [begun]):
        return None
    item = _ITEMS[shell]
    names = [name for name in sorted(COMMANDS) if name.startswith(begun)]
    return "".join(item.format(name=name, summary=summary(name, COMPLETION_SUMMARY_COLUMNS)) + "\n" for name in names)


_ITEMS = {"bash": "plain,{name}", "zsh": "plain\n{name}\n{summary}", "fish": "plain,{name}\t{summary}"}
"""The format in which each shell's script expects a completion."""
