"""File locations: the configuration file's search order, and the syntax of paths.

Only the standard library is imported, so that programs that need only the socket's path start quickly.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})", re.ASCII)
_XDG = {"XDG_CONFIG_HOME": ".config", "XDG_DATA_HOME": ".local/share", "XDG_STATE_HOME": ".local/state"}

STORE = Path("$XDG_DATA_HOME/hippod/store")
SOCKET = Path("$XDG_RUNTIME_DIR/hippod.sock")
SYSTEM_CONFIG = Path("/etc/hippod/config.toml")
SOCKET_BYTES_MAX = 107
"""Maximum length of a Unix socket's path. `sun_path` of `sockaddr_un` has 108 bytes, the last one a NUL."""


def candidates(environ: Mapping[str, str]) -> list[tuple[Path, str]]:
    """Returns the files that are tried without `--config`, in order, each with its origin."""
    if environ.get("HIPPOD_CONFIG"):
        return [(Path(environ["HIPPOD_CONFIG"]).expanduser(), "$HIPPOD_CONFIG")]
    return [
        (Path(_variable("XDG_CONFIG_HOME", environ)) / "hippod" / "config.toml", "$XDG_CONFIG_HOME"),
        (SYSTEM_CONFIG, "the system's"),
    ]


def expand(text: str, base: Path, environ: Mapping[str, str]) -> Path:
    """Returns `text` as an absolute path: expands `~` and `$VAR`, relative to `base`. Raises `ValueError` if it is invalid."""
    if not text.strip():
        raise ValueError('a path, such as "/srv/notes"; it is empty')
    if "\0" in text:
        raise ValueError("a path without a NUL character")
    expanded = _VARIABLE.sub(lambda match: _variable(match[1] or match[2], environ), text)
    if expanded.startswith("~/") or expanded == "~":
        expanded = _home(environ) + expanded[1:]
    elif expanded.startswith("~"):
        try:
            expanded = str(Path(expanded).expanduser())
        except RuntimeError:
            raise ValueError("a path whose ~user exists on this machine") from None
    path = base / expanded
    # Only ".." needs `resolve`, because it must follow symbolic links as the system does.
    return path.resolve() if ".." in path.parts else path.absolute()


def _variable(name: str, environ: Mapping[str, str]) -> str:
    if environ.get(name):
        return environ[name]
    if name in _XDG:
        return f"{_home(environ)}/{_XDG[name]}"
    if name == "XDG_RUNTIME_DIR":
        runtime = f"/run/user/{os.getuid()}"
        return runtime if Path(runtime).is_dir() else _variable("XDG_STATE_HOME", environ)
    if name == "HOME":
        return _home(environ)
    raise ValueError(f"a path whose variables are set; ${name} is not set in the environment")


def _home(environ: Mapping[str, str]) -> str:
    if environ.get("HOME"):
        return environ["HOME"]
    try:
        return str(Path.home())
    except RuntimeError:
        raise ValueError("a path without ~, as no home directory is known here") from None
