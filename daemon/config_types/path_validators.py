"""Checks of configured paths on this machine: files must be readable, directories must exist."""

import os
import re
import shlex
import stat
from difflib import get_close_matches
from pathlib import Path

from pydantic import ValidationInfo

from daemon.config_types.mounts import hidden_problem, private_tmp_problem
from daemon.config_types.values import context_of
from memory.llm.prompt_texts import BadPromptFile, read_prompt_files

_TOKEN_BYTES = 4096
ABSENT = "absent: "
"""Prefix of the text that the systemd units provide in place of a missing credential; instructions follow the prefix."""


def existing_directory(path: Path) -> Path:
    """Raises `ValueError` unless `path` is a directory that can be listed."""
    if "s3:" in path.parts:
        raise ValueError(
            "a directory; hippod follows no object store: mount it and set `polling`, or read it by hippod-backfill "
            "(docs/how-to/backfill.md)"
        )
    try:
        is_directory = stat.S_ISDIR(path.stat().st_mode)
        if is_directory:
            next(path.iterdir(), None)
    except FileNotFoundError:
        reason = private_tmp_problem(path) or hidden_problem(path) or "create it first"
        raise ValueError(f"a directory that exists; there is no {path}{_similar(path)}; {reason}") from None
    except OSError as error:
        raise ValueError(f"a directory that hippod may read; {path}: {error.strerror}") from None
    if not is_directory:
        raise ValueError(f'a directory; {path} is not one, write "{path.parent}" and put the file in `include`')
    return path


def directory_to_be(path: Path) -> Path:
    """Raises `ValueError` unless `path` is a directory or can be created with its parents."""
    allowed = "a directory, which is created if it is missing"
    if problem := private_tmp_problem(path):
        raise ValueError(f"{allowed}; {problem}")
    nearest = next(each for each in (path, *path.parents) if os.path.lexists(each))
    try:
        is_directory = stat.S_ISDIR(nearest.stat().st_mode)
    except FileNotFoundError:
        raise ValueError(f"{allowed}; {nearest} is a link to {nearest.readlink()}, which does not exist") from None
    except OSError:  # the user of `--check` may have fewer rights than hippod
        return path
    if not is_directory:
        raise ValueError(f"{allowed}; {nearest} is a file")
    return path


def readable_secret(path: Path | None, info: ValidationInfo) -> Path | None:
    """Raises `ValueError` unless `path` is a regular file that can be opened."""
    if path is not None and context_of(info).read_secrets:
        _head(path)
    return path


def usable_prompts(folder: Path | None) -> Path | None:
    """Raises `ValueError` unless each prompt in `folder` is usable."""
    if folder is not None:
        try:
            read_prompt_files(folder)
        except BadPromptFile as error:
            raise ValueError(f"a folder of prompts that can be used; {error}") from None
    return folder


def token_in(path: Path | None, info: ValidationInfo) -> Path | None:
    """Raises `ValueError` unless `path` contains a usable bearer token."""
    if path is not None and context_of(info).read_secrets:
        read_token(path)
    return path


def read_token(path: Path) -> str:
    """Returns the bearer token in the file, without surrounding white space. Raises `ValueError` with the reason."""
    try:
        token = _head(path).strip()
    except _NoSuchFile as error:
        raise ValueError(f"{error}; {make_token(path)}") from None
    if not token:
        raise ValueError(f"a file with the token; {path} is empty; {make_token(path)}")
    if token.startswith(ABSENT):
        raise ValueError(f"a file with the token; systemd provides none: {token.removeprefix(ABSENT)}")
    # RFC 6750, section 2.1: the characters allowed after "Bearer" in an Authorization header.
    if not re.fullmatch(r"[A-Za-z0-9._~+/-]+=*", token, re.ASCII):
        raise ValueError(
            f"a file with one token of letters, digits and -._~+/; {path} contains something else; {make_token(path)}"
        )
    return token


def make_token(path: Path | str) -> str:
    """Returns instructions for creating a file with a token."""
    return f"this makes one: (umask 077; openssl rand -hex 32 > {shlex.quote(str(path))})"


class _NoSuchFile(ValueError):
    """There is no file with this name."""


def _head(path: Path) -> str:
    expected = "a file that hippod can read"
    try:
        # Opened without blocking and checked afterwards: reading a named pipe that replaced the file would block forever.
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise ValueError(f"{expected}; {path} is not a regular file")
            content = os.read(file, _TOKEN_BYTES + 1)
        finally:
            os.close(file)
    except FileNotFoundError:
        raise _NoSuchFile(f"{expected}; there is no {path}{_similar(path)}") from None
    except OSError as error:
        raise ValueError(f"{expected}; {path}: {error.strerror}, check its owner and mode") from None
    if len(content) > _TOKEN_BYTES:
        raise ValueError(f"a file of at most {_TOKEN_BYTES} bytes; {path} is larger")
    return content.decode("utf-8", "replace")


def _similar(path: Path) -> str:
    """Returns a suggestion from the names in the same folder."""
    try:
        names = sorted(entry.name for entry in path.parent.iterdir())
    except OSError:
        return f", nor can {path.parent} be listed"
    near = get_close_matches(path.name, names, n=1, cutoff=0.7)
    return f", did you mean {path.parent / near[0]}?" if near else ""
