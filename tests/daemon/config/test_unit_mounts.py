"""hippod refuses paths in the temporary directories of its unit, and explains paths that the unit hides."""

import asyncio
import os
from pathlib import Path
from typing import Any, cast

import pytest

from daemon.config import ConfigError, load_config
from daemon.config_types import mounts
from daemon.config_types.mounts import mount_of, private_tmp_problem
from daemon.errors import Conflict
from daemon.services.transfer import TransferService

PRIVATE = "systemd-private-6c1f-hippod.service-x8Jq2T/tmp"
ON_DISK = f"""25 1 254:0 / / rw,relatime - ext4 /dev/vda rw
300 25 254:0 /tmp/{PRIVATE} /tmp rw,relatime - ext4 /dev/vda rw
301 25 254:0 /var/tmp/{PRIVATE} /var/tmp rw,relatime - ext4 /dev/vda rw
"""
IN_MEMORY = f"""25 1 254:0 / / rw,relatime - ext4 /dev/vda rw
26 25 0:30 / /tmp rw - tmpfs tmpfs rw
300 26 0:30 /{PRIVATE} /tmp rw - tmpfs tmpfs rw
"""


@pytest.fixture(params=[ON_DISK, IN_MEMORY], ids=["/tmp on disk", "/tmp in memory"])
def unit(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process seems to run in the mounts of the unit."""
    monkeypatch.setattr(mounts, "MOUNTS", tmp_path / "mountinfo")
    (tmp_path / "mountinfo").write_text(request.param)


def test_path_in_a_private_tmp_of_the_unit_is_a_problem(unit: None) -> None:
    assert "PrivateTmp" in str(private_tmp_problem(Path("/tmp/backup")))
    assert private_tmp_problem(Path("/var/lib/hippod/backups")) is None
    assert private_tmp_problem(Path("/srv/systemd-private-notes")) is None


def test_tmp_outside_a_unit_is_an_ordinary_mount(tmp_path: Path) -> None:
    (tmp_path / "mountinfo").write_text("25 1 254:0 / / rw - ext4 /dev/vda rw\n26 25 0:30 / /tmp rw - tmpfs tmpfs rw\n")
    assert mount_of(Path("/tmp/x"), tmp_path / "mountinfo") == mounts.Mount("/tmp", "/", "tmpfs")


def test_config_loads_if_a_mount_point_is_not_utf8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounts, "MOUNTS", tmp_path / "mountinfo")
    (tmp_path / "mountinfo").write_bytes(
        b"25 1 254:0 / / rw - ext4 /dev/vda rw\n26 25 0:30 / /mnt/B\xfcro rw - nfs4 server:/export rw\n"
    )
    file = tmp_path / "config.toml"
    file.write_text(f'[[folder]]\npath = "{tmp_path}"\n')
    assert load_config(file, {"HOME": "/nowhere"}).store.path.is_absolute()
    assert mount_of(Path(os.fsdecode(b"/mnt/B\xfcro/a")), tmp_path / "mountinfo").type == "nfs4"


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("store", "path", "/tmp/store"),
        ("api", "socket", "/tmp/hippod.sock"),
        ("schedule", "backup_to", "file:///tmp/backups"),
        ("[folder]", "path", "/tmp/no-such-folder-of-the-test"),
    ],
)
def test_a_setting_in_the_unit_s_tmp_is_refused(unit: None, tmp_path: Path, section: str, key: str, value: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f'[{section}]\n{key} = "{value}"\n')
    with pytest.raises(ConfigError, match=rf"{key}.*PrivateTmp=yes.*name a directory elsewhere"):
        load_config(file, {"HOME": "/nowhere"})


@pytest.mark.parametrize("directory", ["/tmp/backup", "file:///tmp/backup"])
def test_a_backup_into_the_unit_s_tmp_is_refused_before_anything_is_written(unit: None, directory: str) -> None:
    nothing = cast("Any", None)
    service = TransferService(*[nothing] * 6)
    with pytest.raises(Conflict, match="PrivateTmp=yes"):
        asyncio.run(service.backup(directory))


@pytest.mark.parametrize(("options", "reason"), [("ro", "unit hides /root.*drive.conf"), ("rw", "create it first")])
def test_error_about_a_missing_directory_says_whether_the_unit_hides_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, reason: str
) -> None:
    monkeypatch.setattr(mounts, "MOUNTS", tmp_path / "mountinfo")
    (tmp_path / "mountinfo").write_text(
        f"25 1 254:0 / / rw - ext4 /dev/vda rw\n26 25 0:30 / /root {options},nosuid - tmpfs tmpfs rw\n"
    )
    file = tmp_path / "config.toml"
    file.write_text('[[folder]]\npath = "/root/no-such-folder-of-the-test"\n')
    with pytest.raises(ConfigError, match=rf"path.*{reason}"):
        load_config(file, {"HOME": "/nowhere"})
