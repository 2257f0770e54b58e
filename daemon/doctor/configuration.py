"""Whether the configuration is valid, and who may change it."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from daemon.config import Config, ConfigError, NoConfigFile, load_config, unsupported
from daemon.contract.finding import ASK_ROOT, Finding

CREDENTIALS_UNSET = "$CREDENTIALS_DIRECTORY is not set"
"""In the problem of a file that systemd gives to the service alone."""
NOT_PERMITTED = f": {os.strerror(errno.EACCES)}"
"""In the problem of a file or folder that this user may not read, as hippod's own user perhaps may."""
PROBLEMS_CHARACTERS_MAX = 600


def configuration(file: Path | None) -> tuple[Config | None, Finding]:
    """The configuration, None where it cannot be used, and what is wrong with it. `file` as `hippod --config` takes it."""
    try:
        config = load_config(file)
        problems = unsupported(config)
    except NoConfigFile:
        hint = "write one; `hippod --config FILE` names it"
        return None, Finding("configuration", "warn", "none was found at the usual places", hint)
    except ConfigError as error:
        problems = list(error.problems)
    if not problems:
        return config, Finding("configuration", "ok", str(config.file))
    text = "; ".join(problems)[:PROBLEMS_CHARACTERS_MAX]
    if all(CREDENTIALS_UNSET in each or NOT_PERMITTED in each for each in problems):
        # This user sees less than hippod's does: no mistake of the configuration.
        if any(CREDENTIALS_UNSET in each for each in problems):
            hint = f"run `sudo CREDENTIALS_DIRECTORY=/etc/hippod/credentials HIPPOD_CONFIG={file} hippoctl doctor`"
            detail = f"{file}: what is in $CREDENTIALS_DIRECTORY is seen by the service alone"
            return None, Finding("configuration", "warn", detail, hint)
        hint = f"{ASK_ROOT}; hippod's own user must be able to read it"
        return None, Finding("configuration", "warn", f"{file} names what cannot be seen by this user: {text}", hint)
    return None, Finding("configuration", "fail", text, f"mend {file or 'it'}")


def directory_permissions(directory: Path) -> Iterator[Finding]:
    """The directory of the configuration: whoever may write there decides what hippod reads."""
    mode = directory.stat().st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        detail = f"{directory}: every user may write to it"
        yield Finding("configuration directory", "warn", detail, f"chmod o-w {directory}")
