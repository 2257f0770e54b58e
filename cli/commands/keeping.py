"""verify, backup and restore: that the memory is what its tables say, and that it can be had again."""

import subprocess
import sys
from pathlib import Path

import click

from cli.errors import Exit, Failure
from cli.output import progress
from cli.session import Session, json_option, pass_session
from cli.text import count, size
from daemon.contract import BackupResponse, Route, VerifyResponse

HOUR_S = 3600.0
"""How long deriving or copying everything may take."""


@click.command()
@json_option
@pass_session
def verify(session: Session) -> None:
    """Derive everything once more from the tables and compare; exits with 1 where something differs."""
    from cli.client import read
    from cli.render.lines import text

    with session.client() as client, progress("verifying"):
        answer = client.call("POST", Route.VERIFY, timeout_s=HOUR_S)
    found = read(VerifyResponse, answer)
    summary = f"commit {found.commit}: {count(found.lines, 'line')} compared, synonym recall {found.synonym_recall:.4f}"
    session.emit(answer, lambda: [text(line) for line in [summary, *found.problems]])
    if found.problems:
        sys.exit(Exit.FAILED)


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@json_option
@pass_session
def backup(session: Session, directory: Path) -> None:
    """Write the memory as of the last commit to DIR, which must be absent or empty.

    The daemon writes it while it goes on, as links where DIR is on the store's disk; DIR is on the daemon's machine.
    Documents that were accepted and wait to be indexed are in it too.
    """
    from cli.client import read
    from cli.render.lines import text

    with session.client() as client, progress("backing up"):
        answer = client.call("POST", Route.BACKUP, {"directory": str(directory.absolute())}, timeout_s=HOUR_S)
    made = read(BackupResponse, answer)
    session.emit(
        answer, lambda: [text(f"commit {made.commit}, {count(made.files, 'file')}, {size(made.bytes)}, in {directory}")]
    )


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help="hippod's configuration file.")
@json_option
@pass_session
def restore(session: Session, directory: Path, config: Path | None) -> None:
    """Put the backup in DIR in the place of the store. hippod must not be running; what was there is kept beside it.

    Runs `hippod --restore DIR` here: do it as the user that hippod runs as.
    """
    from cli.render.lines import text

    chosen = ["--config", str(config)] if config is not None else []
    command = [sys.executable, "-P", "-m", "daemon.main", *chosen, "--restore", str(directory.absolute())]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - hippod itself
    if done.returncode:
        raise Failure(done.stderr.strip().removeprefix("hippod: ") or "hippod --restore failed.", Exit.FAILED)
    said = done.stdout.strip()
    session.emit({"restored": str(directory.absolute()), "message": said}, lambda: [text(said)])
