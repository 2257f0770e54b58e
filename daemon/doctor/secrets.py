"""Checks whether other users can read files with secrets."""

import stat
from collections.abc import Iterator
from pathlib import Path

from daemon.config import Config
from daemon.contract.finding import Finding

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
