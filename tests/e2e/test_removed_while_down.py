"""What was refused and is deleted while hippod is down is listed no more after the next start."""

import shutil

import pytest

from tests.e2e.conftest import Hippo

pytestmark = pytest.mark.daemon


def test_a_link_and_a_folder_that_could_not_be_looked_at_are_forgotten_with_their_files(hippo: Hippo) -> None:
    daemon = hippo()
    kept = daemon.write("kept.txt", "Ottilie Brandt keeps the archive.")
    (daemon.drive / "link").symlink_to("kept.txt")
    closed = daemon.drive / "closed"
    closed.mkdir(mode=0)
    daemon.start().wait()
    assert set(daemon.documents()) == {kept, daemon.uri("link"), daemon.uri("closed")}
    daemon.stop()
    (daemon.drive / "link").unlink()
    shutil.rmtree(closed)
    daemon.start().wait()
    assert set(daemon.documents()) == {kept}
