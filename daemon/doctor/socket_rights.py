"""Compares the socket's mode and group with the configured ones, which systemd does not read."""

import grp
import stat
from collections.abc import Iterator

from daemon.config import Config
from daemon.contract.finding import Finding


def socket_rights(config: Config) -> Iterator[Finding]:
    """Compares only settings that the configuration names. `hippoctl doctor` itself reports an absent socket."""
    api = config.api
    try:
        found = api.socket.stat()
    except OSError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        return
    wrong, drop_in = [], []
    mode = stat.S_IMODE(found.st_mode)
    if "mode" in api.model_fields_set and mode != api.mode_bits:
        wrong.append(f"has mode {mode:04o}, [api] mode is {api.mode_bits:04o}")
        drop_in.append(f"SocketMode={api.mode_bits:04o}")
    if api.group is not None and found.st_gid != grp.getgrnam(api.group).gr_gid:
        wrong.append(f"is of group {_group(found.st_gid)}, [api] group is {api.group}")
        drop_in.append(f"SocketGroup={api.group}")
    if wrong:
        hint = (
            "where systemd makes the socket, only its unit decides: `systemctl edit hippod.socket`, "
            f"[Socket] {' '.join(drop_in)}, then restart it and hippod.service; elsewhere restart hippod"
        )
        yield Finding("socket rights", "warn", f"{api.socket} {' and '.join(wrong)}", hint)


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
