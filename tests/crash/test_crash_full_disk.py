"""A full disk under a running daemon: it reports it, keeps answering, and continues when there is space again."""

import os
import subprocess

import pytest

from tests.e2e.real_hippod import Daemon, until

pytestmark = [
    pytest.mark.daemon,
    pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root"),
]


@pytest.fixture
def mount(tmp_path):
    place = tmp_path / "small"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(place)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("no tmpfs can be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=False)


def test_a_full_disk_is_reported_and_nothing_is_lost(tmp_path, mount):
    drive = tmp_path / "home" / "drive"
    daemon = Daemon(tmp_path / "home", store={"path": str(mount / "store")})
    (drive / "first.md").write_text("# Marie Curie\n\nMarie Curie was born in Warsaw.\n")
    daemon.start()
    try:
        until(lambda: daemon.status()["documents"] == 1, "the first document is indexed")
        filler = mount / "filler"
        with pytest.raises(OSError, match="No space"), filler.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        (drive / "second.md").write_text("# Pierre Curie\n\nPierre Curie was born in Paris.\n")
        said = until(lambda: str(daemon.status().get("trouble") or ""), "status tells of the full disk")
        assert "space" in said.lower()
        assert daemon.events("commit_failed")
        for _ in range(2):
            refused = daemon.http.post("/v1/documents", json={"documents": [{"id": "third", "text": "Irene."}]})
            assert refused.status_code == 503
            assert "The disk of the memory ([store] path)" in refused.json()["detail"]
        assert list((mount / "store" / "inbox").iterdir()) == []
        assert daemon.query("Where was Marie Curie born?")[0]["title"] == "Marie Curie"
        filler.unlink()
        until(lambda: daemon.status()["documents"] == 2, "the second document is indexed once there is room")
        assert "trouble" not in daemon.status()
    finally:
        daemon.close()
