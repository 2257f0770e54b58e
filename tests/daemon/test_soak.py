"""A little of what `python -m bench soak` does in full: many clients ask while files come, change, move and go."""

from pathlib import Path

import pytest

from bench.soak import CLIENTS, Drive, Soak, clients, look
from tests.e2e.running import Daemon, until

CHANGES, QUERIES, FILES = 200, 400, 40


@pytest.mark.timeout(300)
def test_nothing_fails_and_every_descriptor_comes_back(tmp_path: Path) -> None:
    found = Soak()
    with Daemon(
        tmp_path,
        schedule={"rescan": "off", "compact": "1s", "snapshot": "2s"},
        store={"path": str(tmp_path / "store"), "keep_versions": "1s"},
    ) as daemon:
        drive = Drive(daemon.drive, FILES, seed=3)
        with clients(daemon, drive, found) as ask:
            # Every client has its connection, and every thread that comes with use is there.
            ask(4 * CLIENTS)()
            daemon.wait(240)
            before = look(daemon)
            asked = ask(QUERIES)
            for _ in range(CHANGES):
                found.changes[drive.change()] += 1
            asked()
            status = daemon.wait(240)
            until(lambda: look(daemon).descriptors <= before.descriptors, "no descriptor is left open")
            after = look(daemon)
        assert found.errors == []
        assert found.queries == QUERIES + 4 * CLIENTS
        assert (after.children, status["failed"]) == (before.children, 0)
        assert status["documents"] == len(list(daemon.drive.rglob("*.md")))
        assert set(found.changes) == {"add", "edit", "rename", "delete"}
