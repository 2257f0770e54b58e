"""`hippod`: options, configuration, exit codes. `daemon.app.lifecycle` does the work."""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import click
import structlog

from daemon.api.listen import refuse_waiting_clients
from daemon.config import Config, ConfigError, load_config, render, unsupported
from daemon.config_types.private_umask import make_shared_folder, use_private_umask
from daemon.observe.crashes import install, keep_crash_stacks, loop_exception_handler
from daemon.observe.logs import is_journal, log_library_output, setup
from daemon.runtime.own_environment import HINT, packages_of_others
from daemon.runtime.process_tuning import configure_malloc, pause_collection, shorten_switch_interval
from daemon.runtime.service_manager import Notifier
from daemon.runtime.signals_and_exit import QuickExit, handle_early_signals
from store.errors import StoreError
from store.log.store_lock import StoreLock
from store.private_files import Tightened, tighten

OK, FAILED, BAD_CONFIG, NO_STORE = 0, 1, 2, 3

log = structlog.get_logger()


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--config", "file", type=click.Path(path_type=Path), metavar="FILE", help="Configuration file (TOML).")
@click.option(
    "--check", is_flag=True, help="Check the configuration, print all settings in force, and exit with 0 or 2."
)
@click.option(
    "--no-secrets",
    is_flag=True,
    help="With --check: do not read the files of tokens and keys, which only the service may be able to read.",
)
@click.option(
    "--inspect",
    "inspecting",
    is_flag=True,
    help="Check this machine and the configuration, print the findings as JSON, and exit with 0 or 2; see `hippoctl doctor`.",
)
@click.option(
    "--estimate",
    "estimating",
    is_flag=True,
    help="Print what extraction by the configured model will cost, from a sample that is extracted now, and exit.",
)
@click.option(
    "--restore",
    "backup",
    metavar="URL",
    help="Replace the configured store by a backup (a directory, or s3://bucket/prefix), and exit with 0, 2 or 3.",
)
@click.option(
    "--reencode",
    is_flag=True,
    help="Run, and replace all vectors by those of the configured encoder in the background, as `hippoctl reencode` does.",
)
@click.version_option(version("hippod"), prog_name="hippod")
def main(
    file: Path | None,
    check: bool,
    no_secrets: bool,
    inspecting: bool,
    estimating: bool,
    backup: str | None,
    reencode: bool,
) -> None:
    """Run hippod, a long-term memory for language models that follows folders and Kafka topics.

    Without --config: $HIPPOD_CONFIG, then $XDG_CONFIG_HOME/hippod/config.toml, then /etc/hippod/config.toml. SIGTERM and
    SIGINT stop hippod; SIGHUP reloads settings that can change at run time. Exit codes: 0 clean stop, 2 bad configuration, 3
    the store cannot be opened, 1 anything else.
    """
    if inspecting:
        code = show_findings(file)
        sys.stdout.flush()
        os._exit(code)  # otherwise Python would wait for the threads of unfinished checks
    if no_secrets and not check:
        raise click.UsageError("--no-secrets is only for --check: hippod needs its tokens and keys to run")
    try:
        if others := packages_of_others():
            raise ConfigError(
                [f"this environment also has {', '.join(others)}, which overwrites hippod's files; {HINT}"]
            )
        config = load_config(file, read_secrets=not no_secrets)
        if problems := unsupported(config, read_secrets=not no_secrets):
            raise ConfigError(problems)
    except ConfigError as error:
        sys.exit(_refused(error, BAD_CONFIG, lambda error: log.error("configuration_refused", error=error)))
    if check:
        click.echo(render(config))
        return
    use_private_umask()
    if backup is not None:
        sys.exit(restore_backup(backup, config.store.path))
    setup("warning" if estimating else config.daemon.log_level)
    install()
    log_library_output()
    ending = QuickExit()
    if estimating:
        ending.code = with_store(config, print_estimate)
        sys.exit(ending.code)
    handle_early_signals()
    ending.code = with_store(config, lambda config, lock: serve(config, lock, file, reencode))
    sys.exit(ending.code)


