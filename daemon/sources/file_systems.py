"""Which file system a path is on, as the kernel lists them."""

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
"""File systems on which inotify does not hear what other machines do."""
VIEWS = frozenset({"fuse.bindfs", "fuse.mergerfs", "fuse.unionfs", "fuse.unionfs-fuse", "fuse.mhddfs"})
"""File systems that show other folders, and on which inotify does not hear what is written to those directly."""


def file_system(path: Path, mounts: Path) -> str:
    """The type of the file system that `path` is on, "" where that cannot be told."""
    return mount_of(path, mounts).type
