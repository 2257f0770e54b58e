"""Hints for a user who lacks permission for the socket."""

import grp
import os
import pwd
import shlex
import stat
from pathlib import Path

ASK_HIPPOD = "run this as hippod's user, or with sudo"


def permission_hint(path: Path) -> str:
    """Returns the command that adds this user to the socket's group, or another hint, as the end of a sentence."""
    try:
        status = path.stat()
    except OSError:
        return f"the folder {path.parent} is closed to this user: {ASK_HIPPOD}"
    group = group_name(status.st_gid)
    if not status.st_mode & stat.S_IWGRP or status.st_gid == 0:
        return ASK_HIPPOD
    user = _user_name()
    if user in _members(status.st_gid):
        return f"{user} is in the group {group}, but was not at the login: log out and in again"
    return f"join the group {group}: `sudo usermod -aG {shlex.quote(group)} {shlex.quote(user)}`, then log out and in again"


def group_name(gid: int) -> str:
    """Returns the group's name, or its number if it has no name."""
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def _user_name() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _members(gid: int) -> list[str]:
    try:
        return grp.getgrgid(gid).gr_mem
    except KeyError:
        return []
