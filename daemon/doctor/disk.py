"""Checks the free space on the store's disk."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from daemon.config import Config
from daemon.config_types.mounts import mount_of
from daemon.contract.finding import Finding
from daemon.doctor.access_rights import nearest
from daemon.runtime.disk_use import bytes_below

FULL_BYTES = 100 << 20
"""Free bytes below which commits fail soon, if they do not fail already."""
SPARE_BYTES = 1 << 30
"""Bytes that should stay free, however small the store is."""
FEWEST_INODES, FEW_INODES = 1_000, 10_000
"""Free inodes below which the check fails or warns. A commit creates dozens of files; rewriting a table creates hundreds."""


def disk(config: Config) -> Iterator[Finding]:
    folder = config.store.path
    place = nearest(folder)
    at = mount_of(folder).at
    if at and not place.is_relative_to(at):
        return  # the store's disk is mounted below a directory that this user may not access, so `place` is on another disk
    usage, inodes = shutil.disk_usage(place), os.statvfs(place)
    said = f"{usage.free >> 20:,} MiB free of {usage.total >> 20:,} at {place}"
    wanted = max(SPARE_BYTES, largest_part_bytes(folder))
    if usage.free < FULL_BYTES:
        hint = "make room at once, or give the store a larger disk ([store] path): documents wait, queries continue"
        yield Finding("disk", "fail", said, hint)
    elif usage.free < wanted:
        hint = f"make room: {wanted >> 20:,} MiB should stay free, because a table is rewritten before the old one is deleted"
        yield Finding("disk", "warn", said, hint)
    elif inodes.f_files and inodes.f_favail < FEW_INODES:
        none = inodes.f_favail < FEWEST_INODES
        detail = f"only {inodes.f_favail:,} inodes are free at {place}"
        yield Finding("disk", "fail" if none else "warn", detail, "delete small files")
    else:
        yield Finding("disk", "ok", said)


def largest_part_bytes(folder: Path) -> int:
    """Returns the bytes of the largest table or checkpoint. Each one is rewritten while its old files still exist."""
    try:
        parts = [each.path for each in os.scandir(folder) if each.is_dir(follow_symlinks=False)]
    except OSError:
        return 0
    return max((bytes_below(Path(part)) for part in parts), default=0)
