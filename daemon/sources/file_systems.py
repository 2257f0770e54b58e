"""Determines the file system of a path from the kernel's list of mounts."""

import os
from pathlib import Path

NETWORK_FILE_SYSTEMS = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "afs",
        "ceph",
        "glusterfs",
        "fuse.sshfs",
        "fuse.rclone",
        "fuse.davfs2",
    }
    | {"fuse.s3fs", "fuse.glusterfs", "fuse.ceph", "virtiofs", "ncpfs", "davfs", "lustre", "beegfs", "fuse.gvfsd-fuse"}
)
"""File systems on which inotify does not report changes made by other machines."""
VIEWS = frozenset({"fuse.bindfs", "fuse.mergerfs", "fuse.unionfs", "fuse.unionfs-fuse", "fuse.mhddfs"})
"""File systems that show other folders, and on which inotify does not report changes made to those folders directly."""
MOUNTS = Path("/proc/self/mountinfo")


def file_system(path: Path, mounts: Path) -> str:
    """Returns the type of the file system that contains `path`, "" if unknown."""
    return mount(path, mounts)[1]


def mount(path: Path, mounts: Path) -> tuple[str, str]:
    """Returns the mount point and type of the file system that contains `path`, both "" if unknown."""
    best, kind = "", ""
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return "", ""
    where = os.fspath(path.resolve())
    for line in lines:
        head, _, tail = line.partition(" - ")
        fields = head.split()
        if len(fields) < 5 or not tail:
            continue
        at = fields[4].encode().decode("unicode_escape")
        inside = where == at or where.startswith(at.rstrip("/") + "/")
        if inside and len(at) >= len(best):  # a later mount covers an earlier one
            best, kind = at, tail.split()[0]
    return best, kind
