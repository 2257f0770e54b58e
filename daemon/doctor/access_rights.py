"""Checks who can read files with secrets, connect to the socket, and choose the labels of documents.

hippod's directories are closed to other users on purpose; `nearest` and `closed` find what the present user may access.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from daemon.config import Config
from daemon.contract.finding import Finding
from daemon.runtime.service_manager import access_differences

TOKEN_CHARACTERS_MIN = 16
"""Minimum length of a token; a shorter one can be guessed."""


def secrets(config: Config) -> Iterator[Finding]:
    if config.api.token_file is not None:
        yield from _token("token", config.api.token_file)
    for client in config.client:
        if client.token_file is not None:
            yield from _token(f"token of {client.client_name}", client.token_file)
    for server in (config.llm, config.llm.judge):
        if server.api_key_file is not None:
            yield _file_mode("api_key_file", server.api_key_file)


def _token(name: str, file: Path) -> Iterator[Finding]:
    yield _file_mode("token_file", file)
    token = file.read_text(errors="replace").strip()
    if len(token) < TOKEN_CHARACTERS_MIN:
        hint = f"put a longer one into it: openssl rand -hex 32 > {file}"
        yield Finding(name, "warn", f"the bearer token has only {len(token)} characters", hint)


def _file_mode(name: str, path: Path) -> Finding:
    found = path.stat()
    mode = stat.S_IMODE(found.st_mode)
    if mode & (stat.S_IROTH | stat.S_IWOTH):
        return Finding(name, "warn", f"{path} can be read by every user (mode {mode:04o})", f"chmod o-rwx {path}")
    if mode & stat.S_IWGRP:
        return Finding(name, "warn", f"{path} can be changed by its group (mode {mode:04o})", f"chmod g-w {path}")
    return Finding(name, "ok", f"{path}, mode {mode:04o}")


def label_rights(config: Config) -> Iterator[Finding]:
    """Warns about each source that accepts labels from its documents. Without `[[client]]`, labels give no rights."""
    if not config.client:
        return
    sources = [name for name, labels in config.source_labels() if labels.from_documents]
    for name in sources:
        detail = f"documents of {name} choose by their own labels which [[client]] sees them"
        hint = "if not everyone who writes there may do that, set labels_from_documents = false in its section"
        yield Finding("labels", "warn", detail, hint)
    if not sources:
        yield Finding("labels", "ok", "only the configuration gives labels to followed documents")


def socket_rights(config: Config) -> Iterator[Finding]:
    """Compares the socket's mode and group with the configuration, which a socket created by systemd does not follow.

    `hippoctl doctor` itself reports an absent socket.
    """
    api = config.api
    try:
        file = api.socket.stat()
    except OSError:
        return
    if stat.S_ISSOCK(file.st_mode) and (found := access_differences(file, api)):
        verbs = {"mode": "has mode", "group": "is of group"}
        differences = " and ".join(
            f"{verbs[setting]} {actual}, [api] {setting} is {configured}" for setting, actual, configured in found
        )
        drop_in = " ".join(f"Socket{setting.capitalize()}={configured}" for setting, _, configured in found)
        hint = (
            "where systemd makes the socket, only its unit decides: `systemctl edit hippod.socket`, "
            f"[Socket] {drop_in}, then restart it and hippod.service; elsewhere restart hippod"
        )
        yield Finding("socket rights", "warn", f"{api.socket} {differences}", hint)


def nearest(path: Path) -> Path:
    """Returns the resolved path if this user can see it, otherwise the nearest directory above it that this user can see."""
    place = Path(os.path.realpath(path))
    # os.path.exists treats a path in a closed directory as absent; Path.exists would raise.
    return next(each for each in (place, *place.parents) if os.path.exists(each))  # noqa: PTH110


def closed(path: Path) -> Path | None:
    """Returns the directory `nearest(path)` if this user may not enter it; otherwise None."""
    place = nearest(path)
    return place if place.is_dir() and not os.access(place, os.X_OK, effective_ids=True) else None
