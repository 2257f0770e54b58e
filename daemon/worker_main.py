"""`hippod-worker`: options, configuration, exit codes. `daemon.fleet.lifecycle` does the work."""

import asyncio
import faulthandler
import sys
from importlib.metadata import version
from pathlib import Path

import click
import structlog

from daemon.config import Config, ConfigError, load_config, render, unsupported
from daemon.config.cross_checks import worker_problems
from daemon.config_types.private_umask import use_private_umask
from daemon.observe.crashes import install, loop_exception_handler
from daemon.observe.logs import setup
from daemon.runtime.process_tuning import configure_malloc
from daemon.runtime.service_manager import Notifier
from daemon.runtime.signals_and_exit import QuickExit, handle_early_signals

OK, FAILED, BAD_CONFIG = 0, 1, 2

log = structlog.get_logger()


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--config", "file", type=click.Path(path_type=Path), metavar="FILE", help="Configuration file (TOML).")
@click.option(
    "--check", is_flag=True, help="Check the configuration, print all settings in force, and exit with 0 or 2."
)
@click.version_option(version("hippod"), prog_name="hippod-worker")
def main(file: Path | None, check: bool) -> None:
    """Read articles from Kafka and send them as records, which hippod commits without parsing, extracting or encoding.

    hippod-worker stores nothing; any number may run in one group, on any machines. It uses [worker], [passages], [parsing],
    [openie], [llm] and [encoder]. Without --config, it reads hippod's configuration file. Exit codes: 0 clean stop, 2 bad
    configuration, 1 anything else.
    """
    try:
        config = load_config(file)
        if problems := [*unsupported(config), *worker_problems(config)]:
            raise ConfigError(problems)
    except ConfigError as error:
        sys.exit(_refused(error, BAD_CONFIG))
    if check:
        click.echo(render(config))
        return
    use_private_umask()
    setup(config.daemon.log_level)
    install()
    faulthandler.enable()
    handle_early_signals()
    ending = QuickExit()
    ending.code = work(config)
    sys.exit(ending.code)


def work(config: Config) -> int:
    """Runs the worker until a signal stops it; returns the exit code."""
    configure_malloc()
    # Imported here: model libraries take seconds, and --check does not need them.
    from daemon.api.listen import ListenError
    from daemon.fleet.lifecycle import run
    from memory.encoder import EncoderUnavailable

    try:
        with asyncio.Runner() as runner:
            runner.get_loop().set_exception_handler(loop_exception_handler)
            runner.run(run(config))
    except (ListenError, EncoderUnavailable) as error:
        log.error("cannot_start", error=str(error))
        return _refused(error, FAILED)
    return OK


def _refused(error: Exception, code: int) -> int:
    for line in f"hippod-worker: {error}".splitlines():
        click.echo(line, err=True)
    Notifier().status(f"not started: {str(error)[:500]}")
    return code


if __name__ == "__main__":
    main()
