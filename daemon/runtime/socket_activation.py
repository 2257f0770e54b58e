"""Uses the service manager's socket as it is, and logs how it differs from the configuration.

systemd's socket has the path, mode and group of the `.socket` unit. The corresponding settings of `[api]` have no effect then;
the log tells this to anyone who changed `mode` or `group` there.
"""

import grp
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
    listening, configured = [], []
    # Compare only a mode that is set explicitly: the unit's default may differ.
    if "mode" in api.model_fields_set and stat.S_IMODE(file.st_mode) != api.mode_bits:
        listening.append(f"mode {stat.S_IMODE(file.st_mode):04o}")
        configured.append(f"mode {api.mode}")
    if api.group is not None and _gid(api.group) != file.st_gid:
        listening.append(f"group {_group_name(file.st_gid)}")
        configured.append(f"group {api.group}")
    if configured:
        log.warning(
            "socket_access_differs", listening=", ".join(listening), configured=", ".join(configured), hint=HINT
        )
    return address


def _gid(group: str) -> int | None:
    try:
        return grp.getgrnam(group).gr_gid
    except KeyError:
        return None


def _group_name(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
