"""Finds the mount of a path in the kernel's list, and detects directories that hippod's unit hides or replaces."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")
HIDDEN = ("/home", "/root", "/run/user")
"""Directories that hippod's unit covers with an empty read-only tmpfs (`TemporaryFileSystem=`)."""
PRIVATE_TMP = "systemd-private-"
"""Prefix of the name of the directory that systemd mounts on /tmp and /var/tmp for a unit with `PrivateTmp=yes`."""

NETWORK_FILE_SYSTEMS = frozenset(
    "nfs nfs4 cifs smb3 smbfs 9p afs ceph glusterfs virtiofs ncpfs davfs lustre beegfs fuse.sshfs fuse.rclone fuse.davfs2 "
    "fuse.s3fs fuse.glusterfs fuse.ceph fuse.gvfsd-fuse".split()
)
"""File systems on which inotify does not report changes made by other machines."""
VIEWS = frozenset({"fuse.bindfs", "fuse.mergerfs", "fuse.unionfs", "fuse.unionfs-fuse", "fuse.mhddfs"})
"""File systems that show other folders: inotify misses changes that are made to those folders directly."""


@dataclass(frozen=True, slots=True)
class Mount:
    """`at`: the mount point. `root`: the directory of the file system that is mounted there. The fields are empty if the mount
    is unknown."""

    at: str = ""
    root: str = ""
    type: str = ""
    read_only: bool = False


def mount_of(path: Path, mounts: Path | None = None) -> Mount:
    """Returns the mount that contains `path`."""
    best = Mount()
    try:
        lines = (mounts or MOUNTS).read_bytes().split(b"\n")
    except OSError:
        return best
    where = os.fspath(path.resolve())
    for line in lines:
        head, _, tail = line.partition(b" - ")
        fields = head.split(b" ")
        if len(fields) < 6 or not tail:
            continue
        root, at = (_unescaped(field) for field in fields[3:5])
        inside = where == at or where.startswith(at.rstrip("/") + "/")
        if inside and len(at) >= len(best.at):  # a later mount covers an earlier one
            best = Mount(at, root, os.fsdecode(tail.split(b" ")[0]), b"ro" in fields[5].split(b","))
    return best


def _unescaped(field: bytes) -> str:
    """Returns the path in a field. The kernel writes a space, tab, newline and backslash as an octal number."""
    return os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda escape: bytes([int(escape[1], 8)]), field))


def private_tmp_problem(path: Path) -> str | None:
    """Returns a sentence if `path` is in the private /tmp of hippod's unit, which no other process sees; otherwise None."""
    found = mount_of(path)
    if not any(part.startswith(PRIVATE_TMP) for part in found.root.split("/")):
        return None
    return (
        f"{path} is in the {found.at} of hippod's unit (PrivateTmp=yes), which no other process sees and systemd deletes at "
        "the stop; name a directory elsewhere, such as one in /var/lib/hippod"
    )


def hidden_problem(path: Path) -> str | None:
    """Returns a sentence if hippod's unit hides `path`, so that it exists only for other processes; otherwise None."""
    found = mount_of(path)
    if found.at not in HIDDEN or found.type != "tmpfs" or not found.read_only:
        return None
    return (
        f"hippod's unit hides {found.at}; show the directory with a drop-in "
        "(/usr/share/doc/hippod/systemd/drop-ins/drive.conf), then restart hippod"
    )
