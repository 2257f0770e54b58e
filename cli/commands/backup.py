"""verify, backup and restore: checks the store against its tables, and copies it."""

import os
import subprocess
import sys
from pathlib import Path

import click

from cli.client.address import find_config
from cli.client.typed_answers import parse_answer
from cli.daemon_progress import daemon_progress
from cli.errors import CommandError, Exit
from cli.options.global_options import Invocation, command
from cli.render.lines import text
from cli.terminal_text import count, size, uri
from daemon.contract.http.routes import Route
from daemon.contract.transfer import FRESH_BUILD_MAX_DOCUMENTS, SEED_MAX, BackupResponse, VerifyResponse


@command("verify")
@click.option(
    "--against-fresh-build",
    "documents",
    type=click.IntRange(1, FRESH_BUILD_MAX_DOCUMENTS),
    metavar="N",
    help="Also parse and extract N documents of followed files again, chosen at random, and compare them.",
)
@click.option(
    "--seed", type=click.IntRange(0, SEED_MAX), metavar="S", help="Choose the documents that an earlier run has chosen."
)
def verify(invocation: Invocation, documents: int | None, seed: int | None) -> None:
    if seed is not None and documents is None:
        raise click.UsageError("--seed needs --against-fresh-build")
    options = {"against_fresh_build": documents, "seed": seed}
    body = {name: value for name, value in options.items() if value is not None}
    with daemon_progress(invocation, "verifying", ["verify"]):
        answer = invocation.call("POST", Route.VERIFY, body)
    found = parse_answer(VerifyResponse, answer)
    lines = [
        f"commit {found.commit}: {count(found.checked, 'file')} and {count(found.lines, 'line')} compared, "
        f"synonym recall {found.synonym_recall:.4f}"
    ]
    if found.without_checksum:
        lines.append(f"{count(found.without_checksum, 'file')} of an earlier release without a checksum")
    if (fresh := found.fresh_build) is not None:
        summary = (
            f"{count(fresh.documents, 'document')} with {count(fresh.passages, 'passage')} compared with a fresh build"
        )
        lines.append(f"{summary} (--seed {fresh.seed})")
        lines += [f"{uri(each)} has changed since it was indexed: not compared" for each in fresh.changed]
    invocation.emit(answer, lambda: [text(line) for line in [*lines, *found.problems]])
    if found.problems:
        sys.exit(Exit.FAILED)


@command("backup")
@click.argument("place", metavar="URL")
def backup(invocation: Invocation, place: str) -> None:
    """The daemon keeps running. A directory must be absent or empty and is on the daemon's machine; on the store's disk it
    contains hard links. To s3://bucket/prefix (or file:///folder, a mounted drive), the daemon sends only files that earlier
    backups lack; it finds credentials like the AWS tools. Accepted documents that wait to be indexed are included.
    """
    where = place if "://" in place else str(Path(place).absolute())
    with daemon_progress(invocation, "backing up", ["backup"]):
        answer = invocation.call("POST", Route.BACKUP, {"directory": where})
    made = parse_answer(BackupResponse, answer)
    summary = f"commit {made.commit}, {count(made.files, 'file')}, {size(made.bytes)}, in {place}"
    if made.name is not None:
        summary += f" as {made.name}; sent {count(made.sent or 0, 'file')}, {size(made.sent_bytes or 0)}"
    invocation.emit(answer, lambda: [text(summary)])


@command("restore")
@click.argument("place", metavar="URL")
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="hippod's configuration file. Default: the one that hippoctl uses.",
)
def restore(invocation: Invocation, place: str, config: Path | None) -> None:
    """URL is a directory, s3://bucket/prefix (its newest backup), or s3://bucket/prefix/backups/NAME. Runs `hippod --restore
    URL`: use the user that hippod runs as.
    """
    where = place if "://" in place else str(Path(place).absolute())
    config = config or find_config(os.environ, Path.cwd())
    chosen = ["--config", str(config)] if config is not None else []
    command = [sys.executable, "-P", "-m", "daemon.main", *chosen, "--restore", where]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - hippod itself
    if done.returncode:
        raise CommandError(done.stderr.strip().removeprefix("hippod: ") or "hippod --restore failed.", Exit.FAILED)
    message = done.stdout.strip()
    invocation.emit({"restored": where, "message": message}, lambda: [text(message)])
