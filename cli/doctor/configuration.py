"""Whether the configuration is valid, which only `hippod --check` knows, and what `hippod --inspect` finds with it."""

import errno
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cli.client.address import table
from cli.doctor.server_checks import inspection
from cli.errors import Exit
from cli.text import one_line, truncate
from daemon.contract.finding import ASK_ROOT, Finding, guarded

CHECK_S = 60.0
CONNECT_S = 3.0
CREDENTIALS = "$CREDENTIALS_DIRECTORY is not set"
"""What `hippod --check` says of a file that systemd gives to the service alone."""
REFUSED = f": {os.strerror(errno.EACCES)}"
"""What it says of a file or folder that this user may not read, as hippod's own user perhaps may."""


def configuration(path: Path | None, config: Mapping[str, Any]) -> Iterator[Finding]:
    if path is None:
        hint = "write one; `hippod --config FILE` names it"
        yield Finding("configuration", "warn", "none was found at the usual places", hint)
        return
    hippod = _hippod()
    valid = False
    for found in guarded("configuration", lambda: [validity(path, hippod)]):
        valid = found.status == "ok"
        yield found
    if hippod is not None and valid:
        yield from guarded("inspection", lambda: inspection(path, hippod))
    else:
        yield from guarded("llm", lambda: [llm(table(config, "llm"))])


def validity(path: Path, hippod: str | None) -> Finding:
    if hippod is None:
        hint = "install hippod here, or run this where it is"
        return Finding("configuration", "warn", f"{path} was not checked: there is no hippod beside hippoctl", hint)
    try:
        done = subprocess.run(  # noqa: S603 - the program installed beside this one, no shell
            [hippod, "--config", str(path), "--check"], capture_output=True, timeout=CHECK_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("configuration", "fail", f"{hippod} --check could not be run: {error}", "install hippod anew")
    if done.returncode == 0:
        return Finding("configuration", "ok", str(path))
    problems = done.stderr.decode("utf-8", "replace").strip().splitlines()
    of_others = bool(problems) and all(CREDENTIALS in each or REFUSED in each for each in problems)
    if of_others and any(CREDENTIALS in each for each in problems):
        hint = f"run `sudo CREDENTIALS_DIRECTORY=/etc/hippod/credentials HIPPOD_CONFIG={path} hippoctl doctor`"
        return Finding(
            "configuration", "warn", f"{path}: what is in $CREDENTIALS_DIRECTORY is seen by the service alone", hint
        )
    if of_others:
        detail = f"{path} names what cannot be seen by this user: {truncate(one_line(' '.join(problems)), 400)}"
        return Finding("configuration", "warn", detail, f"{ASK_ROOT}; hippod's own user must be able to read it")
    said = one_line(done.stderr.decode("utf-8", "replace")) or f"hippod --check ended with {done.returncode}"
    code = Exit.USAGE if done.returncode == Exit.USAGE else Exit.FAILED
    return Finding("configuration", "fail", truncate(said, 600), f"mend {path}", code)


def llm(section: Mapping[str, Any]) -> Finding:
    """Whether something listens at the model server's address, where hippod itself cannot ask; no key is sent."""
    address = section.get("base_url")
    if not isinstance(address, str) or not section.get("model"):
        return Finding("llm", "ok", "none is configured: `ask` and the LLM's filter are off")
    try:
        parts = urlsplit(address)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        with socket.create_connection((parts.hostname or "", port), timeout=CONNECT_S):
            return Finding("llm", "ok", f"{address} takes connections (model {section['model']})")
    except (OSError, ValueError) as error:
        hint = "start the model server, or mend [llm] base_url"
        return Finding("llm", "fail", f"{address} cannot be reached: {error}", hint)


def _hippod() -> str | None:
    beside = Path(sys.executable).parent / "hippod"
    return str(beside) if beside.is_file() else shutil.which("hippod")
