"""Checks of followed folders for `hippoctl doctor`: permissions, inotify limits, network drives, hard-link protection."""

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from daemon.config_types.mounts import MOUNTS, NETWORK_FILE_SYSTEMS, VIEWS, mount_of
from daemon.contract.finding import Finding, guarded

COUNT_TIMEOUT_S = 2.0
"""Time limit for counting directories."""
READ_CHECK_TIMEOUT_S = 2.0
"""Time limit for finding unreadable files."""
INOTIFY_LIMITS = Path("/proc/sys/fs/inotify")
HARD_LINKS = Path("/proc/sys/fs/protected_hardlinks")


def inspect_folders(folders: Sequence[tuple[Path, bool]]) -> Iterator[Finding]:
    """Checks `folders`: (path, whether the folder is polled)."""
    watched = [path for path, polling in folders if not polling]
    if folders:
        yield from guarded("inotify", lambda: [inotify(watched, INOTIFY_LIMITS)])
    for path, polling in folders:
        yield readable(path)
        yield from drive(path, polling, MOUNTS)
    if folders:
        yield from hard_links(HARD_LINKS)


def inotify(folders: Sequence[Path], limits: Path) -> Finding:
    """Checks the user's limit of inotify watches: each directory in a watched folder needs one watch."""
    if not folders:
        return Finding("inotify", "ok", "not needed: all followed folders are polled")
    watches, instances = _number(limits / "max_user_watches"), _number(limits / "max_user_instances")
    if watches is None:
        return Finding("inotify", "warn", "not on this system", "set polling = true in every [[folder]]")
    directories, whole = _directories(folders)
    noun = "directory" if directories == 1 else "directories"
    detail = f"{directories:,} {noun}{'' if whole else ' or more'} of {watches:,} watches"
    if instances is not None and instances < 16:
        hint = "sysctl fs.inotify.max_user_instances=128"
        return Finding("inotify", "warn", f"only {instances} instances for each user", hint)
    if directories * 1.25 > watches:
        hint = f"sysctl fs.inotify.max_user_watches={max(524_288, directories * 2)}, or polling = true in [[folder]]"
        return Finding("inotify", "warn", f"{detail}: too few", hint)
    return Finding("inotify", "ok", detail)


def readable(folder: Path) -> Finding:
    """Checks whether the present user, who may differ from hippod's user, can read all files in the folder."""
    name = f"drive {folder}"
    end = time.monotonic() + READ_CHECK_TIMEOUT_S
    refused: list[str] = []
    files = 0

    def not_listed(error: OSError) -> None:
        refused.append(str(error.filename))

    for top, _, names in os.walk(folder, onerror=not_listed):
        for each in names:
            files += 1
            path = os.path.join(top, each)  # noqa: PTH118
            if not os.access(path, os.R_OK, effective_ids=True) and not os.path.islink(path):  # noqa: PTH114
                refused.append(path)
        if time.monotonic() > end:
            break
    if refused:
        hint = f"let hippod's user read it: setfacl -R -m u:hippod:rX {folder}, or chmod -R o+rX"
        return Finding(name, "fail", f"{len(refused):,} cannot be read, such as {refused[0]}", hint)
    return Finding(name, "ok", f"{files:,} files can be read")


def drive(folder: Path, polling: bool, mounts: Path) -> Iterator[Finding]:
    kind = mount_of(folder, mounts).type
    if kind in NETWORK_FILE_SYSTEMS and not polling:
        hint = "set polling = true in its [[folder]]"
        yield Finding(
            f"drive {folder}", "warn", f"a network drive ({kind}), which does not report changes made elsewhere", hint
        )
    elif kind in VIEWS and not polling:
        detail = f"a view of other folders ({kind}), which does not report changes made to those directly"
        yield Finding(
            f"drive {folder}", "warn", detail, "set polling = true in its [[folder]], or follow those folders"
        )
    elif kind in NETWORK_FILE_SYSTEMS:
        yield Finding(f"drive {folder}", "ok", f"a network drive ({kind}), polled")


def hard_links(setting: Path) -> Iterator[Finding]:
    """Warns if the protection of hard links is off: any user can then link files of the same disk into a folder with write
    access."""
    try:
        on = setting.read_text().strip() != "0"
    except OSError:
        return
    if not on:
        hint = "sysctl fs.protected_hardlinks=1"
        yield Finding(
            "hard links", "warn", "users may link files that they cannot read (fs.protected_hardlinks=0)", hint
        )


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _directories(folders: Sequence[Path]) -> tuple[int, bool]:
    """Returns (the number of directories, whether all were counted within the time limit)."""
    end = time.monotonic() + COUNT_TIMEOUT_S
    found = 0
    for folder in folders:
        for _ in os.walk(folder):
            found += 1
            if time.monotonic() > end:
                return found, False
    return found, True
