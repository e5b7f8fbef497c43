"""Which filesystem a directory is on, and whether other machines may be on it too.

Owns naming the type of an open directory's filesystem and the list of network types. Locks, inodes and pids mean
nothing across machines, so a runtime directory on a network filesystem is refused (ownership.md section 1).
"""

from __future__ import annotations

import sys

# mount(8) type names of filesystems that several machines can have mounted at once. FUSE is judged by its subtype:
# rootless containers live on fuse-overlayfs, which is local.
NETWORK_TYPES = frozenset(
    (  # noqa: SIM905 - forty words, read as a list of words
        "9p afs afpfs beegfs ceph cifs coda davfs gfs gfs2 glusterfs gpfs lustre ncp ncpfs nfs nfs3 nfs4 ocfs2 "
        "orangefs prl_fs pvfs2 sharefs smb2 smb3 smbfs vboxsf virtiofs vmhgfs webdav fuse.sshfs fuse.s3fs "
        "fuse.glusterfs fuse.ceph fuse.ceph-fuse fuse.davfs fuse.davfs2 fuse.gcsfuse fuse.goofys fuse.juicefs "
        "fuse.moosefs fuse.rclone fuse.vmhgfs-fuse fuse.curlftpfs fuse.smbnetfs fuse.nfs"
    ).split()
)

# statfs(2): f_type of the network types whose name /proc did not tell.
NETWORK_MAGICS = {
    0x01021997: "9p",
    0x5346414F: "afs",
    0x6B414653: "afs",
    0x19830326: "beegfs",
    0x00C36400: "ceph",
    0xFF534D42: "cifs",
    0x73757245: "coda",
    0x01161970: "gfs2",
    0x47504653: "gpfs",
    0x0BD00BD0: "lustre",
    0x564C: "ncpfs",
    0x6969: "nfs",
    0x7461636F: "ocfs2",
    0x20030528: "orangefs",
    0xFE534D42: "smb3",
    0x517B: "smbfs",
    0x786F4256: "vboxsf",
    0xBACBACBC: "vmhgfs",
}

# struct statfs on every architecture is shorter; the kernel fills what it knows.
_STATFS_BYTES = 4096
# macOS's struct statfs with 64-bit inodes: f_flags, then f_fstypename; MNT_LOCAL says "no other machine".
_FLAGS_OFFSET, _NAME_OFFSET, _NAME_BYTES, _MNT_LOCAL = 64, 72, 16, 0x1000
# One line of mountinfo(5) names type after this separator.
_SEPARATOR = " - "


def read_network_type(fd: int) -> str:
    """The type name of the network filesystem that ``fd`` is on; ``""`` for a local one or where nothing says."""
    if sys.platform == "darwin":
        return parse_macos_statfs(_read_statfs(fd, ("fstatfs$INODE64", "fstatfs")))
    name = _read_mount_type(fd)
    if name:
        return name if name in NETWORK_TYPES else ""
    return parse_linux_statfs(_read_statfs(fd, ("fstatfs64", "fstatfs")))


def parse_linux_statfs(raw: bytes) -> str:
    """The network type that ``f_type``, the first member, stands for; ``""`` for any other."""
    return NETWORK_MAGICS.get(int.from_bytes(raw[:4], sys.byteorder), "")


def parse_macos_statfs(raw: bytes) -> str:
    """The type name, unless the kernel calls the mount local."""
    if not raw or int.from_bytes(raw[_FLAGS_OFFSET : _FLAGS_OFFSET + 4], "little") & _MNT_LOCAL:
        return ""
    name = raw[_NAME_OFFSET : _NAME_OFFSET + _NAME_BYTES].split(b"\0")[0]
    return name.decode("ascii", "replace") or "unknown"


def find_mount_type(mountinfo: str, mount_id: str) -> str:
    """The filesystem type of one mount in the text of mountinfo(5); ``""`` when it is not listed."""
    for line in mountinfo.splitlines():
        left, separator, right = line.partition(_SEPARATOR)
        if separator and left.split(" ", 1)[0] == mount_id:
            return right.split(" ", 1)[0]
    return ""


def _read_mount_type(fd: int) -> str:
    """Ask the kernel which mount ``fd`` is on: exact also where st_dev is not what mountinfo lists (btrfs)."""
    try:
        with open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as lines:
            mount_id = next((line.split()[1] for line in lines if line.startswith("mnt_id:")), "")
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
            return find_mount_type(file.read(), mount_id)
    except OSError:
        return ""


def _read_statfs(fd: int, names: tuple[str, ...]) -> bytes:
    """The filled structure of fstatfs(2), or nothing where it cannot be called."""
    # Imported here: it is slow to load, and /proc answers first wherever it can be read.
    import ctypes

    try:
        library = ctypes.CDLL(None)
    except OSError:
        return b""
    call = next((getattr(library, name) for name in names if hasattr(library, name)), None)
    filled = ctypes.create_string_buffer(_STATFS_BYTES)
    return filled.raw if call is not None and call(fd, filled) == 0 else b""
