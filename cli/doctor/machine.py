"""Checks that need no daemon: Python, clock, inotify's limits."""

import os
import platform
import stat
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cli.text import count
from daemon.contract.finding import Finding, guarded

OLDEST_PYTHON = (3, 11)
COUNT_S = 2.0
"""Longest time spent on counting directories."""
_INOTIFY = Path("/proc/sys/fs/inotify")


def machine(config: Mapping[str, Any], base: Path) -> Iterator[Finding]:
    """`base` is the directory that the configuration's relative paths start from."""
    yield from guarded("python", lambda: [python(sys.version_info[:2])])
    yield from guarded("clock", lambda: [clock(time.time(), Path(__file__).stat().st_mtime)])
    yield from guarded("configuration directory", lambda: permissions(base))
    yield from guarded("inotify", lambda: [watches(watched(config, base), _INOTIFY)])


def python(version: Sequence[int]) -> Finding:
    wanted = ".".join(map(str, OLDEST_PYTHON))
    if tuple(version[:2]) >= OLDEST_PYTHON:
        return Finding("python", "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    return Finding("python", "fail", f"{platform.python_version()}", f"install Python {wanted} or newer")


def clock(now: float, installed: float) -> Finding:
    """The program cannot have been installed in the future."""
    said = time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(now))
    if now + 60 >= installed:
        return Finding("clock", "ok", said)
    return Finding(
        "clock", "warn", f"{said}, which is before hippod was installed", "set the clock, or start a time service"
    )


def permissions(base: Path) -> Iterator[Finding]:
    """The directory of the configuration: whoever may write there decides what hippod reads."""
    mode = base.stat().st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        yield Finding("configuration directory", "warn", f"{base}: every user may write to it", f"chmod o-w {base}")


def watches(folders: Sequence[Path], limits: Path) -> Finding:
    """Each directory below a watched folder takes one of the user's inotify watches."""
    if not folders:
        return Finding("inotify", "ok", "not needed: no folder is followed, or all are polled")
    most, instances = _number(limits / "max_user_watches"), _number(limits / "max_user_instances")
    if most is None:
        return Finding("inotify", "warn", "not on this system", "set polling = true in every [[folder]]")
    directories, whole = _directories(folders)
    said = f"{count(directories, 'directory', 'directories')}{'' if whole else ' or more'} of {most:,} watches"
    if instances is not None and instances < 16:
        hint = "sysctl fs.inotify.max_user_instances=128"
        return Finding("inotify", "warn", f"only {instances} instances for each user", hint)
    if directories * 1.25 > most:
        hint = f"sysctl fs.inotify.max_user_watches={max(524_288, directories * 2)}, or polling = true in [[folder]]"
        return Finding("inotify", "warn", f"{said}: too few", hint)
    return Finding("inotify", "ok", said)


def watched(config: Mapping[str, Any], base: Path) -> list[Path]:
    """The folders that take inotify's watches: those that are not polled."""
    told = [folder for folder in _folders(config) if folder.get("polling") is not True]
    paths = [_path(folder.get("path"), base) for folder in told]
    return [path for path in paths if path is not None]


def _folders(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    folders = config.get("folder")
    return [folder for folder in folders if isinstance(folder, dict)] if isinstance(folders, list) else []


def _path(text: Any, base: Path) -> Path | None:
    return base / os.path.expandvars(Path(text).expanduser()) if isinstance(text, str) and text else None


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _directories(folders: Sequence[Path]) -> tuple[int, bool]:
    """How many there are, and whether there was time to count them all."""
    end = time.monotonic() + COUNT_S
    found = 0
    for folder in folders:
        for _ in os.walk(folder):
            found += 1
            if time.monotonic() > end:
                return found, False
    return found, True
