"""Checks whether the configuration is valid, `[worker]` included, and who may change it."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from daemon.config import Config, ConfigError, NoConfigFile, load_config, unsupported
from daemon.config.cross_checks import worker_problems
from daemon.contract.finding import ASK_ROOT, Finding

CREDENTIALS_UNSET = "$CREDENTIALS_DIRECTORY is not set"
"""Part of the error about a file that systemd provides only to the service."""
NOT_PERMITTED = f": {os.strerror(errno.EACCES)}"
"""Part of the error about a file or folder that this user may not read. hippod's own user may have the permission."""
PROBLEMS_CHARACTERS_MAX = 600
WORKER = "hippod-worker"


def configuration(file: Path | None) -> tuple[Config | None, Finding]:
    """Returns the configuration, or None if it cannot be used, and the finding. `file` is the value of `hippod --config`."""
    try:
        config = load_config(file)
        problems = unsupported(config)
    except NoConfigFile:
        hint = "write one; `hippod --config FILE` names it"
        return None, Finding("configuration", "warn", "no configuration file was found at the usual places", hint)
    except ConfigError as error:
        problems = list(error.problems)
    if not problems:
        return config, Finding("configuration", "ok", str(config.file))
    text = "; ".join(problems)[:PROBLEMS_CHARACTERS_MAX]
    if all(CREDENTIALS_UNSET in each or NOT_PERMITTED in each for each in problems):
        # The configuration may be correct: hippod's user may have the permissions that this user lacks.
        if any(CREDENTIALS_UNSET in each for each in problems):
            hint = f"run `{_with_credentials(file or Path('/etc/hippod/config.toml'))}`"
            detail = f"{file}: only the service can see the files in $CREDENTIALS_DIRECTORY"
            return None, Finding("configuration", "warn", detail, hint)
        hint = f"{ASK_ROOT}; hippod's own user must be able to read it"
        return None, Finding("configuration", "warn", f"{file} names files that this user cannot see: {text}", hint)
    return None, Finding("configuration", "fail", text, f"correct {file or 'it'}")


def _with_credentials(file: Path) -> str:
    """Returns the command that checks `file` with the unit's secrets. The secrets of `hippod@NAME` have the prefix `NAME-`."""
    credentials = Path("/etc/hippod/credentials")
    if file.stem == "config":
        return f"sudo CREDENTIALS_DIRECTORY={credentials} HIPPOD_CONFIG={file} hippoctl doctor"
    text = file.read_text(errors="replace")
    named = [name for name in ("token", "llm-key") if f"$CREDENTIALS_DIRECTORY/{name}" in text]
    loads = "".join(f" -p LoadCredential={name}:{credentials}/{file.stem}-{name}" for name in named)
    return f"sudo systemd-run --quiet --pipe --wait{loads} -E HIPPOD_CONFIG={file} hippoctl doctor"


def directory_permissions(directory: Path) -> Iterator[Finding]:
    """Warns if every user may write to the configuration's directory, and so replace the configuration."""
    mode = directory.stat().st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        detail = f"{directory}: every user may write to it"
        yield Finding("configuration directory", "warn", detail, f"chmod o-w {directory}")


def worker(config: Config) -> Iterator[Finding]:
    section = config.worker
    if not section.topics and section.output is None:
        return
    if problems := worker_problems(config):
        for problem in problems:
            yield Finding(WORKER, "fail", problem, "correct [worker]; `hippod-worker --check` shows the same")
        return
    # kafka-python is imported only if there is a worker to check.
    from consumers.kafka.connect import missing_topics, reachable

    if not reachable(section.settings):
        hint = "start the broker, or correct brokers in [worker]"
        yield Finding(WORKER, "fail", f"none of {', '.join(section.brokers)} can be reached", hint)
        return
    topics = [*section.topics, section.output or "", *([section.dead_letter] if section.dead_letter else [])]
    try:
        missing = missing_topics(section.settings, topics)
    except OSError as error:
        yield Finding(WORKER, "fail", f"the brokers do not list their topics: {error}", "look at [worker] options")
        return
    if missing:
        yield Finding(
            WORKER, "fail", f"the brokers have no topic {', '.join(missing)}", "create it; hippod-worker creates none"
        )
    else:
        yield Finding(WORKER, "ok", f"{', '.join(section.topics)} into {section.output}")