def show_findings(file: Path | None) -> int:
    """Prints the findings of `daemon.doctor` as one JSON document; returns the exit code."""
    setup("error")
    from daemon.doctor import inspect

    findings = list(inspect(file))
    click.echo(json.dumps({"findings": [finding.to_json() for finding in findings]}))
    return BAD_CONFIG if any(each.name == "configuration" and each.status == "fail" for each in findings) else OK


def restore_backup(backup: str, folder: Path) -> int:
    """Restores a backup to the store's folder; returns the exit code."""
    from store.backup.local import restore
    from store.backup.remote import fetch
    from store.log.store_summary import encoder_of_store

    try:
        make_shared_folder(folder.parent)
        restored, aside = fetch(backup, folder) if "://" in backup else restore(Path(backup), folder)
        encoder = encoder_of_store(folder)
    except (StoreError, OSError) as error:
        click.echo(f"hippod: {error}", err=True)
        return NO_STORE
    by = "" if encoder is None else f", encoded by {encoder.name} ({encoder.dim} dimensions),"
    click.echo(
        f"restored commit {restored.commit} ({restored.files} files){by} to {folder}; the previous store is in {aside}"
    )
    return OK


def with_store(config: Config, work: Callable[[Config, StoreLock], None]) -> int:
    """Runs `work` with the store's lock; returns the exit code."""
    try:
        make_shared_folder(config.store.path.parent)
        config.store.path.mkdir(mode=0o700, exist_ok=True)
        # Lock before the model is loaded, so that a second hippod on this store is refused at once.
        lock = StoreLock(config.store.path)
        tightened = tighten(config.store.path)
    except (StoreError, OSError) as error:
        return _refused(error, NO_STORE, lambda error: log.error("store_not_opened", error=error))
    if tightened != Tightened():
        log.warning("store_tightened", closed=tightened.closed, refused=tightened.refused)
    keep_crash_stacks(config.store.path)
    # Imported here: model libraries take seconds, and --check and a refused start do not need them.
    from daemon.api.listen import ListenError
    from daemon.runtime.self_probe import SocketLost
    from memory.encoder import EncoderUnavailable

    try:
        work(config, lock)
    except StoreError as error:
        return _refused(error, NO_STORE, lambda error: log.error("store_not_opened", error=error))
    except SocketLost as error:
        return _refused(error, FAILED, lambda error: log.critical("socket_lost", error=error))
    except (ListenError, EncoderUnavailable) as error:
        return _refused(error, FAILED, lambda error: log.error("cannot_start", error=error))
    finally:
        lock.release()
    return OK


def serve(config: Config, lock: StoreLock, file: Path | None, reencode: bool) -> None:
    """Runs the daemon until a signal stops it."""
    configure_malloc()
    shorten_switch_interval()
    pause_collection()  # until the store is open
    from daemon.app.lifecycle import run

    with asyncio.Runner() as runner:
        runner.get_loop().set_exception_handler(loop_exception_handler)
        runner.run(run(config, lock, file, reencode))


def print_estimate(config: Config, lock: StoreLock) -> None:
    from daemon.app.estimate import estimate

    for line in estimate(config, lock):
        click.echo(line)


def _refused(error: Exception, code: int, log_it: Callable[[str], object]) -> int:
    """Reports why hippod does not run: on stderr, to the service manager, and to waiting clients. Returns `code`.

    Under systemd it logs an event; otherwise it prints a line, and logs errors except those of the configuration.
    """
    journal = is_journal(sys.stderr)
    if journal:
        setup("error", sys.__stderr__, ends_now=True)
    if journal or code != BAD_CONFIG:
        log_it(str(error))
    if not journal:
        click.echo(f"hippod: {error}", err=True)
    Notifier().status(f"not started: {str(error)[:500]}")
    refuse_waiting_clients(os.environ)
    return code


if __name__ == "__main__":
    main()
