"""Checks of a configuration against the machine: files that must be readable, directories that must exist."""

import os
import re
import shlex
import stat
from difflib import get_close_matches
from pathlib import Path

from pydantic import ValidationInfo

from daemon.config_types.mounts import private_tmp_problem
from daemon.config_types.values import context_of
from memory.llm.prompt_texts import BadPromptFile, read_prompt_files

_TOKEN_BYTES = 4096
ABSENT = "absent: "
"""Begins what the units of systemd give in place of a credential that nobody has written; the rest says what to do."""


def existing_directory(path: Path) -> Path:
    """`path`, when it is a directory that can be listed; else `ValueError`."""
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
        elsewhere = private_tmp_problem(path)
        create = f"hippod sees another one: {elsewhere}" if elsewhere else "create it first"
        raise ValueError(f"a directory that exists; there is no {path}{_similar(path)}; {create}") from None
    except OSError as error:
        raise ValueError(f"a directory that hippod may read; {path}: {error.strerror}") from None
    if not is_directory:
        raise ValueError(f'a directory; {path} is not one, write "{path.parent}" and put the file in `include`')
    return path


def directory_to_be(path: Path) -> Path:
    """`path`, when it is a directory or one can be made there with its parents, and it will last; else `ValueError`."""
    allowed = "a directory, which is made when absent"
    if problem := private_tmp_problem(path):
        raise ValueError(f"{allowed}; {problem}")
    nearest = next(each for each in (path, *path.parents) if os.path.lexists(each))
    try:
        is_directory = stat.S_ISDIR(nearest.stat().st_mode)
    except FileNotFoundError:
        raise ValueError(f"{allowed}; {nearest} is a link to {nearest.readlink()}, which is not there") from None
    except OSError:  # whoever checks may see less than hippod
        return path
    if not is_directory:
        raise ValueError(f"{allowed}; {nearest} is a file")
    return path


def readable_secret(path: Path | None, info: ValidationInfo) -> Path | None:
    """`path`, when it is a regular file that can be opened, or secrets are not read; else `ValueError`."""
    if path is not None and context_of(info).read_secrets:
        _head(path)
    return path


def usable_prompts(folder: Path | None) -> Path | None:
    """`folder`, when each prompt in it can be used; else `ValueError`."""
    if folder is not None:
        try:
            read_prompt_files(folder)
        except BadPromptFile as error:
            raise ValueError(f"a folder of prompts that can be used; {error}") from None
    return folder


def token_in(path: Path | None, info: ValidationInfo) -> Path | None:
    """`path`, when it has a usable bearer token in it, or secrets are not read; else `ValueError`."""
    if path is not None and context_of(info).read_secrets:
        read_token(path)
    return path


def read_token(path: Path) -> str:
    """The bearer token in the file, without the white space around it. `ValueError` says what is wrong."""
    try:
        token = _head(path).strip()
    except _NoSuchFile as error:
        raise ValueError(f"{error}; {make_token(path)}") from None
    if not token:
        raise ValueError(f"a file with the token; {path} is empty; {make_token(path)}")
    if token.startswith(ABSENT):
        raise ValueError(f"a file with the token; systemd provides none: {token.removeprefix(ABSENT)}")
    # RFC 6750, section 2.1: what can stand in an Authorization header after "Bearer".
    if not re.fullmatch(r"[A-Za-z0-9._~+/-]+=*", token, re.ASCII):
        raise ValueError(
            f"a file with one token of letters, digits and -._~+/; {path} contains something else; {make_token(path)}"
        )
    return token


def make_token(path: Path | str) -> str:
    """How to make a file with a token."""
    return f"this makes one: (umask 077; openssl rand -hex 32 > {shlex.quote(str(path))})"


class _NoSuchFile(ValueError):
    """There is no file of that name."""


def _head(path: Path) -> str:
    what = "a file that hippod can read"
    try:
        # Opened without waiting, and then looked at: a pipe, put there meanwhile, would never be opened by reading it.
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise ValueError(f"{what}; {path} is not a regular file")
            content = os.read(file, _TOKEN_BYTES + 1)
        finally:
            os.close(file)
    except FileNotFoundError:
        raise _NoSuchFile(f"{what}; there is no {path}{_similar(path)}") from None
    except OSError as error:
        raise ValueError(f"{what}; {path}: {error.strerror}, check its owner and mode") from None
    if len(content) > _TOKEN_BYTES:
        raise ValueError(f"a file of at most {_TOKEN_BYTES} bytes; {path} is larger")
    return content.decode("utf-8", "replace")


def _similar(path: Path) -> str:
    """A did-you-mean from the names beside `path`."""
    try:
        names = sorted(entry.name for entry in path.parent.iterdir())
    except OSError:
        return f", nor can {path.parent} be listed"
    near = get_close_matches(path.name, names, n=1, cutoff=0.7)
    return f", did you mean {path.parent / near[0]}?" if near else ""
