"""Runs shards on a Ray cluster. The only module that imports ray (extra `ray`).

Ray Data distributes descriptions of shards, not contents. An actor reads its input itself and writes its records to the output
itself, so nothing large passes through Ray's object store. If a node is lost, its present shards are processed again elsewhere,
into files with the same names.
"""

from collections.abc import Callable, Sequence

import ray
import ray.data

from daemon.backfill.shard_reader import ShardReader
from daemon.backfill.shards import Shard
from daemon.config import Config


def run(
    config: Config,
    work: Sequence[Shard],
    out: str,
    address: str | None,
    actors: int | None,
    gpus: float,
    progress: Callable[[int, int], None],
) -> int:
    """Processes all shards; returns the number of records written. Raises Ray's exception if Ray gives up.

    `actors` is the maximum number of concurrent actors; None means one per processor of the cluster. `gpus`: number of GPUs of
    each actor. `progress` is called with the number of finished shards and of their records.
    """
    started = not ray.is_initialized()
    if started:
        ray.init(address=address, log_to_driver=False)
    try:
        ray.data.DataContext.get_current().enable_progress_bars = False  # `progress` reports it
        max_actors = actors or max(1, int(ray.cluster_resources().get("CPU", 1)))
        rows = ray.data.from_items(
            [{"shard": shard.to_json()} for shard in work], override_num_blocks=max(1, len(work))
        )
        done = records = 0
        read = rows.map(
            ShardReader,
            fn_constructor_kwargs={"config": config, "out": out},
            compute=ray.data.ActorPoolStrategy(min_size=1, max_size=min(max_actors, max(1, len(work)))),
            num_gpus=gpus or None,
        )
        for row in read.iter_rows():
            done, records = done + 1, records + row["records"]
            progress(done, records)
        return records
    finally:
        if started:
            ray.shutdown()
