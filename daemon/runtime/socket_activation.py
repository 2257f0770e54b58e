"""Uses the service manager's socket as it is, and logs how it differs from the configuration.

systemd's socket has the path, mode and group of the `.socket` unit. The corresponding settings of `[api]` have no effect then;
the log tells this to anyone who changed `mode` or `group` there.
"""

import grp
import os
import socket
import stat
from pathlib import Path

import structlog

from daemon.config.sections import Api

log = structlog.get_logger(__name__)

HINT = (
    "SocketMode= and SocketGroup= of the socket's unit decide: change them with `systemctl edit hippod.socket` ([Socket]), "
    "then stop hippod.service and hippod.socket, and start both"
)


def inherited_address(inherited: socket.socket, api: Api) -> str:
    """Returns the address of the inherited socket; logs differences from the configuration."""
    address = str(inherited.getsockname())
    if address != str(api.socket):
        log.warning("socket_differs", listening=address, configured=str(api.socket))
    try:
        file = Path(address).stat()
    except (OSError, ValueError):  # a socket without a file has no mode or group
        return address
    if found := access_differences(file, api):
        log.warning(
            "socket_access_differs",
            listening=", ".join(f"{what} {there}" for what, there, _ in found),
            configured=", ".join(f"{what} {wanted}" for what, _, wanted in found),
            hint=HINT,
        )
    return address


def access_differences(file: os.stat_result, api: Api) -> list[tuple[str, str, str]]:
    """Returns ("mode" or "group", that of the socket, that of `[api]`) for each that differs.

    A mode that is not set explicitly is not compared: the unit's default may differ.
    """
    found = []
    if "mode" in api.model_fields_set and (mode := stat.S_IMODE(file.st_mode)) != api.mode_bits:
        found.append(("mode", f"{mode:04o}", f"{api.mode_bits:04o}"))
    if api.group is not None and grp.getgrnam(api.group).gr_gid != file.st_gid:
        found.append(("group", _group_name(file.st_gid), api.group))
    return found


def _group_name(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
