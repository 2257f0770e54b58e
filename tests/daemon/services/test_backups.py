"""Backups at intervals: to the place in `[schedule]`, and once an interval even over restarts."""

from time import time

import pytest

from daemon.config.sections import ScheduleTimes
from daemon.pipeline.backpressure import Burst
from daemon.runtime.scheduler import Scheduler
from daemon.services.progress import ProgressBoard
from daemon.services.scheduled_backup import ScheduledBackup
from store.backup.repository import BackupError, Repository
from tests.store.small_store import complete, open_store


class Idle:
    """A queue without work."""

    burst = Burst()

    def __len__(self) -> int:
        return 0


BOARD = ProgressBoard(Idle(), Idle())


def times_of(backup: str, backup_to: str) -> ScheduleTimes:
    return ScheduleTimes.model_validate({"backup": backup, "backup_to": backup_to})


def test_a_scheduled_backup_is_sent_and_remembered_for_its_place(tmp_path):
    url = f"file://{tmp_path}/away"
    times = times_of("1d", url)
    with open_store(tmp_path / "store") as store:
        store.commit(complete(store, {"d1": [("T", "text 1", None)]}, []))
        backups = ScheduledBackup(store, lambda: times, BOARD, lambda: False)
        assert backups.last_run() == 0
        backups.run()
        assert len(Repository(url).lists()) == 1
        again = ScheduledBackup(store, lambda: times, BOARD, lambda: False)
        assert abs(again.last_run() - time()) < 3600
        elsewhere = times_of("1d", f"{url}/other")
        assert ScheduledBackup(store, lambda: elsewhere, BOARD, lambda: False).last_run() == 0
        with pytest.raises(BackupError, match="cancelled"):
            ScheduledBackup(store, lambda: times, BOARD, lambda: True).run()


@pytest.mark.parametrize(("ago_s", "in_s"), [(3600.0, 82_800.0), (10 * 86400.0, 60.0)])
def test_first_run_of_a_job_is_one_interval_after_its_run_in_an_earlier_process(ago_s, in_s):
    scheduler = Scheduler(times_of("1d", "s3://bucket/prefix"))
    try:
        scheduler.start()
        scheduler.add("backup", lambda: None, last_run=time() - ago_s)
        next_run = scheduler.next_run("backup")
        assert next_run is not None
        assert abs(next_run - time() - in_s) < 90  # the jitter is a minute
    finally:
        scheduler.stop(1.0)
