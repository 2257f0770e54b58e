"""verify, backup and restore: that the memory is what its tables say, and that it can be had again."""

import os
import subprocess
import sys
from pathlib import Path

import click

from cli.client.address import find_config
from cli.daemon_progress import daemon_progress
from cli.errors import CommandError, Exit
from cli.global_options import Invocation, json_option, pass_invocation
from cli.terminal_text import count, size
from daemon.contract.http.routes import Route
from daemon.contract.transfer import BackupResponse, VerifyResponse

MAINTENANCE_TIMEOUT_S = 3600.0
"""How long deriving or copying everything may take."""


@click.command()
@json_option
@pass_invocation
def verify(invocation: Invocation) -> None:
    """Derive everything once more from the tables and compare; exits with 1 where something differs."""
    from cli.client.typed_answers import parse_answer
    from cli.render.lines import text

    with invocation.client() as client, daemon_progress(invocation, "verifying", ["verify"]):
        answer = client.call("POST", Route.VERIFY, timeout_s=MAINTENANCE_TIMEOUT_S)
    found = parse_answer(VerifyResponse, answer)
    summary = f"commit {found.commit}: {count(found.lines, 'line')} compared, synonym recall {found.synonym_recall:.4f}"
    invocation.emit(answer, lambda: [text(line) for line in [summary, *found.problems]])
    if found.problems:
        sys.exit(Exit.FAILED)


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@json_option
@pass_invocation
def backup(invocation: Invocation, directory: Path) -> None:
    """Write the memory as of the last commit to DIR, which must be absent or empty.

    The daemon writes it while it goes on, as links where DIR is on the store's disk; DIR is on the daemon's machine.
    Documents that were accepted and wait to be indexed are in it too.
    """
    from cli.client.typed_answers import parse_answer
    from cli.render.lines import text

    with invocation.client() as client, daemon_progress(invocation, "backing up", ["backup"]):
        answer = client.call(
            "POST", Route.BACKUP, {"directory": str(directory.absolute())}, timeout_s=MAINTENANCE_TIMEOUT_S
        )
    made = parse_answer(BackupResponse, answer)
    invocation.emit(
        answer, lambda: [text(f"commit {made.commit}, {count(made.files, 'file')}, {size(made.bytes)}, in {directory}")]
    )


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="hippod's configuration file. Default: the one whose socket would be asked.",
)
@json_option
@pass_invocation
def restore(invocation: Invocation, directory: Path, config: Path | None) -> None:
    """Put the backup in DIR in the place of the store. hippod must not be running; what was there is kept beside it.

    Runs `hippod --restore DIR` here: do it as the user that hippod runs as.
    """
    from cli.render.lines import text

    config = config or find_config(os.environ, Path.cwd())
    chosen = ["--config", str(config)] if config is not None else []
    command = [sys.executable, "-P", "-m", "daemon.main", *chosen, "--restore", str(directory.absolute())]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - hippod itself
    if done.returncode:
        raise CommandError(done.stderr.strip().removeprefix("hippod: ") or "hippod --restore failed.", Exit.FAILED)
    message = done.stdout.strip()
    invocation.emit({"restored": str(directory.absolute()), "message": message}, lambda: [text(message)])
