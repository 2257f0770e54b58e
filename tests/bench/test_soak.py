"""A little of what `python -m bench soak` does in full: many clients ask while files come, change, move and go."""

from pathlib import Path

import pytest

from bench.sections.faults.soak import CLIENTS, Drive, Soak, clients, look
from tests.e2e.real_hippod import Daemon, until

pytestmark = pytest.mark.daemon

CHANGES, QUERIES, FILES = 200, 400, 40
THREADS_MORE = CHANGES // 2
"""Pools still fill up, by as many threads as the machine has use for: what leaks one a change or a query comes to more."""
MAPPED_MOST = 80
"""Of a snapshot of so small a memory some 30 files are mapped, of two for a moment: who lets none go soon has more."""
MEMORY_MORE = 0.25
"""Of the resident memory at the beginning, which the second half may add: 0.04 is usual, a leak of 300 kB a query is more."""


@pytest.mark.timeout(300)
def test_soak_has_no_errors_and_leaks_no_descriptors_or_memory(tmp_path: Path) -> None:
    found = Soak()
    with Daemon(
        tmp_path,
        schedule={"rescan": "off", "compact": "1s", "snapshot": "2s"},
        store={"path": str(tmp_path / "store"), "keep_versions": "1s"},
    ) as daemon:
        drive = Drive(daemon.drive, FILES, seed=3)
        with clients(daemon, found) as ask:
            # Every client has its connection, and every thread that comes with use is there.
            ask(4 * CLIENTS)()
            daemon.wait(240)
            before = look(daemon)
            halves = []
            for _ in range(2):
                wait_for_answers = ask(QUERIES // 2)
                for _ in range(CHANGES // 2):
                    found.changes[drive.change()] += 1
                wait_for_answers()
                status = daemon.wait(240)
                halves.append(look(daemon))
            until(lambda: look(daemon).descriptors <= before.descriptors, "no descriptor is left open")
            after = look(daemon)
        assert found.errors == []
        assert after.mapped <= MAPPED_MOST, after
        assert found.queries == QUERIES + 4 * CLIENTS
        assert after.threads <= before.threads + THREADS_MORE
        assert halves[1].rss - halves[0].rss <= before.rss * MEMORY_MORE
        assert (after.children, status["failed"]) == (before.children, 0)
        assert status["documents"] == len(list(daemon.drive.rglob("*.md")))
        assert set(found.changes) == {"add", "edit", "rename", "delete"}
