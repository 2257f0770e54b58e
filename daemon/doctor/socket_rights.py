"""Compares the socket's mode and group with the configured ones, which systemd does not read."""

import stat
from collections.abc import Iterator

from daemon.config import Config
from daemon.contract.finding import Finding
from daemon.runtime.socket_activation import access_differences


def socket_rights(config: Config) -> Iterator[Finding]:
    """Compares only settings that the configuration names. `hippoctl doctor` itself reports an absent socket."""
    api = config.api
    try:
        file = api.socket.stat()
    except OSError:
        return
    if stat.S_ISSOCK(file.st_mode) and (found := access_differences(file, api)):
        verbs = {"mode": "has mode", "group": "is of group"}
        wrong = " and ".join(f"{verbs[what]} {there}, [api] {what} is {wanted}" for what, there, wanted in found)
        drop_in = " ".join(f"Socket{what.capitalize()}={wanted}" for what, _, wanted in found)
        hint = (
            "where systemd makes the socket, only its unit decides: `systemctl edit hippod.socket`, "
            f"[Socket] {drop_in}, then restart it and hippod.service; elsewhere restart hippod"
        )
        yield Finding("socket rights", "warn", f"{api.socket} {wrong}", hint)
