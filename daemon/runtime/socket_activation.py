"""A socket of the service manager's that differs from the configuration is used as it is, and the difference is logged.

systemd gives its socket the path, mode and group of the `.socket` unit. What `[api]` says of them then has no effect, and
whoever narrowed or widened `mode` or `group` there must not believe that it had.
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
    """Where the inherited socket listens; what differs from the configuration is logged."""
    address = str(inherited.getsockname())
    if address != str(api.socket):
        log.warning("socket_differs", listening=address, configured=str(api.socket))
    try:
        file = Path(address).stat()
    except (OSError, ValueError):  # without a file, there is neither mode nor group
        return address
    listening, configured = [], []
    # A mode that nobody wrote is a default, which the unit may well have another of.
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
