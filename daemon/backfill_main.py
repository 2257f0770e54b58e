"""The command line of `hippod-backfill`: options and exit codes. `daemon.backfill` does the work."""

import importlib.util
import sys
from importlib.metadata import version
from pathlib import Path

import click

from daemon.backfill.shards import BackfillError, Shard, shards
from daemon.config import Config, ConfigError, load_config, unsupported
from daemon.observe.logs import setup

FAILED, BAD_CONFIG = 1, 2
WITHOUT_RAY = (
    "it needs Ray, which is not installed; install hippod with its extra `ray` here and on each node of the cluster"
)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT…")
@click.option(
    "--out", required=True, metavar="URL", help="Target of the files of records: a folder, or s3://bucket/prefix."
)
@click.option(
    "--address", metavar="RAY", help="The cluster's address. Default: $RAY_ADDRESS, otherwise this machine only."
)
@click.option(
    "--actors", type=click.IntRange(min=1), metavar="N", help="Largest number of actors. Default: one per processor."
)
@click.option("--gpus", type=click.FloatRange(min=0), default=0.0, metavar="N", help="GPUs of each actor. Default: 0.")
@click.option("--config", "file", type=click.Path(path_type=Path), metavar="FILE", help="Configuration file (TOML).")
@click.version_option(version("hippod"), prog_name="hippod-backfill")
def main(
    inputs: tuple[str, ...], out: str, address: str | None, actors: int | None, gpus: float, file: Path | None
) -> None:
    """Read folders, JSON lines, Parquet or prefixes of an object store on a Ray cluster, and write files of records.

    `hippoctl import` takes the files without parsing, extracting or encoding. An interrupted run continues when it is started
    again with the same input, [passages], [parsing], [openie], [llm] and [encoder]. Exit codes: 0 everything is read, 2 bad
    configuration or usage, 1 anything else.
    """
    try:
        config = load_config(file)
        if problems := unsupported(config):
            raise ConfigError(problems)
    except ConfigError as error:
        sys.exit(_refused(error, BAD_CONFIG))
    if importlib.util.find_spec("ray") is None:
        sys.exit(_refused(WITHOUT_RAY, FAILED))
    setup(config.daemon.log_level)
    try:
        work = list(shards(inputs))
        if not work:
            raise BackfillError(f"nothing to read in {', '.join(inputs)}")
        sys.exit(_run(config, work, out if "://" in out else f"file://{Path(out).absolute()}", address, actors, gpus))
    except BackfillError as error:
        sys.exit(_refused(error, FAILED))


def _run(config: Config, work: list[Shard], out: str, address: str | None, actors: int | None, gpus: float) -> int:
    from daemon.backfill.ray_run import run

    def progress(done: int, records: int) -> None:
        click.echo(f"{done:,} of {len(work):,} shards, {records:,} records written", err=True)

    try:
        records = run(config, work, out, address, actors, gpus, progress)
    except Exception as error:  # noqa: BLE001 - report any exception of Ray in one line
        cause = getattr(error, "cause", None) or error
        return _refused(f"{cause}; start it again to continue", FAILED)
    click.echo(f"{out} is complete; records written now: {records:,}; shards in all: {len(work):,}")
    return 0


def _refused(error: object, code: int) -> int:
    click.echo(f"hippod-backfill: {error}", err=True)
    return code


if __name__ == "__main__":
    main()
