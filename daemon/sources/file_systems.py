"""Determines the file system of a path from the kernel's list of mounts."""

from pathlib import Path

from daemon.config_types.mounts import mount_of

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


def file_system(path: Path, mounts: Path) -> str:
    """Returns the type of the file system that contains `path`, "" if unknown."""
    return mount_of(path, mounts).type
