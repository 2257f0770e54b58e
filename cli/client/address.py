"""Finds the daemon's socket.

The first value that is set counts: --socket, $HIPPOD_SOCKET, $HIPPOD_API__SOCKET, `[api] socket` of the configuration. If none
is set, the default counts. The configuration is $HIPPOD_CONFIG if that is set, otherwise the first existing file of
$XDG_CONFIG_HOME/hippod/config.toml, /etc/hippod/config.toml and ./config.toml. ./config.toml is last: it makes a checkout
usable without installation, but must not override an installed daemon's configuration.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.errors import CommandError, Exit
from daemon.contract.paths import SOCKET, SOCKET_BYTES_MAX, candidates, expand


@dataclass(frozen=True, slots=True)
class Address:
    """The socket's path, and the setting that defines it. `config`: the configuration file in use, or None."""

    path: Path
    origin: str
    config: Path | None = None

    @property
    def connectable(self) -> str:
        """The path for `connect`: relative if the absolute path is too long for a Unix socket."""
        absolute = str(self.path)
        if len(os.fsencode(absolute)) <= SOCKET_BYTES_MAX:
            return absolute
        return min(absolute, os.path.relpath(absolute), key=lambda path: len(os.fsencode(path)))


def find_socket(flag: str | None, environ: Mapping[str, str], cwd: Path) -> Address:
    """Returns the socket to connect to. Raises CommandError if the configuration cannot be read."""
    if flag:
        return Address(_path(flag, cwd, environ), "--socket")
    if environ.get("HIPPOD_SOCKET"):
        return Address(_path(environ["HIPPOD_SOCKET"], cwd, environ), "$HIPPOD_SOCKET")
    config = find_config(environ, cwd)
    base = config.parent if config else cwd
    if environ.get("HIPPOD_API__SOCKET"):
        return Address(_path(environ["HIPPOD_API__SOCKET"], base, environ), "$HIPPOD_API__SOCKET", config)
    if config is not None:
        written = table(read_config(config), "api").get("socket")
        if isinstance(written, str) and written:
            return Address(_path(written, base, environ), f"[api] socket in {config}", config)
    return Address(_path(str(SOCKET), base, environ), "the default", config)


def find_config(environ: Mapping[str, str], cwd: Path) -> Path | None:
    """Returns the configuration file, or None."""
    if environ.get("HIPPOD_CONFIG"):
        return _path(environ["HIPPOD_CONFIG"], cwd, environ)
    places = [place for place, _ in candidates(environ)]
    # os.path.isfile treats a folder without access as absent; Path.is_file would raise.
    return next((path for path in (*places, cwd / "config.toml") if os.path.isfile(path)), None)  # noqa: PTH113


def read_config(path: Path) -> dict[str, Any]:
    """Returns the parsed TOML. The daemon validates its values. Raises CommandError."""
    import tomllib  # needed only if a configuration defines the socket

    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise CommandError(
            f"$HIPPOD_CONFIG names {path}, which does not exist.", hint="Or use --socket PATH."
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CommandError(
            f"{path} cannot be read for the socket's place: {error}.", hint="Correct the file, or use --socket PATH."
        ) from None


def table(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Returns a table of the configuration; empty if it is missing or not a table."""
    value = config.get(name)
    return value if isinstance(value, dict) else {}


def _path(text: str, base: Path, environ: Mapping[str, str]) -> Path:
    try:
        return expand(text, base, environ)
    except ValueError as error:
        raise CommandError(
            f"{text} is not {error}.", Exit.USAGE, "Write the full path, or use --socket PATH."
        ) from None
